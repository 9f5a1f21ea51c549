"""A task's record, how it is changed, and what else a task is rebuilt from after a crash of its actor."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from understudy.actors.engine.house import Plan
from understudy.actors.engine.jobs import Job
from understudy.actors.engine.retries import Failure
from understudy.actors.kernel import Ref
from understudy.actors.lifecycle import Entity, TaskState
from understudy.actors.ports.checks import Subject
from understudy.actors.ports.workplace import Order, Report, token_of
from understudy.actors.records import Attempt, TaskRecord

if TYPE_CHECKING:
    from understudy.actors.engine.workstream_seat import WorkstreamSeat


class TaskSeat:
    """The actor keeps it up to date, so that a new life begins where the last one ended."""

    __slots__ = (
        "cause",
        "correlation_id",
        "failure",
        "house",
        "is_waiting",
        "job",
        "of",
        "plan",
        "record",
        "secrets",
        "stream",
        "worker",
    )

    def __init__(self, of: "WorkstreamSeat", stream: Ref[Any], record: TaskRecord, plan: Plan, job: Job) -> None:
        self.of = of  # the workstream that it belongs to, to be looked at
        self.house = of.house
        self.stream = stream  # and to be told
        self.record = record
        self.plan = plan
        self.job = job
        self.correlation_id = of.record.correlation_id
        self.secrets = of.definition.secrets
        self.is_waiting = False  # as far as the workstream was told
        self.worker: Ref[Any] | None = None  # while it runs
        self.cause: str | None = None  # of the next attempt, if it is not the first
        self.failure: Failure | None = None  # until the breaker has ruled

    @property
    def breaker(self) -> Ref[Any]:
        return self.house.breakers[self.plan.breaker or ""]

    @property
    def token(self) -> str:
        """Of the attempt that is running now."""
        return token_of(self.record.id, self.record.generation, self.record.attempts)

    def is_current(self, generation: int, attempt: int) -> bool:
        """Whether a message is about the attempt that is running now."""
        record = self.record
        return record.state is TaskState.RUNNING and record.attempts == attempt and record.generation == generation

    def time_left_s(self) -> float:
        """Until it is due, but never longer than its delay was: the wall clock may have jumped."""
        due_at = self.record.due_at or 0
        left, whole = due_at - self.house.book.now_us(), due_at - self.record.updated_at
        return min(max(left, 0), max(whole, 0)) / 1e6

    def order(self) -> Order:
        """What the worker is to do."""
        record, job = self.record, self.job
        return Order(
            record.id,
            record.workstream_id,
            record.key,
            record.generation,
            record.attempts,
            record.worker_id or "",
            job.inputs,
            self.plan.timeout_s,
            record.deadline_at or 0,
            job.call,
            job.program,
            job.request,
            self.of.place,
            self.secrets,
            record.last_error,
            self.cause,
            self.correlation_id,
        )

    def subject(self) -> Subject:
        """What its checks look at."""
        record = self.record
        return Subject(record.id, record.generation, record.attempts, record.output, self.of.place, self.secrets)

    def note_attempt(
        self, outcome: str, report: Report, error: str | None = None, record: TaskRecord | None = None
    ) -> None:
        """Write down how an attempt ended."""
        record = record or self.record
        self.worker = None
        self.house.book.add_attempt(
            Attempt(
                record.id,
                record.generation,
                record.attempts,
                record.workstream_id,
                (record.deadline_at or 0) - int(self.plan.timeout_s * 1e6),
                self.house.book.now_us(),
                outcome == "completed",
                outcome,
                record.worker_id,
                self.correlation_id,
                report.exit_code,
                error,
                report.output_bytes,
                self.cause,
            )
        )

    def move(
        self, state: TaskState, trigger: str, *, reason: str | None = None, who: str | None = None, **changes: Any
    ) -> None:
        """Change the record's state. Raises where it may not, and then nothing has changed."""
        before, book = self.record, self.house.book
        after = replace(
            before,
            state=state,
            previous_state=before.state._value_,
            trigger=str(trigger),
            updated_at=book.now_us(),
            **changes,
        )
        book.move(
            Entity.TASK,
            before,
            after,
            trigger,
            reason=reason,
            who=who,
            worker_id=after.worker_id or before.worker_id,
            attempt=after.attempts or None,
            correlation_id=self.correlation_id,
        )
        self.record = after
