"""What an operator may do to a workstream and its tasks.

A record that has ended never changes: to reset, skip or resolve it begins its next generation, and brings its
workstream back to life where that has ended too.
"""

from typing import TYPE_CHECKING, Any

from understudy.actors.engine import merging
from understudy.actors.engine import messages as m
from understudy.actors.engine.graph import Node
from understudy.actors.engine.requests import Answer, Conflict, Done, NotFound, Operation, Request
from understudy.actors.lifecycle import (
    TASK,
    InvalidTransition,
    TaskState,
    TaskTrigger,
    WorkstreamState,
    WorkstreamTrigger,
)
from understudy.actors.ports.workplace import Report
from understudy.actors.records import task_id

if TYPE_CHECKING:
    from understudy.actors.engine.task import TaskActor
    from understudy.actors.engine.workstream import WorkstreamActor

_ENDINGS = {
    Operation.CANCEL: WorkstreamTrigger.USER_CANCELLED,
    Operation.RESOLVE: WorkstreamTrigger.RESOLVED_MANUALLY,
    Operation.GIVE_UP: WorkstreamTrigger.GAVE_UP,
}
_TASK_ENDS = {
    Operation.CANCEL: (TaskState.CANCELLED, TaskTrigger.USER_CANCELLED),
    Operation.SKIP: (TaskState.SKIPPED, TaskTrigger.USER_SKIPPED),
    Operation.RESOLVE: (TaskState.RESOLVED, TaskTrigger.RESOLVED_MANUALLY),
    Operation.GIVE_UP: (TaskState.FAILED, TaskTrigger.GAVE_UP),
}


def act(stream: "WorkstreamActor", request: Request, answer: Answer) -> None:
    """Do it, and answer when it is durable; or refuse, and nothing has changed."""
    try:
        if request.target == stream.seat.record.id:
            _act_on_workstream(stream, request, answer)
        else:
            _act_on_task(stream, request, answer)
    except (InvalidTransition, Conflict, NotFound) as error:
        answer.refuse(error)


def _act_on_workstream(stream: "WorkstreamActor", request: Request, answer: Answer) -> None:
    if request.operation is Operation.RESET:
        _reset_workstream(stream, request)
        record = stream.seat.record
        answer.give(Done(record.id, record.state, record.generation))
    elif request.operation in _ENDINGS:
        stream.seat.answers.append(answer)
        try:
            stream.end_by(_ENDINGS[request.operation], request.who, request.why)
        except InvalidTransition:
            stream.seat.answers.remove(answer)
            raise
    else:
        raise Conflict(f"{request.operation} is not for a workstream: name a task, as {request.target}/TASK")


def _reset_workstream(stream: "WorkstreamActor", request: Request) -> None:
    """Once more what did not succeed, of a workstream that has ended or is blocked."""
    nodes = stream.graph.nodes.values()
    if stream.seat.record.state is WorkstreamState.BLOCKED and stream.seat.record.ending is None:
        stream.to_executing(request.who, request.why)
        stream.reset_nodes(list(stream.graph.broken.values()), request.who)
    elif stream.is_live:
        raise Conflict(
            f"workstream {request.target} is {stream.seat.record.state}: only one that is blocked or has ended is reset"
        )
    else:
        unfinished = [node for node in nodes if not node.satisfies and node.state is not None]
        _reopen(stream, request)
        stream.reset_nodes(unfinished, request.who)
    stream.advance()


def _act_on_task(stream: "WorkstreamActor", request: Request, answer: Answer) -> None:
    key = request.target.removeprefix(f"{stream.seat.record.id}/")
    node = stream.graph.nodes.get(key)
    if node is None or node.state is None:
        raise NotFound(f"there is no task {request.target}")
    if node.ref is not None and node.ref.alive:
        node.ref.tell(m.Act(request, answer))
        return
    if node.ref is not None:
        if request.operation not in _TASK_ENDS:
            raise Conflict(f"the actor of task {request.target} is quarantined: cancel the task first")
        end_quarantined(stream, node, *_TASK_ENDS[request.operation], request.why, request.who)
    elif node.ended:
        _act_on_ended(stream, node, request)
    else:
        _settle(stream, node, request)
    stream.advance()
    answer.give(Done(request.target, node.state or "", node.generation))


def end_quarantined(
    stream: "WorkstreamActor", node: Node, state: TaskState, trigger: str, why: str | None, who: str | None = None
) -> None:
    """End a task whose actor has crashed too often, in its place. Raises where it may not."""
    seat, before, ref = node.seat, node.seat.record, node.ref
    if TASK.is_terminal(before.state) or ref is None:
        return  # it has ended by itself, and that is on its way here
    now = stream.house.book.now_us()
    seat.move(state, trigger, reason=why, who=who, worker_id=None, due_at=None, completed_at=now)
    if before.state is TaskState.RUNNING:
        if seat.worker is not None:
            seat.worker.tell(m.Abort(seat.token, why or trigger))
        seat.note_attempt("cancelled", Report(), why or trigger, before)
    ref.kill()
    stream.graph.end(node, state, str(trigger))
    if node.broken:
        stream.broke(node)


def _settle(stream: "WorkstreamActor", node: Node, request: Request) -> None:
    """End a task that waits."""
    if request.operation not in _TASK_ENDS:
        raise Conflict(f"task {request.target} is {node.state}: only one that has ended can be reset")
    state, trigger = _TASK_ENDS[request.operation]
    stream.seat.settle(node, state, trigger, request.why, request.who, request.output)
    if node.broken:
        stream.broke(node)


def _act_on_ended(stream: "WorkstreamActor", node: Node, request: Request) -> None:
    """The next generation of a task that has ended."""
    if request.operation not in (Operation.RESET, Operation.SKIP, Operation.RESOLVE):
        _, trigger = _TASK_ENDS[request.operation]
        raise InvalidTransition(
            TASK.entity, task_id(stream.seat.record.id, node.key), node.state or "", trigger, None, ()
        )
    if stream.seat.record.ending is not None:
        raise Conflict(f"workstream {stream.seat.record.id} is about to end: {stream.seat.record.ending}")
    again = {node.key: node}
    if request.operation is Operation.RESET:
        again |= {each.key: each for each in _built_on(stream, node)}
    if not stream.is_live:
        again |= {key: each for key, each in stream.graph.nodes.items() if _fell_with_others(each)}
        _reopen(stream, request)
    elif stream.seat.record.state is WorkstreamState.BLOCKED:
        stream.to_executing()
    elif stream.seat.record.state is WorkstreamState.VALIDATING:
        raise Conflict(f"workstream {stream.seat.record.id} is being validated: wait for its end")
    stream.reset_nodes(again.values(), request.who)
    if request.operation is not Operation.RESET:
        _settle(stream, node, request)


def _built_on(stream: "WorkstreamActor", node: Node) -> list[Node]:
    """What was done with a task's result, and is to be done again with the next one."""
    after = stream.graph.after(node)
    active = [each.key for each in after if each.ref is not None]
    if active:
        raise Conflict(f"task {node.key} cannot be reset now: {', '.join(active[:5])} builds on it and has begun")
    return [each for each in after if each.ended] + [each for each in node.items or () if not each.satisfies]


def _fell_with_others(node: Node) -> bool:
    """Whether a task ended only because another one did."""
    return node.trigger in (TaskTrigger.WORKSTREAM_CANCELLED, TaskTrigger.DEPENDENCY_FAILED)


def _reopen(stream: "WorkstreamActor", request: Request) -> None:
    """The next generation of a workstream that has ended."""
    stream.seat.reopen(request.who, request.why)
    stream.uncreated.extend(node for node in stream.graph.nodes.values() if node.state is None)
    if stream.seat.lacks_workspace:
        merging.prepare(stream)
    elif not stream.uncreated:
        stream.seat.move(WorkstreamState.READY, WorkstreamTrigger.ALL_TASKS_CREATED)
    stream.reserve()


def act_on_active(task: "TaskActor", request: Request, answer: Answer) -> None:
    """The same for a task that is an actor."""
    try:
        if request.operation not in _TASK_ENDS:
            raise Conflict(f"{request.operation} is not for a task that is {task.seat.record.state}")
        state, trigger = _TASK_ENDS[request.operation]
        changes: dict[str, Any] = {}
        if request.operation is Operation.RESOLVE:
            changes["output"] = request.output
        elif request.operation is Operation.GIVE_UP:
            trigger = _giving_up(task)
            changes["last_error"] = f"given up: {request.why or 'no reason given'}"
        task.leave(state, trigger, request.who, request.why, **changes)
    except (InvalidTransition, Conflict) as error:
        answer.refuse(error)
    else:
        answer.give(Done(request.target, task.seat.record.state, task.seat.record.generation))


def _giving_up(task: "TaskActor") -> TaskTrigger:
    seat = task.seat
    if seat.record.state is not TaskState.QUEUED:
        return TaskTrigger.GAVE_UP
    if seat.plan.breaker not in seat.house.open_breakers:
        raise Conflict(f"{seat.record.id} is queued and its breaker is not open: cancel it instead")
    return TaskTrigger.CIRCUIT_REJECTED
