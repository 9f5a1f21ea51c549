"""What there is to be seen of one workstream and its children: kept up to date by what was committed.

It asks nobody and waits for nothing. What it keeps of a task is small, so that a graph of 100,000 can be watched.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from understudy.actors.lifecycle import TASK, WORKSTREAM, Entity, TaskState, WorkerState, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order
from understudy.actors.records import BreakerRecord, TaskRecord, WorkerRecord, WorkstreamRecord

LINES_KEPT = 8
LINE_LENGTH_KEPT = 1_000  # no screen is wider
_SUCCEEDED: frozenset[TaskState] = frozenset({TaskState.COMPLETED, TaskState.RESOLVED, TaskState.SKIPPED})


class TaskView(msgspec.Struct):
    """A task as it is shown."""

    workstream_id: str
    key: str
    state: TaskState
    depends_on: tuple[str, ...] = ()
    attempts: int = 0
    attempts_max: int = 1
    began_at: int | None = None  # its last attempt, or its wait
    ended_at: int | None = None
    started_at: int | None = None
    due_at: int | None = None
    worker_id: str | None = None
    error: str | None = None
    tool: str | None = None
    line: str | None = None  # the last one that was heard of it

    @property
    def has_ended(self) -> bool:
        return TASK.is_terminal(self.state)


class Scene:
    def __init__(self, root_id: str) -> None:
        self.root_id = root_id
        self.workstreams: dict[str, WorkstreamRecord] = {}  # the root and its children
        self.tasks: dict[str, TaskView] = {}
        self.workers: dict[str, WorkerRecord] = {}
        self.breakers: dict[str, BreakerRecord] = {}
        self.lines: deque[tuple[str, str]] = deque(maxlen=LINES_KEPT)  # the newest, with their tasks
        self._by_state: dict[TaskState, dict[str, TaskView]] = {state: {} for state in TaskState}

    # What is heard

    def landed(self, batch: Batch) -> None:
        for (entity, record_id), record in batch.snapshots.items():
            self.see(entity, record_id, record)

    def heard(self, order: Order, line: str) -> None:
        view = self.tasks.get(order.task_id)
        if view is not None:
            view.line = line[:LINE_LENGTH_KEPT]
            self.lines.append((self.name_of(view), view.line))

    def see(self, entity: Entity, record_id: str, record: Any) -> None:
        """One record as it is now."""
        match record:
            case WorkstreamRecord():
                if record_id == self.root_id or record.parent_id in self.workstreams:
                    self.workstreams[record_id] = msgspec.structs.replace(record, definition=None)
            case TaskRecord():
                if record.workstream_id in self.workstreams:
                    self._see_task(record)
            case WorkerRecord():
                self.workers[record_id] = record
            case BreakerRecord():
                self.breakers[record_id] = record
            case _:
                pass

    def _see_task(self, record: TaskRecord) -> None:
        view = self.tasks.get(record.id)
        if view is None:
            view = self.tasks[record.id] = TaskView(record.workstream_id, record.key, record.state, record.depends_on)
        elif view.state is not record.state:
            self._by_state[view.state].pop(record.id, None)
        self._by_state[record.state][record.id] = view
        if view.state is not record.state or view.attempts != record.attempts:
            view.began_at = record.updated_at
        view.state, view.attempts, view.attempts_max = record.state, record.attempts, record.max_retries + 1
        view.due_at, view.worker_id, view.error = record.due_at, record.worker_id, record.last_error
        view.started_at, view.ended_at = record.started_at, record.completed_at
        if record.definition is not None:
            view.tool = record.definition.tool or record.definition.call

    # What can be said of it

    @property
    def root(self) -> WorkstreamRecord | None:
        return self.workstreams.get(self.root_id)

    @property
    def total(self) -> int:
        return len(self.tasks)

    @property
    def counts(self) -> dict[TaskState, int]:
        """How many tasks are in each state that there is one in."""
        return {state: len(views) for state, views in self._by_state.items() if views}

    def tasks_in(self, state: TaskState) -> dict[str, TaskView]:
        """In the order in which they came to it."""
        return self._by_state[state]

    @property
    def succeeded(self) -> int:
        return sum(len(self._by_state[state]) for state in _SUCCEEDED)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or nothing will move before somebody does something."""
        root = self.root
        if root is None:
            return False
        return WORKSTREAM.is_terminal(root.state) or self.is_blocked

    @property
    def is_blocked(self) -> bool:
        blocked = [each for each in self.workstreams.values() if each.state is WorkstreamState.BLOCKED]
        if not blocked:
            return False
        waiting_for = sum(each.id != self.root_id for each in blocked)  # each by a task of its parent, which runs
        moving = sum(len(self._by_state[state]) for state in _MOVING)
        return moving <= waiting_for

    def name_of(self, view: TaskView) -> str:
        """A task's key, with its workstream where that is a child."""
        if view.workstream_id == self.root_id:
            return view.key
        return f"{view.workstream_id.removeprefix(f'{self.root_id}.')}/{view.key}"

    def children_of(self, workstream_id: str) -> Iterator[WorkstreamRecord]:
        yield from (each for each in self.workstreams.values() if each.parent_id == workstream_id)

    def breaker_of(self, view: TaskView) -> BreakerRecord | None:
        return self.breakers.get(view.tool or "")

    def busy_workers(self) -> list[tuple[str, int, int]]:
        """Workers that live, with how many tasks they have and could have."""
        alive = [each for each in self.workers.values() if each.state not in _GONE]
        return [(each.id, len(each.task_ids), each.max_concurrent_tasks) for each in alive]


_GONE = frozenset({WorkerState.SHUTDOWN, WorkerState.FAILED, WorkerState.TERMINATED})
_MOVING = frozenset(state for state in TaskState if not TASK.is_terminal(state) and state is not TaskState.PENDING)
