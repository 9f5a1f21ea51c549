"""What is kept of every entity: its last snapshot, its audit trail, and how each attempt ended.

Records are frozen: a change is a new record. They hold what JSON can hold, so no cycles, and the garbage collector is
spared them. Instants are microseconds since 1970, by the wall clock.
"""

from typing import Any, TypeAlias

import msgspec

from understudy.actors.definition.workstream import Task
from understudy.actors.lifecycle import BreakerState, Entity, Severity, TaskState, WorkerState, WorkstreamState
from understudy.actors.ports.workspaces import MergePlan


class Transition(msgspec.Struct, frozen=True, gc=False):
    """One move of one record: a line of the audit trail. `sequence` orders all of them."""

    sequence: int
    entity: Entity
    record_id: str
    generation: int
    from_state: str
    to_state: str
    trigger: str
    at: int
    severity: Severity = Severity.INFO
    workstream_id: str | None = None
    reason: str | None = None
    who: str | None = None
    worker_id: str | None = None
    attempt: int | None = None
    correlation_id: str | None = None
    metadata: dict[str, Any] | None = None


class WorkstreamRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    id: str
    state: WorkstreamState
    created_at: int
    updated_at: int
    previous_state: str | None = None
    generation: int = 1
    name: str | None = None
    parent_id: str | None = None
    depth: int = 0
    reserved_workers: int = 1
    retry_count: int = 0
    max_retries: int = 0
    owner: str | None = None
    correlation_id: str | None = None
    started_at: int | None = None
    completed_at: int | None = None
    deadline_at: int | None = None
    due_at: int | None = None
    last_error: str | None = None
    ending: str | None = None  # the trigger of the end that it is on its way to
    workspace: str | None = None  # the directory that its tasks work in
    merge: MergePlan | None = None  # what was brought back from there, or is to be
    definition: Any = None  # a Workstream; its tasks are left out once each has a record of its own


def task_id(workstream_id: str, key: str) -> str:
    """A task is known everywhere by this; its key is its id within its workstream."""
    return f"{workstream_id}/{key}"


class TaskRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    id: str  # made by task_id
    workstream_id: str
    key: str  # the task's id within its workstream
    state: TaskState
    created_at: int
    updated_at: int
    previous_state: str | None = None
    trigger: str | None = None  # of the last move
    generation: int = 1
    attempts: int = 0
    retry_count: int = 0
    max_retries: int = 0
    lost_workers: int = 0
    priority: int = 0
    optional: bool = False
    depends_on: tuple[str, ...] = ()  # keys
    worker_id: str | None = None
    owner: str | None = None
    started_at: int | None = None
    completed_at: int | None = None
    due_at: int | None = None
    deadline_at: int | None = None
    exit_code: int | None = None
    last_error: str | None = None
    output: Any = None
    definition: Task | None = None
    map_of: str | None = None  # the key of the task that this is one item of
    item: Any = None


class WorkerRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    id: str
    state: WorkerState
    created_at: int
    updated_at: int
    previous_state: str | None = None
    generation: int = 1
    kind: str = "async"
    capabilities: tuple[str, ...] = ()
    max_concurrent_tasks: int = 1
    has_run: bool = False
    task_ids: tuple[str, ...] = ()
    heartbeat_at: int | None = None
    owner: str | None = None
    last_error: str | None = None


class BreakerRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    id: str  # the tool's name
    state: BreakerState
    created_at: int
    updated_at: int
    previous_state: str | None = None
    generation: int = 1
    failures: int = 0
    repeats: int = 0
    successes: int = 0
    last_error: str | None = None
    opened_at: int | None = None
    due_at: int | None = None
    probe_task_id: str | None = None
    owner: str | None = None


Record: TypeAlias = WorkstreamRecord | TaskRecord | WorkerRecord | BreakerRecord

RECORD_TYPES: dict[Entity, type[Record]] = {
    Entity.WORKSTREAM: WorkstreamRecord,
    Entity.TASK: TaskRecord,
    Entity.WORKER: WorkerRecord,
    Entity.BREAKER: BreakerRecord,
}


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The audit of one result: who ran it, how long, how it ended."""

    task_id: str
    generation: int
    attempt: int
    workstream_id: str
    started_at: int
    ended_at: int
    success: bool
    outcome: str  # completed, failed, timed_out, lost, cancelled, late
    worker_id: str | None = None
    correlation_id: str | None = None
    exit_code: int | None = None
    error: str | None = None
    output_bytes: int = 0
    cause: str | None = None  # why there was an attempt at all, beyond the first

    @property
    def duration_us(self) -> int:
        return self.ended_at - self.started_at


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How one acceptance test of one attempt ended. `task_id` is the workstream's id for its final validation."""

    task_id: str
    generation: int
    attempt: int
    position: int  # among the checks of the task
    name: str
    passed: bool
    started_at: int
    ended_at: int
    detail: str | None = None


class StoredAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a request with an id of its own was answered, so that the same request gets the same answer."""

    request_id: str
    operation: str
    body_digest: str
    answer: Any
    created_at: int
    expires_at: int
