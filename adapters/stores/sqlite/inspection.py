"""Looking into a database without touching it: is it whole, and does it make sense?

Reads page by page, so that memory does not grow with the file. Whatever is damaged becomes a finding; nothing is
deleted or mended here.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from understudy.actors.engine.remedies import name_target
from understudy.actors.lifecycle import MACHINES, Entity, TaskState
from understudy.actors.lifecycle.invariants import (
    Breach,
    check_history,
    check_task,
    check_worker,
    check_workstream,
)
from understudy.actors.ports.store import DamagedRow, StoreRefused
from understudy.actors.records import Record, TaskRecord, Transition, WorkerRecord, WorkstreamRecord, task_id
from understudy.adapters.stores.sqlite import rows
from understudy.adapters.stores.sqlite.durability import Durability
from understudy.adapters.stores.sqlite.ownership import owner_of
from understudy.adapters.stores.sqlite.reader import PAGE, UNREADABLE, open_read_only
from understudy.adapters.stores.sqlite.statements import SCHEMA_VERSION, STATEMENTS, migrations

T = TypeVar("T")


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is wrong with a database."""

    kind: str  # damaged or inconsistent
    what: str
    remedy: str | None = None  # a command that mends it

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}" + (f"; mend it with: {self.remedy}" if self.remedy else "")


class Condition(msgspec.Struct, frozen=True):
    """How a database is doing."""

    path: str
    bytes: int
    wal_bytes: int
    sqlite: str
    schema: int
    durability: str
    owner_pid: int | None
    transitions: int
    workstreams: dict[str, int]
    tasks: dict[str, int]


def examine(path: Path) -> Condition:
    connection = open_read_only(path)
    try:
        return _condition_of(path, connection)
    except UNREADABLE as error:
        raise StoreRefused(f"{path} is damaged: {error}; restore a copy") from None
    finally:
        connection.close()


def _condition_of(path: Path, connection: sqlite3.Connection) -> Condition:
    meta = dict(connection.execute(STATEMENTS["select_meta"]).fetchall())
    wal = path.with_name(path.name + "-wal")
    [(newest,)] = connection.execute(STATEMENTS["last_sequence"]).fetchall()
    return Condition(
        path=str(path),
        bytes=path.stat().st_size,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        sqlite=sqlite3.sqlite_version,
        schema=SCHEMA_VERSION,
        durability=meta.get("durability", "unknown"),
        owner_pid=owner_of(path),
        transitions=newest,
        workstreams=dict(connection.execute(STATEMENTS["count_workstreams_by_state"]).fetchall()),
        tasks=dict(connection.execute(STATEMENTS["count_tasks_by_state"]).fetchall()),
    )


def find_faults(path: Path) -> Iterator[Finding]:
    """Everything that is wrong with a database, as it is found."""
    connection = open_read_only(path)
    try:
        yield from _of_file(connection)
        yield from _Inspection(connection).run()
    except UNREADABLE as error:
        yield Finding("damaged", f"the file cannot be read on: {error}")
    finally:
        connection.close()


def _of_file(connection: sqlite3.Connection) -> Iterator[Finding]:
    for (text,) in connection.execute("PRAGMA integrity_check"):
        if text != "ok":
            yield Finding("damaged", f"SQLite says: {text}")
    meta = dict(connection.execute(STATEMENTS["select_meta"]).fetchall())
    if meta.get("durability") not in set(Durability):
        yield Finding("damaged", f"the file says that its durability is {meta.get('durability')!r}")
    with closing(sqlite3.connect(":memory:")) as fresh:
        for _, script in migrations():
            fresh.executescript(script)
        wanted = set(fresh.execute(STATEMENTS["schema"]))
    for (missing,) in wanted - set(connection.execute(STATEMENTS["schema"])):
        yield Finding("damaged", f"{missing} is missing")


class _Inspection:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.damaged: list[Finding] = []
        self.workstream: WorkstreamRecord | None = None

    def run(self) -> Iterator[Finding]:
        for entity in Entity:
            yield from self._of_snapshots(entity)
        yield from self._of_company()
        yield from self._of_histories()
        yield from self._of_results()

    def _of_snapshots(self, entity: Entity) -> Iterator[Finding]:
        for record in self._records(entity):
            match record:
                case TaskRecord():
                    yield from _told(check_task(record, self._state_in(record.workstream_id)))
                    workstream = self._workstream(record.workstream_id)
                    if workstream is not None:
                        remedy = f"understudy reset {record.id}" if record.state is TaskState.FAILED else None
                        yield from _told(check_workstream(workstream, [record]), remedy)
                case WorkerRecord():
                    yield from _told(check_worker(record))
                case _:
                    pass
        yield from self._damage()

    def _of_company(self) -> Iterator[Finding]:
        """Records that stand alone: tasks without a workstream, and what no move leads to."""
        for (orphan,) in self.connection.execute(STATEMENTS["orphans"]):
            yield Finding("inconsistent", f"task {orphan} belongs to no workstream")
        for (record,) in self.connection.execute(STATEMENTS["without_moves"]):
            yield Finding("inconsistent", f"{record} is there, but no move leads to it")

    def _workstream(self, workstream_id: str) -> WorkstreamRecord | None:
        """A task's workstream. Tasks come in the order of their ids, so the last one is mostly the right one."""
        if self.workstream is None or self.workstream.id != workstream_id:
            statement = f"{STATEMENTS['select_workstream']} WHERE id = ?"
            found = self.connection.execute(statement, (workstream_id,)).fetchall()
            try:
                record = rows.read_snapshot(Entity.WORKSTREAM, found[0]) if found else None
            except DamagedRow:
                record = None  # it is told among the workstreams
            self.workstream = record if isinstance(record, WorkstreamRecord) else None
        return self.workstream

    def _state_in(self, workstream_id: str) -> Callable[[str], str | None]:
        """How to ask for the states of a workstream's tasks."""

        def state_of(key: str) -> str | None:
            found = self.connection.execute(STATEMENTS["state_of_task"], (task_id(workstream_id, key),)).fetchall()
            return found[0][0] if found else None

        return state_of

    def _of_histories(self) -> Iterator[Finding]:
        """Each record's chain of moves, and whether it ends where the record is."""
        for (record_id, entity), moves in groupby(self._moves(), key=lambda each: (each.record_id, each.entity)):
            last: list[Transition] = []
            yield from _told(check_history(MACHINES[entity], _remember_last(moves, last)))
            statement = f"{STATEMENTS[f'select_{entity.value}']} WHERE id = ?"
            found = self.connection.execute(statement, (record_id,)).fetchall()
            if not found:
                yield Finding("inconsistent", f"{entity.value} {record_id} has moves but no record")
            elif last and (found[0][1], found[0][2]) != (last[0].to_state, last[0].generation):
                what = f"{entity.value} {record_id} is {found[0][1]}, but its last move led to {last[0].to_state}"
                yield Finding("inconsistent", what, _repairing(entity, record_id))
        yield from self._damage()

    def _of_results(self) -> Iterator[Finding]:
        """Attempts, checks and stored answers: whether their rows are whole."""
        for name, read, start in (
            ("page_of_attempts", rows.read_attempt, (b"", 0, 0, b"")),
            ("page_of_checks", rows.read_check, (b"", 0, 0, -1)),
            ("page_of_answers", rows.read_answer, (b"",)),
        ):
            for row in self._pages(name, start):
                self._read(read, row)
        yield from self._damage()

    def _records(self, entity: Entity) -> Iterator[Record]:
        for row in self._pages(f"page_of_{entity.value}", (b"",)):
            record = self._read(lambda row: rows.read_whole_row(entity, row), row, _repairing(entity, row[0]))
            if record is not None:
                yield record

    def _moves(self) -> Iterator[Transition]:
        for row in self._pages("trail_by_record", (b"", b"", 0)):
            move = self._read(rows.read_transition, row)
            if move is not None:
                yield move

    def _pages(self, name: str, start: tuple[Any, ...]) -> Iterator[rows.Row]:
        """All rows of a table. The key stands at the end of each row, as it is on the disk: its text may be damaged."""
        after, size = start, len(start)
        while page := self.connection.execute(STATEMENTS[name], (*after, PAGE)).fetchall():
            for row in page:
                yield row[:-size]
            after = page[-1][-size:]

    def _read(self, read: Callable[[rows.Row], T], row: rows.Row, remedy: str | None = None) -> T | None:
        try:
            return read(row)
        except (DamagedRow, msgspec.MsgspecError, TypeError, ValueError) as error:
            self.damaged.append(Finding("damaged", str(error), remedy))
            return None

    def _damage(self) -> Iterator[Finding]:
        found, self.damaged = self.damaged, []
        return iter(found)


def _told(breaches: Iterator[Breach], remedy: str | None = None) -> Iterator[Finding]:
    return (Finding("inconsistent", str(breach), remedy) for breach in breaches)


def _repairing(entity: Entity, record_id: str) -> str:
    return f"understudy repair {name_target(entity, record_id)}"


def _remember_last(moves: Iterator[Transition], last: list[Transition]) -> Iterator[Transition]:
    for move in moves:
        last[:] = [move]
        yield move
