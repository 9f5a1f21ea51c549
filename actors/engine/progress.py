"""How a workstream stands: its state follows from those of its tasks, and its policy from what has failed."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from understudy.actors.definition import OnFailure
from understudy.actors.definition.bindings import Unbound
from understudy.actors.engine import merging
from understudy.actors.engine import messages as m
from understudy.actors.engine.graph import Node
from understudy.actors.engine.requests import Done
from understudy.actors.engine.retries import backoff_s
from understudy.actors.engine.validating import find_faults
from understudy.actors.engine.workstream_seat import WorkstreamSeat
from understudy.actors.errors import InternalError
from understudy.actors.kernel import Actor, Outcome, Reply
from understudy.actors.lifecycle import WORKSTREAM, TaskState, TaskTrigger, WorkstreamState, WorkstreamTrigger
from understudy.actors.ports.checks import Subject
from understudy.actors.records import CheckResult

S, T = WorkstreamState, WorkstreamTrigger
ENDS: dict[str, WorkstreamState] = {
    T.USER_CANCELLED: S.CANCELLED,
    T.PARENT_CANCELLED: S.CANCELLED,
    T.TIMED_OUT: S.CANCELLED,
    T.RESOLVED_MANUALLY: S.RESOLVED,
    T.GAVE_UP: S.FAILED,
}
_BACK: dict[WorkstreamState, WorkstreamTrigger] = {
    S.WAITING_FOR_DEPENDENCIES: T.DEPENDENCIES_READY,
    S.WAITING_FOR_RETRY: T.RETRY_READY,
    S.RETRYING: T.RETRY_DELAY_ELAPSED,
    S.BLOCKED: T.TASK_FIXED,
}


class RetryNow(msgspec.Struct, frozen=True):
    """The delay of the whole workstream is over."""

    generation: int


class PastDeadline(msgspec.Struct, frozen=True):
    """The workstream has had its time."""

    generation: int


class Validated(msgspec.Struct, frozen=True):
    """What the final checks have found."""

    outcome: Outcome[list[CheckResult]]


class Leave(msgspec.Struct, frozen=True):
    """That it has ended is durable."""


class ChildLeft(msgspec.Struct, frozen=True):
    """A child has ended, durably."""


class Progress(Actor[Any]):
    """What the workstream's actor is besides waking its tasks."""

    __slots__ = ("added", "doomed", "fetching", "graph", "house", "leaving", "placing", "seat", "uncreated", "waiting")

    def __init__(self, seat: WorkstreamSeat) -> None:
        self.seat = seat
        self.house = seat.house
        self.graph = seat.graph
        self.waiting: dict[str, TaskState] = {}  # active tasks that wait for time or for their tool
        self.uncreated: deque[Node] = deque()
        self.doomed: deque[tuple[Node, TaskState, str, str]] = deque()  # tasks that are to end, and how
        self.leaving = False  # whether it is to leave memory soon
        self.fetching: int = 0  # tasks that wait for outputs from the store
        self.placing = False  # whether something is being done with its workspace
        self.added: list[Reply[None]] = []  # to be sent when the tasks that were added have their records

    @abstractmethod
    def advance(self) -> None: ...

    @abstractmethod
    def doom_rest(self, reason: str) -> None: ...

    @property
    def is_live(self) -> bool:
        return not WORKSTREAM.is_terminal(self.seat.record.state)

    @property
    def may_time_out(self) -> bool:
        """Once the final checks run, it is too late for the deadline."""
        return self.is_live and self.seat.record.state is not S.VALIDATING

    def reserve(self) -> None:
        if self.seat.definition.reserved_workers > 1:
            self.house.scheduler.tell(m.Reserve(self.seat.record.id, self.seat.definition.reserved_workers))

    def _unreserve(self) -> None:
        if self.seat.definition.reserved_workers > 1:
            self.house.scheduler.tell(m.Unreserve(self.seat.record.id))

    def arm_timers(self) -> None:
        """For what is to happen later, in a new life as well."""
        record, now = self.seat.record, self.house.book.now_us()
        if record.deadline_at is not None:
            left_s = min(max((record.deadline_at - now) / 1e6, 0.0), self.seat.definition.deadline or 0.0)
            self.context.after(left_s, PastDeadline(record.generation))
        if record.state is S.RETRYING:
            left_s = min(max(((record.due_at or 0) - now) / 1e6, 0.0), self.seat.definition.retry.max_delay * 2)
            self.context.after(left_s, RetryNow(record.generation))

    def review(self) -> None:
        """Derive the workstream's state from its tasks."""
        record, graph = self.seat.record, self.graph
        has_own_pace = record.state in (S.PLANNED, S.VALIDATING, S.RETRYING) and record.ending is None
        if not self.is_live or has_own_pace:
            return
        busy = graph.active or graph.ready or self.uncreated or self.doomed or self.fetching or self.placing
        if not busy and record.ending is not None and self._has_children:
            return  # they are ending as well, and say so
        if not busy:
            self._settle()
        elif record.ending is not None:
            return
        elif graph.active and len(self.waiting) == graph.active and not (graph.ready or self.fetching):
            self._to_waiting()
        elif record.state in (S.WAITING_FOR_DEPENDENCIES, S.WAITING_FOR_RETRY):
            self.to_executing()

    @property
    def _has_children(self) -> bool:
        house = self.house
        return any(house.workstreams[child].alive for child in house.children.get(self.seat.record.id, ()))

    def _settle(self) -> None:
        """Nothing runs and nothing is ready: it ends, or waits for somebody."""
        record, graph, policy = self.seat.record, self.graph, self.seat.definition.on_failure
        if record.ending is not None:
            self.finish(ENDS[record.ending], record.ending, record.last_error)
        elif graph.broken and policy is OnFailure.BLOCK:
            if record.state is not S.BLOCKED:
                self.to_executing()
                self.block(self._what_broke())
        elif graph.broken and policy is OnFailure.RETRY and record.retry_count < record.max_retries:
            self._retry_later()
        elif graph.live and not graph.broken:
            raise InternalError(f"{graph.live} tasks of {record.id} wait, and nothing will move them")
        elif graph.live:  # held by what is broken beyond repair
            self.doom_rest(self._what_broke())
            self.advance()
        elif graph.broken:
            self.to_executing()
            trigger = T.RETRIES_EXHAUSTED if policy is OnFailure.RETRY else T.CRITICAL_TASK_FAILED
            self.finish(S.FAILED, trigger, self._what_broke())
        elif not graph.nodes and record.state is S.READY:
            self.finish(S.COMPLETED, T.NO_TASKS_FOUND, None)
        elif record.state is not S.BLOCKED:  # else by its merge, until somebody comes
            self._validate()

    def block(self, reason: str, **changes: Any) -> None:
        """Wait for an operator."""
        self.seat.move(S.BLOCKED, T.PERMANENT_FAILURE, reason=reason, last_error=reason, **changes)
        self._unreserve()  # others need the slots until somebody comes

    def _what_broke(self) -> str:
        keys = list(self.graph.broken)
        shown = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
        return f"{'task' if len(keys) == 1 else 'tasks'} {shown} did not succeed"

    def _to_waiting(self) -> None:
        only_retries = all(state is TaskState.RETRYING for state in self.waiting.values())
        target = S.WAITING_FOR_RETRY if only_retries else S.WAITING_FOR_DEPENDENCIES
        if self.seat.record.state is not target:
            self.to_executing()
            self.seat.move(target, T.ONLY_RETRIES_LEFT if only_retries else T.NO_DEPENDENCIES_READY)

    def to_executing(self, who: str | None = None, why: str | None = None) -> None:
        """Come back to executing from wherever it waits."""
        record = self.seat.record
        if record.ending is not None:
            return  # its end begins where it is
        if record.state is S.READY and (self.waiting or not self.graph.active):  # it ends before anything has run
            self.seat.move(S.WAITING_FOR_DEPENDENCIES, T.NO_DEPENDENCIES_READY)
            record = self.seat.record
        if record.state is S.READY:
            self.seat.move(S.EXECUTING, T.FIRST_TASK_STARTED, **self._start())
            self.arm_timers()
        elif record.state in _BACK:
            if record.state is S.BLOCKED:
                self.reserve()
            changes = {} if record.started_at is not None else self._start()
            self.seat.move(S.EXECUTING, _BACK[record.state], reason=why, who=who, due_at=None, **changes)
            if changes:
                self.arm_timers()

    def _start(self) -> dict[str, Any]:
        now, deadline = self.house.book.now_us(), self.seat.definition.deadline
        return {"started_at": now, "deadline_at": None if deadline is None else now + int(deadline * 1e6)}

    def _retry_later(self) -> None:
        record, policy = self.seat.record, self.seat.definition.retry
        self.to_executing()
        delay_s = backoff_s(policy, record.retry_count, self.context.entropy)
        self.seat.move(
            S.RETRYING,
            T.RETRY_ELIGIBLE,
            reason=f"in {delay_s:.3g} s: {self._what_broke()}",
            retry_count=record.retry_count + 1,
            due_at=self.house.book.now_us() + int(delay_s * 1e6),
        )
        self.context.after(delay_s, RetryNow(record.generation))

    def retry_now(self, generation: int) -> None:
        if (
            self.seat.record.state is S.RETRYING
            and generation == self.seat.record.generation
            and not self.seat.record.ending
        ):
            self.to_executing()
            self.reset_nodes(list(self.graph.broken.values()))
            self.advance()

    def reset_nodes(self, nodes: Iterable[Node], who: str | None = None) -> None:
        """Begin the next generation of tasks that have ended."""
        for node in nodes:
            self.seat.create(node, TaskTrigger.RESET, who)
        self.graph.settle()

    def _validate(self) -> None:
        self.to_executing()
        if self.seat.is_merged_into:
            merging.try_merge(self)
        else:
            self.begin_validation()

    def begin_validation(self, **changes: Any) -> None:
        self.seat.move(S.VALIDATING, T.ALL_TASKS_COMPLETED, **changes)
        self.run_checks()

    def run_checks(self) -> None:
        record, house = self.seat.record, self.house
        try:
            checks = self.seat.final_checks()
        except Unbound as error:
            self.finish(S.FAILED, T.VALIDATION_FAILED, str(error))
            return
        if not checks:
            self._passed()
            return
        subject = Subject(record.id, record.generation, 1, None, self.seat.place, self.seat.definition.secrets)
        self.context.start(lambda: house.checks.run(checks, subject), Validated)

    def validated(self, outcome: Outcome[list[CheckResult]]) -> None:
        if self.seat.record.state is not S.VALIDATING or self.seat.record.ending is not None:
            return
        failed = find_faults(outcome, self.house.book)
        if failed:
            self.finish(S.FAILED, T.VALIDATION_FAILED, failed)
        elif failed is not None:
            self._passed()

    def _passed(self) -> None:
        if self.seat.is_merged_into:
            merging.merge(self)
        else:
            self.complete()

    def complete(self) -> None:
        self.finish(S.COMPLETED, T.VALIDATION_PASSED, None)

    def finish(self, state: WorkstreamState, trigger: str, reason: str | None) -> None:
        now, workspace = self.house.book.now_us(), self.seat.record.workspace
        if reason is not None and workspace is not None:
            reason = f"{reason}; its files are kept in {workspace}"
        self.seat.move(
            state,
            trigger,
            reason=reason,
            who=self.seat.ending_by,
            last_error=reason,
            completed_at=now,
            ending=None,
            due_at=None,
        )
        record = self.seat.record
        for answer in self.seat.answers:
            answer.give(Done(record.id, record.state, record.generation))
        self.seat.answers, self.seat.ending_by = [], None
        self._unreserve()
        merging.let_go(self)
        self.leave_soon()

    def leave_soon(self) -> None:
        if not self.leaving:
            self.leaving = True
            self.house.book.then(lambda: self.context.tell(Leave()))

    def leave(self) -> None:
        """Leave memory, unless somebody has wanted something meanwhile."""
        record, house = self.seat.record, self.house
        self.leaving = False
        if self.is_live or house.workstreams.get(record.id) is None:
            return
        if self.context.depth:  # what waits may be a reset: that comes first
            self.leave_soon()
            return
        house.workstreams.pop(record.id, None)
        if record.parent_id is not None:
            siblings = house.children.get(record.parent_id, {})
            siblings.pop(record.id, None)
            if not siblings:
                house.children.pop(record.parent_id, None)
            parent = house.workstreams.get(record.parent_id)
            if parent is not None:
                parent.tell(ChildLeft())
        house.ended(record)
        self.graph.clear()
        self.context.stop()
