"""Records to store, with only what a test says about them."""

from typing import Any

from understudy.actors.lifecycle import BreakerState, Entity, TaskState, WorkerState, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.records import (
    Attempt,
    BreakerRecord,
    CheckResult,
    Record,
    StoredAnswer,
    TaskRecord,
    Transition,
    WorkerRecord,
    WorkstreamRecord,
)


def workstream(
    record_id: str = "w", state: WorkstreamState = WorkstreamState.PLANNED, **fields: Any
) -> WorkstreamRecord:
    return WorkstreamRecord(record_id, state, created_at=1, updated_at=2, **fields)


def task(record_id: str = "w/t", state: TaskState = TaskState.PENDING, **fields: Any) -> TaskRecord:
    stream, _, key = record_id.partition("/")
    return TaskRecord(record_id, stream, key, state, created_at=1, updated_at=2, **fields)


def worker(record_id: str = "worker-1", **fields: Any) -> WorkerRecord:
    return WorkerRecord(record_id, WorkerState.IDLE, created_at=1, updated_at=2, **fields)


def breaker(record_id: str = "aider", **fields: Any) -> BreakerRecord:
    return BreakerRecord(record_id, BreakerState.CLOSED, created_at=1, updated_at=2, **fields)


def move(sequence: int, record_id: str = "w/t", **fields: Any) -> Transition:
    said: dict[str, Any] = {
        "entity": Entity.TASK,
        "generation": 1,
        "from_state": "*",
        "to_state": "pending",
        "trigger": "created",
        "at": sequence * 10,
        "workstream_id": record_id.partition("/")[0],
        **fields,
    }
    return Transition(sequence, said.pop("entity"), record_id, **said)


def attempt(number: int = 1, task_id: str = "w/t", **fields: Any) -> Attempt:
    said: dict[str, Any] = {
        "generation": 1,
        "workstream_id": task_id.partition("/")[0],
        "started_at": number * 100,
        "ended_at": number * 100 + 50,
        "success": True,
        "outcome": "completed",
        **fields,
    }
    return Attempt(task_id, said.pop("generation"), number, **said)


def result(position: int = 0, task_id: str = "w/t", **fields: Any) -> CheckResult:
    said: dict[str, Any] = {"name": "file_exists", "passed": True, "started_at": 1, "ended_at": 2, **fields}
    return CheckResult(task_id, 1, said.pop("attempt", 1), position, **said)


def answer(request_id: str = "r-1", expires_at: int = 1_000, **fields: Any) -> StoredAnswer:
    return StoredAnswer(request_id, "cancel", "digest", {"ok": True}, 1, expires_at, **fields)


def batch(*parts: Record | Transition | Attempt | CheckResult | StoredAnswer) -> Batch:
    made = Batch()
    entities = {
        WorkstreamRecord: Entity.WORKSTREAM,
        TaskRecord: Entity.TASK,
        WorkerRecord: Entity.WORKER,
        BreakerRecord: Entity.BREAKER,
    }
    for part in parts:
        match part:
            case Transition():
                made.transitions.append(part)
            case Attempt():
                made.attempts.append(part)
            case CheckResult():
                made.checks.append(part)
            case StoredAnswer():
                made.answers.append(part)
            case _:
                made.snapshots[entities[type(part)], part.id] = part
    return made
