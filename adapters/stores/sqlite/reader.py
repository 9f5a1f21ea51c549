"""Reading a database without a right to change it: whoever has it open for writing, or nobody.

A file that is not there, not ours, or of another schema is refused before anything is read.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Self

from understudy.actors.kernel.uncut import uncut
from understudy.actors.lifecycle import MACHINES, Entity
from understudy.actors.ports.store import AttemptQuery, Batch, StoreRefused, StoreUnavailable
from understudy.actors.records import Attempt, CheckResult, Record, StoredAnswer, Transition, WorkstreamRecord
from understudy.adapters.stores.sqlite import rows
from understudy.adapters.stores.sqlite.connection import Connection, uri_of
from understudy.adapters.stores.sqlite.ownership import refuse_stranger
from understudy.adapters.stores.sqlite.statements import SCHEMA_VERSION, STATEMENTS

BUSY_MS: Final = 5_000  # another process may hold the file for a moment: a backup, a reader with a tool
PAGE: Final = 1_000  # rows in one read, so that no reader is open for long
UNREADABLE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)  # names and messages can be damaged, too


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that cannot change the file, whoever has it open."""
    if not path.is_file():
        raise StoreRefused(f"{path} is not there")
    try:
        refuse_stranger(path)
        connection = sqlite3.connect(uri_of(path, "ro"), uri=True, isolation_level=None)
        connection.text_factory = _lenient
        [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    except UNREADABLE as error:
        raise StoreRefused(f"{path} cannot be read: {error}; restore a copy") from None
    if version != SCHEMA_VERSION:
        connection.close()
        raise StoreRefused(f"{path} has schema {version}, and this understudy reads {SCHEMA_VERSION}")
    return connection


def _lenient(data: bytes) -> str:
    """Text that is damaged is read all the same: its checksum tells, row by row."""
    return data.decode(errors="replace")


class SqliteReader:
    """The store without a right to write: whatever would change something is refused. Open it with `async with`."""

    def __init__(self, path: str | Path, *, busy_ms: int = BUSY_MS) -> None:
        self.path = Path(path).resolve()  # two names of one file are one file
        self._busy_ms = busy_ms
        self._reader = Connection(self.path, read_only=True)

    async def __aenter__(self) -> Self:
        with closing(open_read_only(self.path)):
            await self._open_reader()
        return self

    async def __aexit__(self, *_: object) -> None:
        await uncut(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        await self._reader.close()

    async def _open_reader(self) -> None:
        await self._reader.open(f"busy_timeout = {self._busy_ms}", "query_only = ON", "trusted_schema = OFF")

    async def commit(self, batch: Batch) -> None:
        raise self._read_only(f"a batch of {len(batch.transitions)} moves")

    async def forget_answers(self, now: int) -> int:
        raise self._read_only(f"answers from before {now}")

    async def remove_workstream(self, workstream: WorkstreamRecord) -> bool:
        raise self._read_only(workstream.id)

    def _read_only(self, what: str) -> StoreRefused:
        return StoreRefused(f"{self.path} was opened for reading: {what} cannot be changed; open it for writing")

    async def last_sequence(self) -> int:
        [(newest,)] = await self._read("last_sequence")
        return int(newest)

    async def load(self, entity: Entity, record_id: str) -> Record | None:
        found = await self._select(f"{STATEMENTS[f'select_{entity.value}']} WHERE id = ?", (record_id,))
        return rows.read_snapshot(entity, found[0]) if found else None

    async def page(
        self,
        entity: Entity,
        *,
        states: Sequence[str] | None = None,
        workstream_id: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Record]:
        conditions, values = ["id > ?"], [after]
        if states is not None:
            conditions.append(_in_states(entity, states))
        if workstream_id is not None:
            conditions.append("id > ? AND id < ?")
            values += _within(workstream_id)
        statement = f"{STATEMENTS[f'select_{entity.value}']} WHERE {' AND '.join(conditions)} ORDER BY id LIMIT ?"
        found = await self._select(statement, (*values, limit))
        return [rows.read_snapshot(entity, row) for row in found]

    async def history(self, entity: Entity, record_id: str, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        found = await self._read("history", record_id, entity.value, after, limit)
        return [rows.read_transition(row) for row in found]

    async def trail(self, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        return [rows.read_transition(row) for row in await self._read("trail", after, limit)]

    async def follow(self, *, after: int = 0) -> AsyncIterator[Transition]:
        while found := await self.trail(after=after, limit=PAGE):
            for each in found:
                yield each
            after = found[-1].sequence

    async def attempts(self, query: AttemptQuery) -> list[Attempt]:
        statement, values = attempts_statement(query)
        return [rows.read_attempt(row) for row in await self._select(statement, values)]

    async def checks(self, task_id: str) -> list[CheckResult]:
        return [rows.read_check(row) for row in await self._read("checks", task_id)]

    async def answer_to(self, request_id: str, now: int) -> StoredAnswer | None:
        found = await self._read("answer_to", request_id, now)
        return rows.read_answer(found[0]) if found else None

    async def newest_workstreams(self, *, states: Sequence[str] | None, limit: int) -> list[WorkstreamRecord]:
        """The newest first."""
        where = "" if states is None else f" WHERE {_in_states(Entity.WORKSTREAM, states)}"
        statement = f"{STATEMENTS['select_workstream']}{where} ORDER BY created_at DESC, id DESC LIMIT ?"
        found = [rows.read_snapshot(Entity.WORKSTREAM, row) for row in await self._select(statement, (limit,))]
        return [each for each in found if isinstance(each, WorkstreamRecord)]

    async def count_tasks(self, workstream_id: str) -> dict[str, int]:
        """How many tasks of a workstream are in each state."""
        return dict(await self._read("count_tasks_of_workstream", *_within(workstream_id)))

    async def _read(self, name: str, *values: Any) -> list[Any]:
        return await self._select(STATEMENTS[name], values)

    async def _select(self, statement: str, values: Sequence[Any]) -> list[Any]:
        try:
            return await self._reader.run(lambda connection: connection.execute(statement, values).fetchall())
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(f"{self.path} cannot be read: {error}", "failed") from error


def attempts_statement(query: AttemptQuery) -> tuple[str, tuple[Any, ...]]:
    """The statement for a query of attempts, and its values. Each condition has an index."""
    wanted: list[tuple[str, Any]] = [
        ("task_id = ?", query.task_id),
        ("task_id > ?", None if query.workstream_id is None else _within(query.workstream_id)[0]),
        ("task_id < ?", None if query.workstream_id is None else _within(query.workstream_id)[1]),
        ("worker_id = ?", query.worker_id),
        ("correlation_id = ?", query.correlation_id),
        (f"success = {int(query.success or 0)} AND ?", query.success is not None or None),  # a literal: see the index
        ("started_at >= ?", query.since),
        ("started_at < ?", query.until),
    ]
    given = [(condition, value) for condition, value in wanted if value is not None]
    where = f" WHERE {' AND '.join(condition for condition, _ in given)}" if given else ""
    statement = f"{STATEMENTS['select_attempts']}{where} ORDER BY started_at DESC, task_id DESC, attempt DESC LIMIT ?"
    return statement, (*(value for _, value in given), query.limit)


def _within(workstream_id: str) -> tuple[str, str]:
    """Between these lie the ids of a workstream's tasks: after w/, and before w0, which comes next."""
    return f"{workstream_id}/", f"{workstream_id}0"


def _in_states(entity: Entity, states: Sequence[str]) -> str:
    """A condition on the state, with literals: so an index on some of the states is found. Only known ones are said."""
    literals = (f"'{state}'" if state in MACHINES[entity].states else "NULL" for state in states)
    return f"state IN ({', '.join(literals)})"
