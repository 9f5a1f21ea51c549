"""What an operator can do about a record as it is: the command, and when it is the right one.

Only what would help is named. A command that the record's lifecycle refuses is never among them.
"""

from collections.abc import Sequence

import msgspec

from understudy.actors.lifecycle import BreakerState, Entity, TaskState, TaskTrigger, WorkerState, WorkstreamState
from understudy.actors.records import BreakerRecord, WorkerRecord, task_id

SHOWN_MAX = 3  # tasks that are named one by one; who has more of them knows the pattern by then
_MARKS = {Entity.WORKER: "worker:", Entity.BREAKER: "breaker:"}

S, W = TaskState, WorkstreamState


class Remedy(msgspec.Struct, frozen=True):
    """A command, and when to use it."""

    command: str
    when: str


def name_target(entity: Entity, record_id: str) -> str:
    """How a record is named to a command: workers and breakers with what they are."""
    return _MARKS.get(entity, "") + record_id


def read_target(target: str) -> tuple[Entity, str]:
    """What a target names: `workstream`, `workstream/task`, `worker:id` or `breaker:id`."""
    for entity, mark in _MARKS.items():
        if target.startswith(mark):
            return entity, target.removeprefix(mark)
    return (Entity.TASK if "/" in target else Entity.WORKSTREAM), target


def resume(workstream_id: str) -> Remedy:
    return Remedy(f"understudy run --resume {workstream_id}", "to go on from where it is")


def mend(target: str) -> tuple[Remedy, ...]:
    """For a task that has failed, or was cancelled by hand."""
    return (
        Remedy(f"understudy reset {target}", "its cause is gone: it is done again, with what builds on it"),
        Remedy(f"understudy skip {target}", "its result is not needed: what depends on it goes on"),
        Remedy(f"understudy resolve {target} --output JSON", "you have done by hand what it was to do"),
    )


def for_task(target: str, state: str, trigger: str | None = None, breaker: str | None = None) -> tuple[Remedy, ...]:
    """For a task. `breaker` is the name of the one that keeps it from its tool, where one does."""
    logs = Remedy(f"understudy logs {target}", "to see what it wrote")
    cancel = Remedy(f"understudy cancel {target}", "it is not to be done any more")
    resolve = Remedy(f"understudy resolve {target} --output JSON", "you have done by hand what it was to do")
    match state:
        case S.PENDING:
            return (Remedy(f"understudy skip {target}", "it is to be left out"), cancel)
        case S.QUEUED | S.CIRCUIT_OPEN | S.HALF_OPEN if breaker is not None:
            give_up = Remedy(f"understudy give-up {target}", "it is not worth waiting for: it fails now")
            return (_close(breaker), *(() if state == S.HALF_OPEN else (give_up,)), resolve, cancel)
        case S.RUNNING:
            return (Remedy(f"understudy logs {target} --follow", "to see what it does"), resolve, cancel)
        case S.FAILED:
            return (*mend(target), logs)
        case S.SKIPPED if trigger != TaskTrigger.USER_SKIPPED:
            return (Remedy(f"understudy reset {target}", "what kept it from running is mended"),)
        case S.SKIPPED | S.CANCELLED:
            return (Remedy(f"understudy reset {target}", "it is to be done after all"),)
        case S.COMPLETED | S.RESOLVED:
            return (Remedy(f"understudy reset {target}", "it is to be done again, with what builds on it"),)
        case _:
            return (logs, resolve, cancel)


def for_workstream(workstream_id: str, state: str, broken: Sequence[str] = ()) -> tuple[Remedy, ...]:
    """For a workstream; `broken` are the keys of tasks that have failed for good."""
    mended = tuple(remedy for key in broken[:SHOWN_MAX] for remedy in mend(task_id(workstream_id, key)))
    match state:
        case W.BLOCKED:
            return (
                *(mended or (resume(workstream_id),)),
                Remedy(f"understudy resolve {workstream_id}", "you have done by hand what is left of it"),
                Remedy(f"understudy give-up {workstream_id}", "nobody will mend it: it fails now"),
            )
        case W.FAILED:
            return (*mended, _begin_again(workstream_id, "all that did not succeed is to be done again"))
        case W.CANCELLED:
            return (_begin_again(workstream_id, "it is to be done after all: what has succeeded is kept"),)
        case W.COMPLETED | W.RESOLVED:
            return mended
        case _:
            return (Remedy(f"understudy cancel {workstream_id}", "it is not to be done any more"),)


def for_worker(record: WorkerRecord) -> tuple[Remedy, ...]:
    """Workers live in a running process, which has to be there to hear it."""
    match record.state:
        case WorkerState.PAUSED:
            return (Remedy(f"understudy worker resume {record.id}", "it may take tasks again"),)
        case WorkerState.UNRESPONSIVE:
            return (Remedy(f"understudy worker terminate {record.id}", "its tasks are to go to others now"),)
        case _:
            return ()


def for_breaker(record: BreakerRecord) -> tuple[Remedy, ...]:
    if record.state is BreakerState.CLOSED:
        return (Remedy(f"understudy breaker trip {record.id}", "nobody is to use the tool for a while"),)
    return (_close(record.id),)


def _close(breaker: str) -> Remedy:
    return Remedy(f"understudy breaker reset {breaker}", "the tool works again: make sure of that first")


def _begin_again(workstream_id: str, when: str) -> Remedy:
    return Remedy(f"understudy reset {workstream_id}", when)
