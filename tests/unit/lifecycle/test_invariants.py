"""Every invariant holds for a sound life, and is seen to be broken by a broken one."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.contract.stores.samples import task, worker, workstream
from tests.integration.stores.database import tell_story
from understudy.actors.lifecycle import MACHINES, TASK, Entity, TaskState, WorkstreamState
from understudy.actors.lifecycle.invariants import (
    Invariant,
    check_history,
    check_task,
    check_worker,
    check_workstream,
)
from understudy.actors.records import TaskRecord, Transition


def moves_of(record_id: str = "WS-001/s1") -> list[Transition]:
    taken = tell_story().book.take()
    assert taken is not None
    return [each for each in taken[0].transitions if each.record_id == record_id]


@pytest.mark.parametrize(("entity", "record_id"), list(tell_story().records))
def test_sound_life_breaks_nothing(entity: Entity, record_id: str) -> None:
    assert list(check_history(MACHINES[entity], moves_of(record_id))) == []


def changed(index: int, **fields: Any) -> Callable[[list[Transition]], list[Transition]]:
    def change(moves: list[Transition]) -> list[Transition]:
        moves[index] = msgspec.structs.replace(moves[index], **fields)
        return moves

    return change


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (changed(3, to_state="completed"), Invariant.LEGAL_MOVES),
        (changed(3, trigger="created"), Invariant.LEGAL_MOVES),
        (lambda moves: [*moves[:3], *moves[4:]], Invariant.SINGLE_STATE),
        (lambda moves: [*moves, moves[0]], Invariant.SINGLE_STATE),
        (lambda moves: [*moves, moves[1]], Invariant.MONOTONIC),
        (changed(4, at=0), Invariant.TIME_ORDER),
    ],
)
def test_broken_history_is_seen(change: Callable[[list[Transition]], list[Transition]], invariant: Invariant) -> None:
    assert invariant in {breach.invariant for breach in check_history(TASK, change(moves_of()))}


def test_new_generation_after_the_end_is_no_breach() -> None:
    again = msgspec.structs.replace(moves_of()[0], generation=2, trigger="reset", at=moves_of()[-1].at)
    assert list(check_history(TASK, [*moves_of(), again])) == []


@pytest.mark.parametrize(
    ("record", "invariant"),
    [
        (task(state=TaskState.QUEUED, worker_id="w"), Invariant.WORKER_ASSIGNMENT),
        (task(state=TaskState.RUNNING), Invariant.WORKER_ASSIGNMENT),
        (task(retry_count=2, max_retries=1), Invariant.RETRY_LIMIT),
        (task(started_at=9, completed_at=5), Invariant.TIME_ORDER),
        (task(state=TaskState.QUEUED, depends_on=("other",)), Invariant.DEPENDENCIES),
        (task(state=TaskState.QUEUED, depends_on=("missing",)), Invariant.DEPENDENCIES),
    ],
)
def test_broken_task_is_seen(record: TaskRecord, invariant: Invariant) -> None:
    states = {"other": "running"}
    assert [breach.invariant for breach in check_task(record, states.get)] == [invariant]


def test_task_whose_dependencies_have_ended_is_sound() -> None:
    states = {"other": "completed"}
    assert list(check_task(task(state=TaskState.QUEUED, depends_on=("other",)), states.get)) == []


@pytest.mark.parametrize(
    ("state", "tasks", "breaches"),
    [
        (WorkstreamState.COMPLETED, [task(state=TaskState.COMPLETED)], 0),
        (WorkstreamState.COMPLETED, [task(state=TaskState.RUNNING)], 1),
        (WorkstreamState.COMPLETED, [task(state=TaskState.FAILED)], 1),
        (WorkstreamState.COMPLETED, [task(state=TaskState.FAILED, optional=True)], 0),
        (WorkstreamState.FAILED, [task(state=TaskState.FAILED)], 0),
        (WorkstreamState.CANCELLED, [task(state=TaskState.PENDING)], 1),
        (WorkstreamState.EXECUTING, [task(state=TaskState.PENDING)], 0),
        (WorkstreamState.READY, [task(state=TaskState.RUNNING)], 1),
        (WorkstreamState.READY, [task(state=TaskState.QUEUED)], 0),
    ],
)
def test_workstream_agrees_with_its_tasks(state: WorkstreamState, tasks: list[TaskRecord], breaches: int) -> None:
    found = [breach.invariant for breach in check_workstream(workstream(state=state), tasks)]
    assert found == [Invariant.CONSISTENCY] * breaches


def test_worker_has_no_more_tasks_than_it_may() -> None:
    assert list(check_worker(worker(task_ids=("a",)))) == []
    assert [breach.invariant for breach in check_worker(worker(task_ids=("a", "b")))] == [Invariant.CAPACITY]
