"""The store on SQLite: commits through one write connection, reads through another."""

import re
import sqlite3
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, Self, TypeVar

from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import Batch, StoreRefused, StoreUnavailable
from understudy.actors.records import WorkstreamRecord
from understudy.adapters.stores.sqlite import rows
from understudy.adapters.stores.sqlite.connection import Connection
from understudy.adapters.stores.sqlite.durability import Durability
from understudy.adapters.stores.sqlite.ownership import Ownership, refuse_stranger
from understudy.adapters.stores.sqlite.reader import BUSY_MS, SqliteReader
from understudy.adapters.stores.sqlite.repair import Repair, note_of, plan_repair
from understudy.adapters.stores.sqlite.statements import STATEMENTS, migrations

WAL_BYTES_MAX: Final = 64 * 2**20
ROWS_AT_ONCE: Final = (300, 100, 30, 10, 3, 1)  # in one statement

T = TypeVar("T")


class SqliteStore(SqliteReader):
    """Open it with `async with`. A second writer is refused, and told who is the first."""

    def __init__(self, path: str | Path, *, durability: Durability = Durability.FULL, busy_ms: int = BUSY_MS) -> None:
        super().__init__(path, busy_ms=busy_ms)
        self._durability = durability
        self._ownership = Ownership(self.path)
        self._writer = Connection(self.path, read_only=False)

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

    async def _close(self) -> None:
        try:
            await super()._close()
            await self._writer.close()
        finally:
            self._ownership.release()

    async def commit(self, batch: Batch) -> None:
        writes = writes_of(batch)

        def write(connection: sqlite3.Connection) -> None:
            for statement, values in writes:
                _write_rows(connection, statement, values)

        await self._transact(write)

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

    async def mend(self, repair: Repair, at: int, who: str | None, why: str | None) -> None:
        """Write a row anew, and keep what it said. Not if it says something else by now."""
        name = f"repaired {repair.entity} {repair.record.id} {at}"

        def write(connection: sqlite3.Connection) -> None:
            _write_rows(connection, STATEMENTS[rows.STATEMENT_OF[repair.entity]], [rows.snapshot_row(repair.record)])
            connection.execute(STATEMENTS["put_meta"], (name, note_of(repair, who, why)))

        if plan_repair(self.path, repair.entity, repair.record.id) != repair:
            raise StoreRefused(f"{repair.entity} {repair.record.id} has changed meanwhile: look at it again")
        await self._transact(write)

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
            await self._open_reader()
        except sqlite3.DatabaseError as error:
            raise StoreRefused(f"{self.path} cannot be opened: {error}; is it a database of understudy?") from error
        said = ("durability", self._durability.value)
        await self._transact(lambda connection: connection.execute(STATEMENTS["put_meta"], said))

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
