"""A database as SQL may read it: nothing can be changed, and with a document's words its own tables are there.

The documents' tables are temporary views that shadow the real ones. Their words are derived from the vocabularies
when the views are made; nothing is stored twice.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from understudy.actors.lifecycle import DOCUMENTS, Document, Entity
from understudy.actors.lifecycle.vocabulary import ByPrevious, ByRun, Vocabulary
from understudy.actors.ports.store import StoreRefused
from understudy.adapters.stores.sqlite.reader import open_read_only

_READING: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


def query(path: Path, statement: str, document: Document | None = None) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """The columns and rows of a SELECT. Raises `StoreRefused` for whatever is not one."""
    connection = open_read_only(path)
    try:
        if document is not None:
            connection.executescript(views_of(document))
        connection.set_authorizer(_allow_reading)
        cursor = connection.execute(statement)
    except sqlite3.Error as error:
        connection.close()
        what = "only reading is allowed" if "not authorized" in str(error) else str(error)
        raise StoreRefused(f"the statement cannot be run: {what}") from None
    if cursor.description is None:
        connection.close()
        raise StoreRefused("the statement cannot be run: only reading is allowed")
    return [column[0] for column in cursor.description], _rows(connection, cursor)


def ids_beginning(path: Path, table: str, start: str, limit: int) -> list[str]:
    """Ids of a table that begin so, in their order."""
    statement = f"SELECT id FROM {table} WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY id LIMIT ?"  # noqa: S608 - ours
    with closing(open_read_only(path)) as connection:
        return [each for (each,) in connection.execute(statement, (start, len(start), start, limit))]


def views_of(document: Document) -> str:
    """The statements that make a document's tables."""
    text = files("understudy.adapters.stores.sqlite").joinpath("views", f"{document.value}.sql").read_text()
    words: dict[str, str] = {}
    for entity in Entity:
        vocabulary = DOCUMENTS[document].get(entity)
        if vocabulary is not None:
            words[f"{entity.value}_state"] = _as_words(vocabulary, "state", "previous_state", "has_run")
            words[f"{entity.value}_from"] = _as_words(vocabulary, "from_state", "before", "ran_before")
            words[f"{entity.value}_to"] = _as_words(vocabulary, "to_state", "from_state", "has_run")
    return text.format(**words)


def _as_words(vocabulary: Vocabulary, state: str, previous: str, ran: str) -> str:
    """A CASE that says a state in the document's words, given the columns that it depends on."""
    cases: list[str] = []
    for canonical, reading in vocabulary.words.items():
        match reading:
            case str():
                word = f"'{reading}'"
            case ByPrevious(otherwise, after):
                inner = " ".join(f"WHEN '{each}' THEN '{said}'" for each, said in after.items())
                word = f"CASE {previous} {inner} ELSE '{otherwise}' END"
            case ByRun(fresh, has_run):
                word = f"CASE WHEN {ran} THEN '{has_run}' ELSE '{fresh}' END"
        cases.append(f"WHEN '{canonical}' THEN {word}")
    return f"CASE {state} {' '.join(cases)} END"


def _allow_reading(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _rows(connection: sqlite3.Connection, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    try:
        yield from cursor
    except sqlite3.Error as error:
        raise StoreRefused(f"the rows cannot be read: {error}") from None
    finally:
        connection.close()
