"""Kill -9 at random moments, again and again on one file: nothing acknowledged is lost, nothing completed runs again.

`UNDERSTUDY_KILLS=1000` raises the number. The moments follow from a seed, and are counted in lines of its output.
"""

import os
import signal
from collections import Counter, defaultdict
from pathlib import Path

from tests.integration.engine.world import HANG_S, faults, start
from understudy.actors.engine.reading import read_all
from understudy.actors.kernel.entropy import SeededEntropy
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import AttemptQuery
from understudy.actors.records import Attempt, TaskRecord, Transition, WorkstreamRecord, task_id
from understudy.adapters.stores.sqlite import SqliteStore

KILLS = int(os.environ.get("UNDERSTUDY_KILLS", "100"))
SEED = int(os.environ.get("UNDERSTUDY_SEED", "1"))
LINES_MAX = 40  # after which a life ends at the latest
AT_ONCE = 4  # workstreams that the program has under way at once


class Kept:
    """Everything that the database holds, and what was written beside it."""

    def __init__(self, folder: Path) -> None:
        self.acknowledged = set((folder / "acknowledged").read_text().split())
        self.executions = (folder / "effects").read_text().split()
        self.workstreams: dict[str, WorkstreamRecord] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.attempts: dict[str, list[Attempt]] = defaultdict(list)
        self.moves: list[Transition] = []

    async def read(self, path: Path) -> None:
        async with SqliteStore(path) as store:
            async for each in read_all(store, Entity.WORKSTREAM):
                assert isinstance(each, WorkstreamRecord)
                self.workstreams[each.id] = each
            async for each in read_all(store, Entity.TASK):
                assert isinstance(each, TaskRecord)
                self.tasks[each.id] = each
            for attempt in await store.attempts(AttemptQuery(limit=10_000_000)):
                self.attempts[attempt.task_id].append(attempt)
            self.moves = [move async for move in store.follow()]


def live(database: Path, first: int, lines: int) -> None:
    """One life of the program, cut off after so many lines."""
    process = start("kill_program", database, database.parent, first)
    assert process.stdout is not None
    seen: list[str] = []
    while len(seen) < lines and (line := process.stdout.readline()):
        seen.append(line)
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == -signal.SIGKILL, "".join([*seen, output])


def next_number(folder: Path) -> int:
    """Where the next life begins: with what the last one had under way, which it asks for once more."""
    known = (folder / "acknowledged").read_text().split() if (folder / "acknowledged").exists() else []
    numbers = [int(each.removeprefix("w")) for each in known]
    return max(numbers, default=0) // AT_ONCE * AT_ONCE


async def test_kills_at_random_moments_lose_nothing_and_repeat_only_what_was_in_flight(tmp_path: Path) -> None:
    database, entropy = tmp_path / "state.db", SeededEntropy(SEED)
    for _ in range(KILLS):
        live(database, next_number(tmp_path), entropy.below(LINES_MAX))
    last = start("kill_program", database, tmp_path, -1)
    output, _ = last.communicate(timeout=HANG_S)
    assert output.endswith("finished: ok\n"), output
    assert last.returncode == 0
    assert faults(database) == []  # legal and contiguous moves, snapshots that agree with them
    kept = Kept(tmp_path)
    await kept.read(database)
    check_that_nothing_is_lost(kept)
    check_results(kept)
    check_executions(kept)
    check_order(kept)


def check_that_nothing_is_lost(kept: Kept) -> None:
    assert kept.acknowledged <= set(kept.workstreams)
    assert {each.state for each in kept.workstreams.values()} == {"completed"}
    assert {each.state for each in kept.tasks.values()} == {"completed"}
    assert len(kept.tasks) == 4 * len(kept.workstreams)
    assert [move.sequence for move in kept.moves] == list(range(1, len(kept.moves) + 1))


def check_results(kept: Kept) -> None:
    """One accepted result for each task and generation, and it is what the record holds."""
    accepted = Counter(
        (move.record_id, move.generation) for move in kept.moves if move.trigger == "execution_completed"
    )
    assert set(accepted.values()) == {1}
    assert len(accepted) == len(kept.tasks)
    for key, task in kept.tasks.items():
        completed = [each for each in kept.attempts[key] if each.outcome == "completed"]
        assert [each.attempt for each in completed] == [task.attempts]
        assert task.output == f"{key}/{task.generation}/{task.attempts}"


def check_executions(kept: Kept) -> None:
    """Every execution is an attempt that was stored before it, and every further one has its cause."""
    assert len(set(kept.executions)) == len(kept.executions)
    for key, task in kept.tasks.items():
        attempts = sorted(kept.attempts[key], key=lambda each: each.attempt)
        assert [each.attempt for each in attempts] == list(range(1, task.attempts + 1))
        assert {each.outcome for each in attempts[:-1]} <= {"lost", "failed"}
        assert attempts[0].cause is None
        assert all(each.cause for each in attempts[1:])
        if not key.endswith("/right"):  # the others fail by nothing but a crash
            assert {each.outcome for each in attempts[:-1]} <= {"lost"}
    known = {f"{each.task_id}/{each.generation}/{each.attempt}" for many in kept.attempts.values() for each in many}
    assert set(kept.executions) <= known


def check_order(kept: Kept) -> None:
    """No task starts before what it depends on has ended."""
    ended: set[str] = set()
    for move in kept.moves:
        if move.entity is not Entity.TASK:
            continue
        if move.to_state == "running":
            task = kept.tasks[move.record_id]
            assert {task_id(task.workstream_id, key) for key in task.depends_on} <= ended
        elif move.to_state == "completed":
            ended.add(move.record_id)
