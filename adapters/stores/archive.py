"""Finished workstreams, put away: one readable file each, with everything that is known of them.

A file is written whole before anything is removed from the store. A crash in between leaves both, and the next run
writes the same file again.
"""

import os
import re
from pathlib import Path

import msgspec

from understudy.actors.definition.limits import ID_PATTERN
from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import WORKSTREAM, Entity, Trait
from understudy.actors.ports.store import AttemptQuery, Store
from understudy.actors.records import Attempt, CheckResult, TaskRecord, Transition, WorkstreamRecord


class Archived(msgspec.Struct, frozen=True):
    """A workstream as it ended, and how it came to that."""

    workstream: WorkstreamRecord
    tasks: list[TaskRecord]
    transitions: list[Transition]
    attempts: list[Attempt]
    checks: list[CheckResult]


class ArchiveError(UnderstudyError):
    """An archive that cannot be read."""


async def archive_finished(store: Store, folder: Path, now_us: int, retention_s: float) -> list[str]:
    """Put away what ended longer ago than the retention. Answers the names of the files."""
    done: list[str] = []
    states = sorted(WORKSTREAM.having(Trait.TERMINAL))
    after = ""
    while page := await store.page(Entity.WORKSTREAM, states=states, after=after):
        for record in page:
            if isinstance(record, WorkstreamRecord) and record.updated_at + retention_s * 1e6 <= now_us:
                path = write_archive(folder, await _gather(store, record))
                if await store.remove_workstream(record):  # not if it was reset meanwhile
                    done.append(path.name)
                else:
                    path.unlink()
        after = page[-1].id
    return done


def write_archive(folder: Path, archived: Archived) -> Path:
    record = archived.workstream
    if not re.search(ID_PATTERN, record.id):
        raise ArchiveError(f"{record.id!r} cannot be the name of a file")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.id}.{record.created_at}.json"  # an id may be used again
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(archived)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)  # the name, too, before anything is removed
    finally:
        os.close(directory)
    return path


def read_archive(path: Path) -> Archived:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Archived)
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ArchiveError(f"{path} is not an archive of understudy: {error}") from None


async def _gather(store: Store, workstream: WorkstreamRecord) -> Archived:
    tasks: list[TaskRecord] = []
    after = ""
    while page := await store.page(Entity.TASK, workstream_id=workstream.id, after=after, limit=1_000):
        tasks += (task for task in page if isinstance(task, TaskRecord))
        after = page[-1].id
    moves = await _moves_of(store, Entity.WORKSTREAM, workstream.id)
    attempts: list[Attempt] = []
    checks = await store.checks(workstream.id)
    for task in tasks:
        moves += await _moves_of(store, Entity.TASK, task.id)
        attempts += await store.attempts(AttemptQuery(task_id=task.id, limit=100_000))
        checks += await store.checks(task.id)
    return Archived(workstream, tasks, sorted(moves, key=lambda each: each.sequence), attempts, checks)


async def _moves_of(store: Store, entity: Entity, record_id: str) -> list[Transition]:
    moves: list[Transition] = []
    while page := await store.history(entity, record_id, after=moves[-1].sequence if moves else 0):
        moves += page
    return moves
