"""A task, from the moment when nothing before it is left until its end.

It owns its record. Everything that it does it could also do after a crash: `started` looks at the state in which
it finds itself and goes on from there, in a new life of the actor as in a new life of the whole process.
"""

from functools import partial
from typing import Any, assert_never

from understudy.actors.engine import messages as m
from understudy.actors.engine.circuit import obey_breaker, wait_for_breaker
from understudy.actors.engine.explaining import of_task
from understudy.actors.engine.operating import act_on_active
from understudy.actors.engine.retries import Failing, Failure, backoff_s, judge
from understudy.actors.engine.task_seat import TaskSeat
from understudy.actors.engine.validating import find_faults
from understudy.actors.kernel import Actor, Ref, Timer
from understudy.actors.lifecycle import TASK, TaskState, TaskTrigger, WorkstreamState
from understudy.actors.ports.workplace import Report
from understudy.actors.records import TaskRecord

S, T = TaskState, TaskTrigger
PROBE_PRIORITY = 2**31  # before everything else: others wait for what it finds out
CRASH = "the runtime had stopped while it ran"


class TaskActor(Actor[Any]):
    __slots__ = ("_book", "_checking", "_requeued", "is_probe", "seat", "timer")

    def __init__(self, seat: TaskSeat) -> None:
        self.seat = seat
        self._book = seat.house.book
        self.timer: Timer | None = None  # for the deadline of an attempt, or the end of a delay
        self._checking = False
        self.is_probe = False  # whether its last way to the queue was that of a probe
        self._requeued = False  # whether it was put into the queue once more, to be sure

    def started(self) -> None:
        record = self.seat.record
        match record.state:
            case S.PENDING:
                self.queue(T.SCHEDULER_ASSIGNED)
            case S.RUNNING if self.seat.worker is not None:
                self._rearm(record)
            case S.RUNNING:
                self._lose(CRASH, counted=False)
            case S.QUEUED:
                self._recheck()
                self._forget_breaker()  # it may have been the probe, and is not any more
            case S.VALIDATING | S.ERRORED | S.TIMED_OUT | S.RETRYING | S.CIRCUIT_OPEN | S.HALF_OPEN:
                self._recheck()
            case _:
                self._withdraw()

    def receive(self, message: Any) -> None:
        match message:
            case m.Assigned():
                self._assign(message)
            case m.Finished():
                if self.seat.is_current(message.generation, message.attempt):
                    self._finish(message.report)
            case m.WorkerLost():
                if self.seat.is_current(message.generation, message.attempt):
                    self._lose(message.cause, counted=message.counted)
            case m.Overdue():
                if self.seat.is_current(self.seat.record.generation, message.attempt):
                    self._time_out()
            case m.Ruling():
                if self.seat.record.state in (S.ERRORED, S.TIMED_OUT):
                    self._rule(is_open=message.is_open)
            case m.BackoffElapsed():
                if self.seat.record.state is S.RETRYING and message.attempts == self.seat.record.attempts:
                    self.queue(T.RETRY_DELAY_ELAPSED)
            case m.ChecksDone():
                if self.seat.record.state is S.VALIDATING:
                    self._conclude(message)
            case m.CircuitOpened() | m.ProbeNow() | m.CircuitClosed() | m.JitterElapsed():
                obey_breaker(self, message)
            case m.Cancel():
                if not TASK.is_terminal(self.seat.record.state):
                    self.leave(S.CANCELLED, message.trigger, message.who, message.why)
            case m.Act():
                act_on_active(self, message.request, message.answer)
            case m.Recheck():
                self._recheck()
            case m.Describe():
                house, plan = self.seat.house, self.seat.plan
                of_task(self.seat.record, plan.breaker, house.open_breakers, message.reply, house.scheduler)
            case m.Withdrawn():
                if TASK.is_terminal(self.seat.record.state):
                    self._end()
            case _:
                assert_never(message)

    # Towards a worker

    def queue(self, trigger: str, *, is_probe: bool = False) -> None:
        self.seat.move(S.QUEUED, trigger, due_at=None)
        self.is_probe = is_probe
        self._enqueue()

    def _enqueue(self) -> None:
        record, plan = self.seat.record, self.seat.plan
        self.seat.house.scheduler.tell(
            m.Enqueue(
                record.id,
                self.context,
                record.workstream_id,
                plan.kinds,
                plan.needs,
                plan.breaker,
                PROBE_PRIORITY if self.is_probe else record.priority,
                self.is_probe,
            )
        )

    def _withdraw(self) -> None:
        """Make sure that nobody gives it a slot any more. The scheduler answers after what it has given."""
        self.seat.house.scheduler.tell(m.Withdraw(self.seat.record.id, self.context))

    def _assign(self, message: m.Assigned) -> None:
        seat = self.seat
        if seat.record.state is not S.QUEUED:  # cancelled, with the slot on its way
            seat.house.scheduler.tell(m.Freed(message.worker_id, seat.record.workstream_id))
            return
        if self._requeued:
            self._withdraw()
        self._requeued = False
        attempt, now = seat.record.attempts + 1, self._book.now_us()
        self.seat.move(
            S.RUNNING,
            T.WORKER_STARTED,
            reason=seat.cause,
            attempts=attempt,
            worker_id=message.worker_id,
            started_at=now if seat.record.started_at is None else seat.record.started_at,
            deadline_at=now + int(seat.plan.timeout_s * 1e6),
        )
        seat.worker = message.worker
        message.worker.tell(m.Take(self.seat.order(), self.context))
        self.timer = self.context.after(seat.plan.timeout_s, m.Overdue(attempt))
        if seat.is_waiting or seat.of.record.state is not WorkstreamState.EXECUTING:  # else that is known
            seat.is_waiting = False
            seat.stream.tell(m.TaskStarted(seat.record.key))
        self._begin_when_durable(message.worker)

    def _begin_when_durable(self, worker: Ref[Any]) -> None:
        """The worker has been told what to take. What was given up meanwhile it does not know any more."""
        self._book.then(partial(worker.tell, m.Run(self.seat.token)))

    # How an attempt ends

    def _finish(self, report: Report) -> None:
        plan = self.seat.plan
        self.stop_timer()
        error = report.error
        if error is None and report.exit_code is not None and report.exit_code not in plan.expected_exit_codes:
            error = f"exit code {report.exit_code}"
        if error is None:
            self.seat.note_attempt("completed", report)
            self.seat.move(
                S.VALIDATING, T.EXECUTION_COMPLETED, worker_id=None, exit_code=report.exit_code, output=report.output
            )
            if plan.breaker is not None:
                self.seat.breaker.tell(m.ToolSucceeded(self.seat.record.id))
            self._validate()
        else:
            self.seat.note_attempt("failed", report, error)
            self.seat.failure = judge(report, plan.retry)
            self.seat.move(
                S.ERRORED,
                T.EXECUTION_FAILED,
                reason=error,
                worker_id=None,
                last_error=error,
                exit_code=report.exit_code,
            )
            self._ask_breaker(error)

    def _time_out(self) -> None:
        error = f"timed out after {self.seat.plan.timeout_s:g} s"
        self._abort("timed out")
        self.seat.note_attempt("timed_out", Report(), error)
        self.seat.failure = Failure(Failing.UNKNOWN)
        self.seat.move(S.TIMED_OUT, T.EXECUTION_TIMED_OUT, reason=error, worker_id=None, last_error=error)
        self._ask_breaker(error)

    def _lose(self, cause: str, *, counted: bool) -> None:
        """The worker is gone. That costs no retry, but a task that takes its workers with it must end."""
        record, most = self.seat.record, self.seat.plan.retry.lost_workers_max
        self.stop_timer()
        self.seat.note_attempt("lost", Report(), cause)
        lost = record.lost_workers + counted
        self.seat.move(S.ERRORED, T.WORKER_LOST, reason=cause, worker_id=None, last_error=cause, lost_workers=lost)
        self._forget_breaker()
        if counted and lost >= most:
            self._fail(T.RETRIES_EXHAUSTED, f"killed {lost} workers, the last one {cause}")
            return
        self.seat.cause = cause
        self.seat.move(S.RETRYING, T.REASSIGNED, reason=cause)
        self.queue(T.RETRY_DELAY_ELAPSED)

    # What follows from a failure

    def _ask_breaker(self, error: str) -> None:
        if self.seat.plan.breaker is None:
            self._rule(is_open=False)
        else:
            self.seat.breaker.tell(m.ToolFailed(self.seat.record.id, self.context, error))
            if self.seat.failure is not None and self.seat.failure.failing is Failing.PERMANENT:
                self._rule(is_open=False)  # whatever the breaker says

    def _rule(self, *, is_open: bool) -> None:
        record, policy = self.seat.record, self.seat.plan.retry
        failure, self.seat.failure = self.seat.failure or Failure(Failing.UNKNOWN), None
        if failure.failing is Failing.PERMANENT and record.state is S.ERRORED:
            self._fail(T.PERMANENT_ERROR, record.last_error)
        elif record.retry_count >= record.max_retries:
            self._fail(T.RETRIES_EXHAUSTED, f"{record.last_error} (attempt {record.attempts}, no retry left)")
        elif is_open:
            self.seat.cause = f"retry after: {record.last_error}"
            wait_for_breaker(self, retry_count=record.retry_count + 1)
        else:
            self.seat.cause = f"retry after: {record.last_error}"
            delay_s = backoff_s(policy, record.retry_count, self.context.entropy, failure.retry_after_s)
            due_at = self._book.now_us() + int(delay_s * 1e6)
            self.seat.move(
                S.RETRYING,
                T.RETRY_SCHEDULED,
                reason=f"in {delay_s:.3g} s, after: {record.last_error}",
                retry_count=record.retry_count + 1,
                due_at=due_at,
            )
            self.timer = self.context.after(delay_s, m.BackoffElapsed(record.attempts))
            self.tell_stream_of_waiting()

    # Validation

    def _validate(self) -> None:
        checks = self.seat.job.checks
        if not checks:
            self.seat.move(S.COMPLETED, T.VALIDATION_PASSED, completed_at=self._book.now_us())
            self._end()
            return
        house, subject = self.seat.house, self.seat.subject()
        self._checking = True
        self.context.start(
            lambda: house.checks.run(checks, subject),
            lambda outcome: m.ChecksDone(subject.attempt, outcome),
        )

    def _conclude(self, message: m.ChecksDone) -> None:
        self._checking = False
        error = find_faults(message.outcome, self._book)
        if error is None:
            return
        if not error:
            self.seat.move(S.COMPLETED, T.VALIDATION_PASSED, completed_at=self._book.now_us())
            self._end()
        elif self.seat.plan.retry.on_failed_checks:
            self.seat.move(S.ERRORED, T.VALIDATION_FAILED, reason=error, last_error=error, output=None)
            self._rule(is_open=False)
        else:
            self._fail(T.VALIDATION_FAILED, error, output=None)

    # What others want

    def leave(self, state: TaskState, trigger: str, who: str | None, why: str | None, **changes: Any) -> None:
        """End wherever it is, by somebody's wish. Raises where it may not, and then nothing has changed."""
        before = self.seat.record
        now = self._book.now_us()
        self.seat.move(state, trigger, reason=why, who=who, worker_id=None, due_at=None, completed_at=now, **changes)
        if before.state is S.RUNNING:
            self._abort(trigger)
            self.seat.note_attempt("cancelled", Report(), why or trigger, before)
        if before.state is S.QUEUED:
            self._withdraw()  # a slot may be on its way: it ends when that has come
        else:
            self._end()

    # The rest

    def _recheck(self) -> None:
        """See to it that somebody will move it. Each step does no harm where it was done before."""
        seat, record = self.seat, self.seat.record
        match record.state:
            case S.QUEUED:
                self._requeued = True
                self._enqueue()
            case S.RUNNING if seat.worker is not None:
                seat.worker.tell(m.Confirm(record.id, record.generation, record.attempts, self.context))
            case S.VALIDATING if not self._checking:
                self._validate()
            case S.ERRORED | S.TIMED_OUT:
                self._rule(is_open=seat.plan.breaker in seat.house.open_breakers)
            case S.RETRYING:
                if self.timer is None:
                    self.timer = self.context.after(self.seat.time_left_s(), m.BackoffElapsed(record.attempts))
                self.tell_stream_of_waiting()
            case S.CIRCUIT_OPEN:
                self.seat.breaker.tell(m.Waiting(record.id, self.context))
                self.tell_stream_of_waiting()
            case S.HALF_OPEN if self.timer is None:
                self.queue(T.PROBE_SCHEDULED)
            case state if TASK.is_terminal(state):
                self._withdraw()  # and then say again that it has ended
            case _:
                pass

    def _rearm(self, record: TaskRecord) -> None:
        """The actor crashed, its attempt did not: wait for it again."""
        self.timer = self.context.after(self.seat.plan.timeout_s, m.Overdue(record.attempts))
        self._recheck()
        if self.seat.worker is not None:
            self._begin_when_durable(self.seat.worker)

    def _fail(self, trigger: str, error: str | None, **changes: Any) -> None:
        self.seat.move(S.FAILED, trigger, reason=error, last_error=error, completed_at=self._book.now_us(), **changes)
        self._end()

    def _end(self) -> None:
        """Say so to its workstream, which lets it go."""
        seat, record = self.seat, self.seat.record
        self.stop_timer()
        self._forget_breaker()
        seat.stream.tell(
            m.TaskEnded(
                record.key, record.generation, record.state, record.trigger or "", record.output, record.last_error
            )
        )

    def _abort(self, why: str) -> None:
        seat = self.seat
        self.stop_timer()
        if seat.worker is not None:
            seat.worker.tell(m.Abort(seat.token, why))
            seat.worker = None

    def _forget_breaker(self) -> None:
        if self.seat.plan.breaker is not None:
            self.seat.breaker.tell(m.Forget(self.seat.record.id))

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def tell_stream_of_waiting(self) -> None:
        self.seat.is_waiting = True
        self.seat.stream.tell(m.TaskWaits(self.seat.record.key, self.seat.record.state))
