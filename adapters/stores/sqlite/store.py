"""The store on SQLite: commits through one write connection, reads through another."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from understudy.actors.kernel.uncut import uncut
from understudy.actors.lifecycle import MACHINES, Entity
from understudy.actors.ports.store import AttemptQuery, Batch, StoreRefused, StoreUnavailable
from understudy.actors.records import Attempt, CheckResult, Record, StoredAnswer, Transition, WorkstreamRecord
from understudy.adapters.stores.sqlite import rows
from understudy.adapters.stores.sqlite.connection import Connection
from understudy.adapters.stores.sqlite.durability import Durability
from understudy.adapters.stores.sqlite.ownership import Ownership, refuse_stranger
from understudy.adapters.stores.sqlite.statements import STATEMENTS, migrations

BUSY_MS: Final = 5_000  # another process may hold the file for a moment: a backup, a reader with a tool
WAL_BYTES_MAX: Final = 64 * 2**20
ROWS_AT_ONCE: Final = (300, 100, 30, 10, 3, 1)  # in one statement
PAGE: Final = 1_000  # rows in one read, so that no reader is open for long

T = TypeVar("T")


class SqliteStore:
    """Open it with `async with`. A second writer is refused, and told who is the first."""

    def __init__(self, path: str | Path, *, durability: Durability = Durability.FULL, busy_ms: int = BUSY_MS) -> None:
        self.path = Path(path).resolve()  # two names of one file are one file
        self._durability = durability
        self._busy_ms = busy_ms
        self._ownership = Ownership(self.path)
        self._writer = Connection(self.path, read_only=False)
        self._reader = Connection(self.path, read_only=True)

    async def __aenter__(self) -> Self:
        if not self.path.parent.is_dir():
            raise StoreRefused(f"{self.path.parent} is not a directory: make it first")
        self._ownership.take()
        try:
            await self._open()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await uncut(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        try:
            await self._reader.close()
            await self._writer.close()
        finally:
            self._ownership.release()

    async def commit(self, batch: Batch) -> None:
        writes = writes_of(batch)

        def write(connection: sqlite3.Connection) -> None:
            for statement, values in writes:
                _write_rows(connection, statement, values)

        await self._transact(write)

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
            conditions.append(f"state IN ({', '.join(_literal(entity, state) for state in states)})")
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

    async def forget_answers(self, now: int) -> int:
        statement = STATEMENTS["forget_answers"]
        return await self._transact(lambda connection: connection.execute(statement, (now,)).rowcount)

    async def remove_workstream(self, workstream: WorkstreamRecord) -> bool:
        def remove(connection: sqlite3.Connection) -> bool:
            statement = f"{STATEMENTS['select_workstream']} WHERE id = ?"
            found = connection.execute(statement, (workstream.id,)).fetchall()
            if not found or rows.read_snapshot(Entity.WORKSTREAM, found[0]) != workstream:
                return False
            connection.execute(STATEMENTS["keep_last_sequence"])
            for name in _REMOVALS:
                connection.execute(STATEMENTS[name], (workstream.id,))
            return True

        return await self._transact(remove)

    async def _open(self) -> None:
        try:
            refuse_stranger(self.path)
            await self._writer.open(
                f"busy_timeout = {self._busy_ms}",
                "journal_mode = WAL",
                f"synchronous = {self._durability.value}",
                f"journal_size_limit = {WAL_BYTES_MAX}",
                "foreign_keys = ON",
                "trusted_schema = OFF",
            )
            await self._writer.run(_migrate)
            await self._reader.open(f"busy_timeout = {self._busy_ms}", "query_only = ON", "trusted_schema = OFF")
        except sqlite3.DatabaseError as error:
            raise StoreRefused(f"{self.path} cannot be opened: {error}; is it a database of understudy?") from error
        said = ("durability", self._durability.value)
        await self._transact(lambda connection: connection.execute(STATEMENTS["put_meta"], said))

    async def _read(self, name: str, *values: Any) -> list[Any]:
        return await self._select(STATEMENTS[name], values)

    async def _select(self, statement: str, values: Sequence[Any]) -> list[Any]:
        try:
            return await self._reader.run(lambda connection: connection.execute(statement, values).fetchall())
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(f"{self.path} cannot be read: {error}", "failed") from error

    async def _transact(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Change something, wholly or not at all."""
        self._ownership.check()

        def run(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                changed = change(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return changed

        try:
            return await self._writer.run(run)
        except sqlite3.Error as error:
            raise _unavailable(self.path, error) from error


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


def _literal(entity: Entity, state: str) -> str:
    """A state as it is written in SQL, where an index on some of the states is to be found. Only known ones are."""
    return f"'{state}'" if state in MACHINES[entity].states else "NULL"


_REMOVALS: Final = (
    "remove_moves_of_tasks",
    "remove_moves_of_workstream",
    "remove_attempts",
    "remove_checks",
    "remove_tasks",
    "remove_workstream",
)


def writes_of(batch: Batch) -> list[tuple[str, list[rows.Row]]]:
    """What a batch writes, as statements with their rows. Made on the loop's thread: it is the cheaper one."""
    writes: dict[str, list[rows.Row]] = {}
    for (entity, _), record in batch.snapshots.items():
        writes.setdefault(rows.STATEMENT_OF[entity], []).append(rows.snapshot_row(record))
    writes["add_transition"] = [rows.transition_row(each) for each in batch.transitions]
    writes["add_attempt"] = [rows.attempt_row(each) for each in batch.attempts]
    writes["add_check"] = [rows.check_row(each) for each in batch.checks]
    writes["put_answer"] = [rows.answer_row(each) for each in batch.answers]
    return [(STATEMENTS[name], values) for name, values in writes.items() if values]


def _write_rows(connection: sqlite3.Connection, statement: str, values: list[rows.Row]) -> None:
    """Many rows to a statement: the GIL is let go once for each, and to get it back beside a busy loop takes long."""
    done = 0
    for count in ROWS_AT_ONCE:
        many = _with_rows(statement, count)
        while len(values) - done >= count:
            connection.execute(many, list(chain.from_iterable(values[done : done + count])))
            done += count


@cache
def _with_rows(statement: str, count: int) -> str:
    """A statement with one row of values, with room for many."""
    head, values, row, tail = _VALUES.split(statement)
    return f"{head}{values}{', '.join([row] * count)}{tail}"


_VALUES: Final = re.compile(r"(VALUES )(\([?, ]+\))")


def _migrate(connection: sqlite3.Connection) -> None:
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    for number, script in migrations():
        if number > version:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def _unavailable(path: Path, error: sqlite3.Error) -> StoreUnavailable:
    text = str(error)
    if "full" in text:
        return StoreUnavailable(f"{path}: disk full, not accepting work; free some space", "full")
    if "locked" in text or "busy" in text:
        return StoreUnavailable(f"{path} is locked by another process; it is tried again", "locked")
    return StoreUnavailable(f"{path} cannot be written: {text}", "failed")
