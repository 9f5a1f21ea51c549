"""How a task waits for its breaker, and what it does when that speaks. It spends no attempts meanwhile."""

from typing import TYPE_CHECKING, Any

from understudy.actors.engine import messages as m
from understudy.actors.lifecycle import TaskState, TaskTrigger

if TYPE_CHECKING:
    from understudy.actors.engine.task import TaskActor

S, T = TaskState, TaskTrigger


def wait_for_breaker(task: "TaskActor", **changes: Any) -> None:
    """Its tool is to be left alone."""
    task.stop_timer()
    reason = f"{task.seat.plan.breaker} is open"
    task.seat.move(S.CIRCUIT_OPEN, T.CIRCUIT_OPENED, reason=reason, due_at=None, **changes)
    task.seat.breaker.tell(m.Waiting(task.seat.record.id, task.context))
    task.tell_stream_of_waiting()


def obey_breaker(
    task: "TaskActor", message: "m.CircuitOpened | m.ProbeNow | m.CircuitClosed | m.JitterElapsed"
) -> None:
    seat, state = task.seat, task.seat.record.state
    match message:
        case m.CircuitOpened() if state is S.RETRYING:
            wait_for_breaker(task)
        case m.CircuitOpened() if state is S.HALF_OPEN:
            task.stop_timer()
            seat.move(S.CIRCUIT_OPEN, T.PROBE_DENIED)
            seat.breaker.tell(m.Waiting(seat.record.id, task.context))
        case m.ProbeNow() if state is S.CIRCUIT_OPEN:
            seat.move(S.HALF_OPEN, T.COOLDOWN_EXPIRED)
            task.queue(T.PROBE_SCHEDULED, is_probe=True)
        case m.CircuitClosed() if state is S.CIRCUIT_OPEN:
            seat.move(S.HALF_OPEN, T.CIRCUIT_CLOSED)
            jitter_s = task.context.entropy.random() * seat.house.limits.release_spread_s
            task.timer = task.context.after(jitter_s, m.JitterElapsed())
        case m.JitterElapsed() if state is S.HALF_OPEN:
            task.queue(T.PROBE_SCHEDULED)
        case m.ProbeNow() if task.is_probe and state in (S.QUEUED, S.RUNNING):
            pass  # told once more, to be sure
        case m.ProbeNow():  # too late: it needs the tool no more
            seat.breaker.tell(m.Forget(seat.record.id))
        case _:
            pass
