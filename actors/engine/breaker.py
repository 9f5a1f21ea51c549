"""A circuit breaker: keeps tasks from a tool that fails, and lets one probe through after the cooldown.

Tasks that wait for it spend no attempts. It is one for each tool, for all workstreams that use it.
"""

from typing import Any, assert_never

from msgspec.structs import replace

from understudy.actors.definition import BreakerPolicy
from understudy.actors.engine import messages as m
from understudy.actors.engine.house import House
from understudy.actors.engine.requests import Answer, Conflict, Done, Operation, Request
from understudy.actors.kernel import Actor, Ref, Timer
from understudy.actors.lifecycle import BreakerState, BreakerTrigger, Entity, InvalidTransition
from understudy.actors.records import BreakerRecord

S, T = BreakerState, BreakerTrigger


class BreakerSeat:
    """What a breaker is rebuilt from."""

    __slots__ = ("house", "name", "policy", "record")

    def __init__(self, house: House, name: str, policy: BreakerPolicy, record: BreakerRecord | None = None) -> None:
        self.house = house
        self.name = name
        self.policy = policy
        self.record: BreakerRecord | None = record


class Breaker(Actor[Any]):
    __slots__ = ("_asked", "_clients", "_record", "_seat", "_timer", "_waiting")

    mailbox_capacity = 1_000_000  # bounded by the tasks that are actors and use this tool

    def __init__(self, seat: BreakerSeat) -> None:
        self._seat = seat
        self._clients: dict[str, Ref[Any]] = {}  # tasks that have failed here and are not done with it
        self._waiting: dict[str, Ref[Any]] = {}  # tasks that wait until they are let through
        self._timer: Timer | None = None
        self._asked = False  # whether the scheduler is to send a probe

    def started(self) -> None:
        record = self._seat.record
        if record is None:
            now = self._seat.house.book.now_us()
            record = BreakerRecord(self._seat.name, S.CLOSED, now, now, owner=self._seat.house.owner)
            self._seat.house.book.move(Entity.BREAKER, None, record, T.CREATED)
            self._seat.record = record
        self._record = record
        match record.state:
            case S.OPEN:
                due_at = record.due_at or 0
                longest_s = (due_at - (record.opened_at or due_at)) / 1e6  # the wall clock may have jumped
                left_s = (due_at - self._seat.house.book.now_us()) / 1e6
                self._hold(min(max(left_s, 0.0), longest_s))
            case S.HALF_OPEN:
                self._hold(None)
                self._change(probe_task_id=None)
                self._probe()
            case S.CLOSED:
                pass

    def receive(self, message: Any) -> None:
        match message:
            case m.ToolSucceeded():
                self._succeed(message.task_id)
            case m.ToolFailed():
                self._fail(message)
            case m.Waiting():
                self._wait(message)
            case m.Probing():
                self._asked = False
                if self._record.state is S.HALF_OPEN:
                    self._change(probe_task_id=message.task_id)
            case m.NoProbe():
                self._asked = False
                self._probe_if_free(only_waiting=True)
            case m.Knocking():
                self._probe_if_free()
            case m.Forget():
                self._forget(message.task_id)
            case m.CooldownElapsed():
                if self._record.state is S.OPEN:
                    self._move(S.HALF_OPEN, T.COOLDOWN_EXPIRED, due_at=None, successes=0, probe_task_id=None)
                    self._probe()
            case m.Act():
                self._act(message.request, message.answer)
            case m.NewPolicy():
                self._seat.policy = message.policy
            case _:
                assert_never(message)

    def _succeed(self, task_id: str) -> None:
        record = self._record
        if record.state is S.CLOSED:
            if record.failures or record.repeats:
                self._change(failures=0, repeats=0, last_error=None)
        elif record.state is S.HALF_OPEN and record.probe_task_id == task_id:
            successes = record.successes + 1
            if successes >= self._seat.policy.success_threshold:
                self._close(T.PROBE_SUCCEEDED)
            else:
                self._change(successes=successes, probe_task_id=None)
                self._probe()

    def _fail(self, message: m.ToolFailed) -> None:
        record, policy = self._record, self._seat.policy
        if record.state is S.CLOSED:
            failures = record.failures + 1
            repeats = record.repeats + 1 if record.last_error == message.error else 0
            changes: dict[str, Any] = {"failures": failures, "repeats": repeats, "last_error": message.error}
            if failures >= policy.failure_threshold:
                self._open(T.FAILURE_THRESHOLD_EXCEEDED, f"{failures} failures in a row", **changes)
            elif repeats >= policy.error_repeats:
                self._open(T.ERROR_REPEATED, f"the same error {repeats + 1} times in a row", **changes)
            else:
                self._change(**changes)
        elif record.state is S.HALF_OPEN and record.probe_task_id == message.task_id:
            self._open(T.PROBE_FAILED, "the probe failed", last_error=message.error, probe_task_id=None)
        self._clients[message.task_id] = message.task
        message.task.tell(m.Ruling(self._record.state is not S.CLOSED))

    def _wait(self, message: m.Waiting) -> None:
        self._clients.pop(message.task_id, None)
        if self._record.state is S.CLOSED:
            message.task.tell(m.CircuitClosed())
            return
        if self._record.probe_task_id == message.task_id:  # what it was told has been lost
            message.task.tell(m.ProbeNow())
            return
        self._waiting[message.task_id] = message.task
        self._probe_if_free()

    def _forget(self, task_id: str) -> None:
        self._clients.pop(task_id, None)
        self._waiting.pop(task_id, None)
        if self._record.state is S.HALF_OPEN and self._record.probe_task_id == task_id:
            self._change(probe_task_id=None)  # it ended without a verdict: another one is to find out
            self._probe()

    def _probe_if_free(self, *, only_waiting: bool = False) -> None:
        is_free = self._record.state is S.HALF_OPEN and self._record.probe_task_id is None and not self._asked
        if is_free and (self._waiting or not only_waiting):
            self._probe()

    def _probe(self) -> None:
        """Let one through: of those that wait here, or else the next one in the queue."""
        if self._waiting:
            task_id, task = next(iter(self._waiting.items()))
            del self._waiting[task_id]
            self._change(probe_task_id=task_id)
            task.tell(m.ProbeNow())
        else:
            self._asked = True
            self._seat.house.scheduler.tell(m.ProbeLane(self._seat.name))

    def _open(self, trigger: str, reason: str | None, who: str | None = None, **changes: Any) -> None:
        now, cooldown = self._seat.house.book.now_us(), self._seat.policy.cooldown
        due_at = now + int(cooldown * 1e6)
        self._move(S.OPEN, trigger, reason=reason, who=who, opened_at=now, due_at=due_at, **changes)
        self._hold(cooldown)
        for client in self._clients.values():
            client.tell(m.CircuitOpened())

    def _hold(self, cooldown_s: float | None) -> None:
        self._seat.house.open_breakers[self._seat.name] = self._record.due_at
        self._seat.house.scheduler.tell(m.HoldLane(self._seat.name))
        self._asked = False
        self._stop_timer()
        if cooldown_s is not None:
            self._timer = self.context.after(cooldown_s, m.CooldownElapsed())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self, trigger: str, reason: str | None = None, who: str | None = None) -> None:
        self._move(
            S.CLOSED, trigger, reason=reason, who=who,
            failures=0, repeats=0, successes=0, last_error=None, opened_at=None, due_at=None, probe_task_id=None,
        )  # fmt: skip
        self._stop_timer()
        self._seat.house.open_breakers.pop(self._seat.name, None)
        self._seat.house.scheduler.tell(m.OpenLane(self._seat.name))
        waiting, self._waiting = self._waiting, {}
        for task in waiting.values():
            task.tell(m.CircuitClosed())

    def _act(self, request: Request, answer: Answer) -> None:
        try:
            match request.operation:
                case Operation.TRIP:
                    self._open(T.FORCED_OPEN, request.why, request.who, probe_task_id=None)
                case Operation.RESET_BREAKER:
                    self._close(T.RESET, request.why, request.who)
                case _:
                    raise Conflict(f"{request.operation} is not for a breaker")
        except (InvalidTransition, Conflict) as error:
            answer.refuse(error)
        else:
            answer.give(Done(request.target, self._record.state, self._record.generation))

    def _move(
        self, state: BreakerState, trigger: str, *, reason: str | None = None, who: str | None = None, **changes: Any
    ) -> None:
        before, book = self._record, self._seat.house.book
        after = replace(
            before,
            state=state,
            previous_state=before.state._value_,
            updated_at=book.now_us(),
            owner=self._seat.house.owner,
            **changes,
        )
        book.move(Entity.BREAKER, before, after, trigger, reason=reason, who=who)
        self._record = self._seat.record = after

    def _change(self, **changes: Any) -> None:
        """Change what is counted, not the state."""
        book = self._seat.house.book
        self._record = self._seat.record = replace(self._record, updated_at=book.now_us(), **changes)
        book.put(Entity.BREAKER, self._record)
