"""Commit before effect: nothing is released before its batch is durable, and a batch that fails is tried again."""

from typing import Any

import msgspec
import pytest

from tests.contract.stores.samples import answer, attempt, task, workstream
from understudy.actors.journal import PENDING_MAX, Book, Journal
from understudy.actors.kernel import Ref, SimulatedKernel, Status
from understudy.actors.lifecycle import Entity, InvalidTransition, Severity, TaskState
from understudy.actors.ports.store import AttemptQuery, Batch, StoreUnavailable
from understudy.actors.records import TaskRecord
from understudy.adapters.stores.memory import MemoryStore


class FaultyStore(MemoryStore):
    """Keeps every batch that it was asked to commit, and fails as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[Batch] = []
        self.error: BaseException | None = None

    async def commit(self, batch: Batch) -> None:
        self.tried.append(batch)
        if self.error is not None:
            raise self.error
        await super().commit(batch)


class World:
    def __init__(self, seed: int = 1) -> None:
        self.kernel = SimulatedKernel(seed)
        self.store = FaultyStore()
        self.book = Book(last_sequence=0, wall_us=lambda: 1_000)
        self.journal: Ref[Any] = self.kernel.spawn(Journal, (self.book, self.store), name="journal")
        self.released: list[str] = []

    def queue(self, number: int) -> None:
        """A task is created and queued: two moves of one record, and somebody waits for them."""
        pending = task(f"w/{number}")
        queued = msgspec.structs.replace(pending, state=TaskState.QUEUED, previous_state="pending")
        self.book.move(Entity.TASK, None, pending, "created")
        self.book.move(Entity.TASK, pending, queued, "scheduler_assigned")
        self.book.then(lambda: self.released.append(queued.id))


async def test_what_happens_in_one_go_lands_in_one_batch_with_one_snapshot_a_record() -> None:
    world = World()
    for number in range(3):
        world.queue(number)
    world.kernel.run()
    [landed] = world.store.tried
    assert len(landed.transitions) == 6
    assert len(landed.snapshots) == 3
    assert [each.sequence for each in await world.store.trail()] == [1, 2, 3, 4, 5, 6]
    assert [record.state for record in await world.store.page(Entity.TASK)] == ["queued"] * 3


def test_nothing_is_released_before_it_is_durable() -> None:
    world = World()
    world.kernel.run()
    world.store.error = StoreUnavailable("disk full", "full")
    world.queue(1)
    world.kernel.run(until=world.kernel.clock.now() + 10)
    assert world.released == []
    world.store.error = None
    world.kernel.run()
    assert world.released == ["w/1"]


async def test_batch_that_did_not_land_is_tried_again_as_it_was_with_intake_closed() -> None:
    world = World()
    world.store.error = StoreUnavailable("disk full, not accepting work", "full")
    world.queue(1)
    world.kernel.run(until=1)
    assert world.book.closed_because == "disk full, not accepting work"
    world.queue(2)
    world.kernel.run(until=2)
    assert len({id(batch) for batch in world.store.tried}) == 1
    assert len(world.store.tried) > 2
    world.store.error = None
    world.kernel.run()
    assert world.book.trouble is None
    assert world.released == ["w/1", "w/2"]
    assert [each.sequence for each in await world.store.trail()] == [1, 2, 3, 4]


def test_new_moves_do_not_hurry_a_batch_that_waits_for_its_next_try() -> None:
    world = World()
    world.store.error = StoreUnavailable("disk full", "full")
    world.queue(1)
    world.kernel.run(until=0.1)
    for number in range(2, 12):
        world.queue(number)
        world.kernel.run(until=0.1)
    assert len(world.store.tried) == 1


def test_moves_that_gather_behind_a_slow_disk_close_the_intake() -> None:
    book = Book(0, lambda: 1)
    pending = task()
    for _ in range(PENDING_MAX):
        book.move(Entity.TASK, None, pending, "created")
    assert book.closed_because == f"the disk is slow: {PENDING_MAX} moves wait to be stored"


def test_illegal_move_is_counted_and_changes_nothing() -> None:
    book = Book(0, lambda: 1)
    with pytest.raises(InvalidTransition):
        book.move(Entity.TASK, task(), task(state=TaskState.COMPLETED), "validation_passed")
    assert (book.refused, book.sequence, book.take()) == (1, 0, None)


def test_new_generation_begins_a_life_from_the_start() -> None:
    book = Book(7, lambda: 5)
    failed, anew = task(state=TaskState.FAILED), task(generation=2)
    transition = book.move(Entity.TASK, failed, anew, "reset", who="ada", reason="fixed")
    assert (transition.sequence, transition.from_state, transition.generation) == (8, "*", 2)
    assert (transition.who, transition.reason, transition.at, transition.workstream_id) == ("ada", "fixed", 5, "w")


def test_severity_is_the_tables() -> None:
    book = Book(0, lambda: 1)
    running = task(state=TaskState.RUNNING)
    transition = book.move(Entity.TASK, running, task(state=TaskState.ERRORED), "execution_failed")
    assert transition.severity is Severity.WARNING


async def test_attempts_answers_and_snapshots_land_too() -> None:
    world = World()
    world.book.add_attempt(attempt())
    world.book.add_answer(answer())
    world.book.put(Entity.WORKSTREAM, workstream())
    world.kernel.run()
    assert await world.store.attempts(AttemptQuery()) == [attempt()]
    assert await world.store.answer_to("r-1", now=0) == answer()
    assert await world.store.load(Entity.WORKSTREAM, "w") == workstream()


def test_callback_that_raises_does_not_keep_the_others_from_hearing() -> None:
    world = World()

    def fail() -> None:
        raise ZeroDivisionError

    world.book.then(fail)
    world.queue(1)
    world.kernel.run()
    assert world.released == ["w/1"]
    assert isinstance(world.kernel.poison[0].error, ZeroDivisionError)


def test_journal_that_crashes_loses_nothing() -> None:
    world = World()
    world.store.error = ValueError("a bug")
    world.queue(1)
    world.kernel.run()
    assert world.kernel.health().status is Status.DEGRADED
    assert world.book.closed_because == "a commit failed: ValueError('a bug')"
    world.store.error = None
    world.kernel.revive(world.journal)
    world.kernel.run()
    assert world.released == ["w/1"]


async def test_closing_the_kernel_lands_what_has_gathered() -> None:
    world = World()
    world.kernel.run()
    world.queue(1)
    report = world.kernel.close()
    assert report.drained
    assert world.released == ["w/1"]


def test_callback_that_writes_and_then_raises_releases_nothing_too_early() -> None:
    world = World()
    world.queue(1)

    def write_and_fail() -> None:
        world.queue(2)
        world.store.error = StoreUnavailable("disk full", "full")
        raise ZeroDivisionError

    world.book.then(write_and_fail)
    world.kernel.run(until=10)
    assert world.released == ["w/1"]
    world.store.error = None
    world.kernel.run()
    assert world.released == ["w/1", "w/2"]


async def test_wall_clock_that_jumps_back_does_not_turn_the_trail_around() -> None:
    times = iter([100, 50, 200])
    book = Book(0, lambda: next(times))
    moves = [book.move(Entity.TASK, None, task(f"w/{number}"), "created") for number in range(3)]
    assert [each.at for each in moves] == [100, 100, 200]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (task(state=TaskState.RUNNING), task(generation=2)),
        (task(state=TaskState.FAILED, generation=2), task(generation=1)),
    ],
)
def test_only_what_has_ended_begins_its_next_generation(before: TaskRecord, after: TaskRecord) -> None:
    with pytest.raises(InvalidTransition):
        Book(0, lambda: 1).move(Entity.TASK, before, after, "reset")
