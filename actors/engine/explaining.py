"""Why a thing is not moving: one sentence for any record, what comes next, and what can be done about it.

The sentences are functions of records: a running engine and a look at a database at rest say the same. What only a
running engine knows, such as the queue, it adds.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.actors.engine import messages as m
from understudy.actors.engine import remedies
from understudy.actors.engine.graph import Node, Verdict
from understudy.actors.engine.remedies import Remedy
from understudy.actors.engine.requests import NotFound
from understudy.actors.kernel import Reply
from understudy.actors.lifecycle import (
    BreakerState,
    Entity,
    TaskState,
    TaskTrigger,
    WorkerState,
    WorkstreamState,
)
from understudy.actors.records import BreakerRecord, TaskRecord, WorkerRecord, WorkstreamRecord, task_id

if TYPE_CHECKING:
    from understudy.actors.engine.workstream import WorkstreamActor

_SHOWN_MAX = 5  # names in one sentence


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something is as it is. `due_at` is when it will move by itself, where that is known."""

    target: str
    state: str
    why: str
    waits_for: tuple[str, ...] = ()
    due_at: int | None = None
    remedies: tuple[Remedy, ...] = ()


class Standing(msgspec.Struct, frozen=True):
    """How the tasks of a workstream stand, all together."""

    tasks: int
    ended: int
    active: int
    waiting: Mapping[str, str]  # active ones that wait for time or for their tool, with their states
    broken: tuple[str, ...]  # keys of those that have failed for good

    def __str__(self) -> str:
        return f"{self.ended} of {self.tasks} tasks have ended, {self.active} are active"


# Of records


def of_workstream(record: WorkstreamRecord, standing: Standing) -> Explanation:
    """Of one that has not ended."""
    match record.state:
        case _ if record.ending is not None:
            why = f"it is ending ({record.ending}); {standing}"
        case WorkstreamState.READY:
            slots = record.reserved_workers
            why = f"no task has started: it waits for {slots} free worker slot{'s' if slots > 1 else ''}"
        case WorkstreamState.BLOCKED:
            why = f"{record.last_error}; {_settle(record, standing)}"
        case WorkstreamState.WAITING_FOR_RETRY | WorkstreamState.WAITING_FOR_DEPENDENCIES:
            waiting = ", ".join(f"{key} is {state}" for key, state in list(standing.waiting.items())[:_SHOWN_MAX])
            why = f"{standing}, and all of these wait: {waiting}"
        case WorkstreamState.RETRYING:
            why = f"it tries again: {record.last_error or 'a task failed'}"
        case _:
            why = str(standing)
    helpful = remedies.for_workstream(record.id, record.state, standing.broken)
    return Explanation(record.id, record.state, why, standing.broken, record.due_at, helpful)


def of_active(record: TaskRecord, breaker: str | None = None, due_at: int | None = None) -> Explanation:
    """Of a task that is on its way. `breaker` is its tool's where that is not closed, and opens again at `due_at`."""
    due = record.due_at
    match record.state:
        case TaskState.QUEUED | TaskState.CIRCUIT_OPEN | TaskState.HALF_OPEN if breaker is not None:
            why, due = f"the breaker of {breaker} is not closed", due_at
        case TaskState.QUEUED:
            why = "it waits for a worker that is free"
        case TaskState.RUNNING:
            why, due = f"attempt {record.attempts} runs on {record.worker_id}", record.deadline_at
        case TaskState.RETRYING:
            why = f"it tries again soon, after: {record.last_error}"
        case TaskState.VALIDATING:
            why, due = "its checks are running", None
        case _:
            why = f"it is {record.state}"
    helpful = remedies.for_task(record.id, record.state, record.trigger, breaker)
    return Explanation(record.id, record.state, why, due_at=due, remedies=helpful)


def of_waiting(
    target: str, state: str, before: Sequence[str], broken: Sequence[str] = (), *, is_held: bool = False
) -> Explanation:
    """Of a task that has not begun: `before` it are tasks that have not ended, or `broken` ones that hold it."""
    workstream_id = target.partition("/")[0]
    helpful = remedies.for_task(target, TaskState.PENDING)
    if before:
        look = Remedy(f"understudy explain {task_id(workstream_id, before[0])}", "to see why that has not ended")
        return Explanation(target, state, f"it waits for {_some(before)}", tuple(before), remedies=(look, *helpful))
    if is_held:
        why = f"it is held until {', '.join(broken)} is reset, skipped or resolved"
        mended = tuple(each for key in broken[: remedies.SHOWN_MAX] for each in remedies.mend(f"{workstream_id}/{key}"))
        return Explanation(target, state, why, tuple(broken), remedies=(*mended, *helpful))
    return Explanation(target, state, "it is ready and becomes active when there is room", remedies=helpful)


def of_ended(target: str, state: str, error: str | None, trigger: str | None = None) -> Explanation:
    """Of what has ended, as far as more is not known."""
    helpful = remedies.for_task(target, state, trigger) if "/" in target else remedies.for_workstream(target, state)
    return Explanation(target, state, f"it has ended: {error}" if error else "it has ended", remedies=helpful)


def of_ended_task(record: TaskRecord) -> Explanation:
    error = record.last_error
    match record.trigger:
        case TaskTrigger.RETRIES_EXHAUSTED:
            error = f"no attempt is left after {record.attempts}, the last one: {error}"
        case TaskTrigger.PERMANENT_ERROR:
            error = f"trying again would not help: {error}"
        case TaskTrigger.USER_CANCELLED | TaskTrigger.USER_SKIPPED | TaskTrigger.RESOLVED_MANUALLY:
            error = f"by hand{f', {error}' if error else ''}"
        case _:
            pass
    return of_ended(record.id, record.state, error, record.trigger)


def of_ended_workstream(record: WorkstreamRecord, broken: Sequence[str]) -> Explanation:
    explained = of_ended(record.id, record.state, record.last_error)
    helpful = remedies.for_workstream(record.id, record.state, broken)
    return msgspec.structs.replace(explained, waits_for=tuple(broken), remedies=helpful)


def of_worker(record: WorkerRecord) -> Explanation:
    running = f"it runs {_some(record.task_ids)}" if record.task_ids else "it has no task"
    match record.state:
        case WorkerState.INITIALIZING:
            why = "it is being started"
        case WorkerState.PAUSED:
            why = f"it takes no new tasks until it is resumed; {running}"
        case WorkerState.UNRESPONSIVE:
            why = f"it gives no sign of life; {running}"
        case WorkerState.FAILED | WorkerState.SHUTDOWN | WorkerState.TERMINATED:
            why = f"it has ended{f': {record.last_error}' if record.last_error else ''}"
        case _:
            why = running
    target = remedies.name_target(Entity.WORKER, record.id)
    return Explanation(target, record.state, why, remedies=remedies.for_worker(record))


def of_breaker(record: BreakerRecord) -> Explanation:
    match record.state:
        case BreakerState.CLOSED:
            why = f"the tool may be used; {record.failures} failures in a row so far"
        case BreakerState.OPEN:
            why = f"the tool is not used until its cooldown is over, after: {record.last_error or 'an order by hand'}"
        case BreakerState.HALF_OPEN:
            probe = record.probe_task_id
            why = f"{probe} finds out whether the tool works" if probe else "the next task is to find out if it works"
    target = remedies.name_target(Entity.BREAKER, record.id)
    return Explanation(target, record.state, why, due_at=record.due_at, remedies=remedies.for_breaker(record))


def at_rest(explained: Explanation, workstream: WorkstreamRecord | None) -> Explanation:
    """The same of a database that no process has open: nothing moves, whatever else is said.

    A blocked workstream waits for an operator first, and for a process only then.
    """
    why = f"no process has this database open: nothing moves until one does; when it was left: {explained.why}"
    if workstream is None:
        return msgspec.structs.replace(explained, why=why)
    go_on = remedies.resume(workstream.id)
    if workstream.state is WorkstreamState.BLOCKED:
        return msgspec.structs.replace(explained, remedies=(*explained.remedies, go_on))
    return msgspec.structs.replace(explained, why=why, due_at=None, remedies=(go_on, *explained.remedies))


def _settle(record: WorkstreamRecord, standing: "Standing") -> str:
    """What a blocked workstream needs."""
    if standing.broken:
        return "reset, skip or resolve them, or give up"
    target = "its branch" if record.merge is None else record.merge.target
    return f"merge {target} into the worktree {record.workspace} by hand and commit, then go on"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more


# Of a running engine


def explain(stream: "WorkstreamActor", message: m.Explain) -> None:
    if message.key is None:
        message.reply.send(of_workstream(stream.seat.record, _standing(stream)))
        return
    target = task_id(stream.seat.record.id, message.key)
    node = stream.graph.nodes.get(message.key)
    if node is None:
        message.reply.fail(NotFound(f"there is no task {target}"))
    elif node.ref is not None and not node.ref.alive:
        why = (
            "its actor has crashed too often and is quarantined: look at the runtime's health, then reset or cancel it"
        )
        message.reply.send(Explanation(target, node.state or "planned", why))
    elif node.ref is not None:
        node.ref.tell(m.Describe(message.reply))
    else:
        message.reply.send(_of_node(stream, node, target))


def of_task(
    record: TaskRecord, breaker: str | None, open_breakers: dict[str, int | None], reply: Reply[Any], scheduler: Any
) -> None:
    """Of a task that is an actor. What it waits for in the queue only the scheduler knows."""
    if record.state is TaskState.QUEUED:
        scheduler.tell(m.WhyQueued(record.id, reply))
        return
    reply.send(of_active(record, breaker, open_breakers.get(breaker or "")))


def _of_node(stream: "WorkstreamActor", node: Node, target: str) -> Explanation:
    if node.ended:
        return of_ended(target, node.state or "", None, node.trigger)
    before = [each.key for each in stream.graph.before(node) if not each.ended]
    is_held = not before and stream.graph.judge(node) is Verdict.HOLD
    return of_waiting(target, node.state or "planned", before, list(stream.graph.broken), is_held=is_held)


def _standing(stream: "WorkstreamActor") -> Standing:
    graph = stream.graph
    ended = sum(node.ended for node in graph.nodes.values())
    return Standing(len(graph.nodes), ended, graph.active, stream.waiting, tuple(graph.broken))
