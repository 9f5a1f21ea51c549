"""Why a thing is not moving: one sentence for any task or workstream, and what comes next."""

from typing import TYPE_CHECKING, Any

import msgspec

from understudy.actors.engine import messages as m
from understudy.actors.engine.graph import Node, Verdict
from understudy.actors.engine.requests import NotFound
from understudy.actors.kernel import Reply
from understudy.actors.lifecycle import TaskState, WorkstreamState
from understudy.actors.records import TaskRecord, task_id

if TYPE_CHECKING:
    from understudy.actors.engine.workstream import WorkstreamActor


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something is as it is. `due_at` is when it will move by itself, where that is known."""

    target: str
    state: str
    why: str
    waits_for: tuple[str, ...] = ()
    due_at: int | None = None


def explain(stream: "WorkstreamActor", message: m.Explain) -> None:
    if message.key is None:
        message.reply.send(_of_workstream(stream))
        return
    node = stream.graph.nodes.get(message.key)
    if node is None:
        message.reply.fail(NotFound(f"there is no task {task_id(stream.seat.record.id, message.key)}"))
    elif node.ref is not None and not node.ref.alive:
        why = (
            "its actor has crashed too often and is quarantined: look at the runtime's health, then reset or cancel it"
        )
        message.reply.send(_about(stream, node, why))
    elif node.ref is not None:
        node.ref.tell(m.Describe(message.reply))
    else:
        message.reply.send(_of_node(stream, node))


def of_task(
    record: TaskRecord, breaker: str | None, open_breakers: dict[str, int | None], reply: Reply[Any], scheduler: Any
) -> None:
    """Of a task that is an actor. What it waits for in the queue only the scheduler knows."""
    target = record.id
    match record.state:
        case TaskState.QUEUED:
            scheduler.tell(m.WhyQueued(target, reply))
            return
        case TaskState.RUNNING:
            why, due = f"attempt {record.attempts} runs on {record.worker_id}", record.deadline_at
        case TaskState.RETRYING:
            why, due = f"it tries again soon, after: {record.last_error}", record.due_at
        case TaskState.CIRCUIT_OPEN | TaskState.HALF_OPEN:
            why, due = f"the breaker of {breaker} is not closed", open_breakers.get(breaker or "")
        case TaskState.VALIDATING:
            why, due = "its checks are running", None
        case _:
            why, due = f"it is {record.state}", record.due_at
    reply.send(Explanation(target, record.state, why, due_at=due))


def of_ended(target: str, state: str, error: str | None) -> Explanation:
    return Explanation(target, state, f"it has ended: {error}" if error else "it has ended")


def _of_node(stream: "WorkstreamActor", node: Node) -> Explanation:
    if node.ended:
        return of_ended(task_id(stream.seat.record.id, node.key), node.state or "", None)
    before = tuple(each.key for each in stream.graph.before(node) if not each.ended)
    if before:
        shown = ", ".join(before[:5]) + (f" and {len(before) - 5} more" if len(before) > 5 else "")
        return _about(stream, node, f"it waits for {shown}", before)
    if stream.graph.judge(node) is Verdict.HOLD:
        broken = tuple(stream.graph.broken)
        return _about(stream, node, f"it is held until {', '.join(broken)} is reset, skipped or resolved", broken)
    return _about(stream, node, "it is ready and becomes active when there is room")


def _about(stream: "WorkstreamActor", node: Node, why: str, waits_for: tuple[str, ...] = ()) -> Explanation:
    return Explanation(task_id(stream.seat.record.id, node.key), node.state or "planned", why, waits_for)


def _of_workstream(stream: "WorkstreamActor") -> Explanation:
    record, graph = stream.seat.record, stream.graph
    done = sum(node.ended for node in graph.nodes.values())
    progress = f"{done} of {len(graph.nodes)} tasks have ended, {graph.active} are active"
    due = record.due_at
    match record.state:
        case _ if record.ending is not None:
            why = f"it is ending ({record.ending}); {progress}"
        case WorkstreamState.READY:
            slots = stream.seat.definition.reserved_workers
            why = f"no task has started: it waits for {slots} free worker slot{'s' if slots > 1 else ''}"
        case WorkstreamState.BLOCKED:
            why = f"{record.last_error}; reset, skip or resolve them, or give up"
        case WorkstreamState.WAITING_FOR_RETRY | WorkstreamState.WAITING_FOR_DEPENDENCIES:
            waiting = ", ".join(f"{key} is {state}" for key, state in list(stream.waiting.items())[:5])
            why = f"{progress}, and all of these wait: {waiting}"
        case WorkstreamState.RETRYING:
            why = f"it tries again: {record.last_error or 'a task failed'}"
        case _:
            why = progress
    return Explanation(record.id, record.state, why, tuple(graph.broken), due)
