"""What the engine's actors tell each other. Every message is frozen and says what has happened or is wanted."""

from typing import Any, TypeAlias

import msgspec

from understudy.actors.definition import BreakerPolicy, Task
from understudy.actors.engine.requests import Answer, Request
from understudy.actors.kernel import Outcome, Ref, Reply
from understudy.actors.lifecycle import TaskState
from understudy.actors.ports.workplace import Order, Report
from understudy.actors.records import CheckResult

TaskRef: TypeAlias = Ref[Any]
WorkerRef: TypeAlias = Ref[Any]


class Message(msgspec.Struct, frozen=True, gc=False):
    """Every message of the engine."""


# To a task


class Assigned(Message, frozen=True):
    """A worker is to run it. By the scheduler."""

    worker_id: str
    worker: WorkerRef


class Finished(Message, frozen=True):
    """An attempt has ended. By its worker."""

    generation: int
    attempt: int
    report: Report


class WorkerLost(Message, frozen=True):
    """The worker that ran an attempt is gone. Counted where the task may be to blame."""

    generation: int
    attempt: int
    cause: str
    counted: bool = True


class Overdue(Message, frozen=True):
    attempt: int  # an attempt has had its time


class Ruling(Message, frozen=True):
    """What the breaker makes of a failed attempt. By the breaker."""

    is_open: bool


class BackoffElapsed(Message, frozen=True):
    attempts: int  # it is time for the next attempt


class CircuitOpened(Message, frozen=True):
    """Its tool is to be left alone. By the breaker."""


class ProbeNow(Message, frozen=True):
    """It is the one that finds out whether its tool works again. By the breaker."""


class CircuitClosed(Message, frozen=True):
    """Its tool works again. By the breaker."""


class JitterElapsed(Message, frozen=True):
    """It is its turn to go back to the queue, after its breaker has closed."""


class ChecksDone(Message, frozen=True):
    """What its checks have found."""

    attempt: int
    outcome: Outcome[list[CheckResult]]


class Withdrawn(Message, frozen=True):
    """It is not in the queue any more, and what it was given came before this. By the scheduler."""


class Describe(Message, frozen=True):
    reply: Reply[Any]  # say why it is not moving


class Recheck(Message, frozen=True):
    """Make sure that somebody will move it. By the sweep."""


# To a task, from an operator, by way of its workstream


class Act(Message, frozen=True):
    """Do what an operator asks for."""

    request: Request
    answer: Answer


# To a workstream


class TaskStarted(Message, frozen=True):
    key: str  # an attempt of a task has begun


class TaskWaits(Message, frozen=True):
    """A task waits for time to pass, or for its tool."""

    key: str
    state: TaskState


class TaskEnded(Message, frozen=True):
    key: str
    generation: int
    state: TaskState
    trigger: str
    output: Any = None
    error: str | None = None


class Cancel(Message, frozen=True):
    """Cancel it, and all that belongs to it."""

    trigger: str
    who: str | None
    why: str | None


class AddTasks(Message, frozen=True):
    """A running task adds to its own graph."""

    tasks: tuple[Task, ...]
    by: str  # the key of the task
    reply: Reply[None]


class Explain(Message, frozen=True):
    """Why is it not moving? Of the workstream, or of one of its tasks."""

    key: str | None
    reply: Reply[Any]


# To the scheduler


class Enqueue(Message, frozen=True):
    task_id: str
    task: TaskRef
    workstream_id: str
    kinds: frozenset[str]
    needs: frozenset[str]
    breaker: str | None
    priority: int
    is_probe: bool = False


class Withdraw(Message, frozen=True):
    task_id: str
    task: TaskRef


class Joined(Message, frozen=True):
    """A worker takes tasks."""

    worker_id: str
    worker: WorkerRef
    kind: str
    capabilities: frozenset[str]
    slots: int
    used: int = 0


class Left(Message, frozen=True):
    worker_id: str  # a worker takes no tasks any more


class Freed(Message, frozen=True):
    """A worker's slot is free again."""

    worker_id: str
    workstream_id: str


class HoldLane(Message, frozen=True):
    breaker: str  # nobody is to use this tool: its breaker has opened


class OpenLane(Message, frozen=True):
    breaker: str  # everybody may use this tool again


class ProbeLane(Message, frozen=True):
    breaker: str  # one task may use this tool


class Reserve(Message, frozen=True):
    """A workstream wants so many slots to itself."""

    workstream_id: str
    slots: int


class Unreserve(Message, frozen=True):
    workstream_id: str


class WhyQueued(Message, frozen=True):
    task_id: str
    reply: Reply[Any]


class StopAssigning(Message, frozen=True):
    """No more tasks are to start: the runtime stops."""


# To a worker


class Take(Message, frozen=True):
    """A task is to run here; it may begin when that is durable."""

    order: Order
    task: TaskRef


class Run(Message, frozen=True):
    token: str  # the attempt with this token may begin


class Abort(Message, frozen=True):
    """Nobody wants this attempt any more."""

    token: str
    why: str


class Confirm(Message, frozen=True):
    """Is this attempt still running here?"""

    task_id: str
    generation: int
    attempt: int
    task: TaskRef


class Unresponsive(Message, frozen=True):
    """It has missed its health checks. By the supervisor."""

    missed: int


class Recovered(Message, frozen=True):
    """It answers again. By the supervisor."""


class GiveUpOn(Message, frozen=True):
    """It did not come back in time. By the supervisor."""

    after_s: float


class Respawn(Message, frozen=True):
    """Begin a new life. By the supervisor."""


# To the supervisor


class WorkerUp(Message, frozen=True):
    worker_id: str


class WorkerDown(Message, frozen=True):
    worker_id: str  # a worker has ended by itself


class Beat(Message, frozen=True):
    worker_id: str


# To a breaker


class ToolFailed(Message, frozen=True):
    task_id: str
    task: TaskRef
    error: str


class ToolSucceeded(Message, frozen=True):
    task_id: str


class Waiting(Message, frozen=True):
    """A task waits until the breaker lets it through."""

    task_id: str
    task: TaskRef


class Probing(Message, frozen=True):
    """The scheduler has let this one through."""

    task_id: str


class NoProbe(Message, frozen=True):
    """There is nobody in the queue to let through."""


class Knocking(Message, frozen=True):
    """Somebody in the queue wants to use the tool."""


class Forget(Message, frozen=True):
    """A task needs the breaker no more."""

    task_id: str


class CooldownElapsed(Message, frozen=True):
    """It is time to find out whether the tool works again."""


class NewPolicy(Message, frozen=True):
    """A definition says something else about the breaker than the one before."""

    policy: BreakerPolicy
