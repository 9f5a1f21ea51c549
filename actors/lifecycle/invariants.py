"""What must always be true of records and their histories: in tests, in simulation, and in a database.

Single state, monotonic progress, worker assignment, retry limit, order of time, dependencies, and a workstream that
agrees with its tasks. Each check answers with its breaches and changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

import msgspec

from understudy.actors.lifecycle.machine import START, InvalidTransition, Machine, Trait
from understudy.actors.lifecycle.task import TASK, TaskState
from understudy.actors.lifecycle.workstream import WorkstreamState
from understudy.actors.records import TaskRecord, Transition, WorkerRecord, WorkstreamRecord


class Invariant(StrEnum):
    SINGLE_STATE = "single state"
    LEGAL_MOVES = "legal moves"
    MONOTONIC = "monotonic progress"
    WORKER_ASSIGNMENT = "worker assignment"
    RETRY_LIMIT = "retry limit"
    TIME_ORDER = "order of time"
    DEPENDENCIES = "dependencies"
    CONSISTENCY = "workstream agrees with its tasks"
    CAPACITY = "capacity of workers"


class Breach(msgspec.Struct, frozen=True):
    invariant: Invariant
    record: str
    what: str

    def __str__(self) -> str:
        return f"{self.record}: {self.what} ({self.invariant.value})"


def check_history(machine: Machine, transitions: Iterable[Transition]) -> Iterator[Breach]:
    """One record's moves, in order: each legal, each from where the last one led, none out of an end."""
    state, generation, at = START, 0, 0
    for each in transitions:
        name = f"{machine.entity} {each.record_id}"
        if each.from_state == START:
            if each.generation <= generation:
                yield Breach(Invariant.SINGLE_STATE, name, f"generation {each.generation} begins after {generation}")
        elif each.generation != generation or each.from_state != state:
            what = f"move {each.sequence} leaves {each.from_state}, but the record was {state}"
            ended = state in machine.states and machine.is_terminal(state)
            yield Breach(Invariant.MONOTONIC if ended else Invariant.SINGLE_STATE, name, what)
        try:
            machine.check(each.record_id, each.from_state, each.trigger, each.to_state)
        except InvalidTransition:
            what = f"move {each.sequence}, {each.from_state} -> {each.to_state} by {each.trigger}, is not in the table"
            yield Breach(Invariant.LEGAL_MOVES, name, what)
        if each.at < at:
            yield Breach(Invariant.TIME_ORDER, name, f"move {each.sequence} is older than the one before")
        state, generation, at = each.to_state, each.generation, each.at


def check_task(task: TaskRecord, state_of: Callable[[str], str | None] | None = None) -> Iterator[Breach]:
    """One task; its dependencies too, where the states of the others can be asked for by their keys."""
    name = f"task {task.id}"
    holds = Trait.HOLDS_WORKER in TASK.states[task.state]
    if task.worker_id is not None and not holds:
        yield Breach(Invariant.WORKER_ASSIGNMENT, name, f"has worker {task.worker_id} but is {task.state}")
    if holds and task.worker_id is None:
        yield Breach(Invariant.WORKER_ASSIGNMENT, name, "is running without a worker")
    if task.retry_count > task.max_retries:
        yield Breach(Invariant.RETRY_LIMIT, name, f"{task.retry_count} retries, at most {task.max_retries}")
    instants = [at for at in (task.created_at, task.started_at, task.completed_at) if at is not None]
    if instants != sorted(instants):
        yield Breach(Invariant.TIME_ORDER, name, "created, started and completed are not in this order")
    if state_of is not None and task.state not in _NOT_BEGUN:
        for key in task.depends_on:
            before = state_of(key)
            if before is None or not TASK.is_terminal(before):
                what = f"is {task.state} although {key} is {before or 'missing'}"
                yield Breach(Invariant.DEPENDENCIES, name, what)


_NOT_BEGUN = frozenset(
    {TaskState.PENDING, TaskState.SKIPPED, TaskState.CANCELLED, TaskState.RESOLVED, TaskState.FAILED}
)


def check_workstream(workstream: WorkstreamRecord, tasks: Iterable[TaskRecord]) -> Iterator[Breach]:
    """Whether a workstream agrees with its tasks: not begun while one runs, and not ended while one has not."""
    name = f"workstream {workstream.id}"
    if workstream.state in _NOT_STARTED:
        for task in tasks:
            if Trait.ACTIVE in TASK.states[task.state]:
                yield Breach(Invariant.CONSISTENCY, name, f"is {workstream.state}, but task {task.id} is {task.state}")
    if workstream.state in _ENDED:
        for task in tasks:
            if not TASK.is_terminal(task.state):
                yield Breach(Invariant.CONSISTENCY, name, f"is {workstream.state}, but task {task.id} is {task.state}")
            elif workstream.state is WorkstreamState.COMPLETED and task.state is TaskState.FAILED and not task.optional:
                yield Breach(Invariant.CONSISTENCY, name, f"is completed, but task {task.id} is failed")


_NOT_STARTED = frozenset({WorkstreamState.PLANNED, WorkstreamState.READY})
_ENDED = frozenset(
    {WorkstreamState.COMPLETED, WorkstreamState.FAILED, WorkstreamState.CANCELLED, WorkstreamState.RESOLVED}
)


def check_worker(worker: WorkerRecord) -> Iterator[Breach]:
    if len(worker.task_ids) > worker.max_concurrent_tasks:
        what = f"has {len(worker.task_ids)} tasks, at most {worker.max_concurrent_tasks}"
        yield Breach(Invariant.CAPACITY, f"worker {worker.id}", what)
