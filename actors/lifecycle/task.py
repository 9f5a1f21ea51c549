"""The lifecycle of a task: from created to completed, with everything that can go wrong in between."""

from typing import Final

from understudy.actors.lifecycle.machine import START, Entity, Machine, Move, Severity, Trait, Word


class TaskState(Word):
    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    ERRORED = "errored"
    TIMED_OUT = "timed_out"
    VALIDATING = "validating"
    RETRYING = "retrying"
    CIRCUIT_OPEN = "circuit_open"
    HALF_OPEN = "half_open"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    RESOLVED = "resolved"


class TaskTrigger(Word):
    CREATED = "created"
    RESET = "reset"
    SCHEDULER_ASSIGNED = "scheduler_assigned"
    DEPENDENCY_FAILED = "dependency_failed"
    CONDITION_NOT_MET = "condition_not_met"
    USER_SKIPPED = "user_skipped"
    USER_CANCELLED = "user_cancelled"
    WORKSTREAM_CANCELLED = "workstream_cancelled"
    REJECTED = "rejected"
    RESOLVED_MANUALLY = "resolved_manually"
    WORKER_STARTED = "worker_started"
    CIRCUIT_REJECTED = "circuit_rejected"
    EXECUTION_COMPLETED = "execution_completed"
    EXECUTION_FAILED = "execution_failed"
    WORKER_LOST = "worker_lost"
    EXECUTION_TIMED_OUT = "execution_timed_out"
    RETRY_SCHEDULED = "retry_scheduled"
    REASSIGNED = "reassigned"
    CIRCUIT_OPENED = "circuit_opened"
    RETRIES_EXHAUSTED = "retries_exhausted"
    PERMANENT_ERROR = "permanent_error"
    VALIDATION_PASSED = "validation_passed"
    VALIDATION_FAILED = "validation_failed"
    RETRY_DELAY_ELAPSED = "retry_delay_elapsed"
    COOLDOWN_EXPIRED = "cooldown_expired"
    CIRCUIT_CLOSED = "circuit_closed"
    GAVE_UP = "gave_up"
    PROBE_SCHEDULED = "probe_scheduled"
    PROBE_DENIED = "probe_denied"


S, T, WARNING, ERROR = TaskState, TaskTrigger, Severity.WARNING, Severity.ERROR
_CANCELLED = (T.USER_CANCELLED, T.WORKSTREAM_CANCELLED)
_RESOLVED = (T.RESOLVED_MANUALLY,)

TASK: Final = Machine(
    Entity.TASK,
    {
        S.PENDING: Trait.WAITING,
        S.QUEUED: Trait.WAITING,
        S.RUNNING: Trait.ACTIVE | Trait.HOLDS_WORKER,
        S.ERRORED: Trait.ACTIVE | Trait.ERROR,
        S.TIMED_OUT: Trait.ACTIVE | Trait.ERROR,
        S.VALIDATING: Trait.ACTIVE,
        S.RETRYING: Trait.WAITING | Trait.ERROR,
        S.CIRCUIT_OPEN: Trait.WAITING | Trait.ERROR,
        S.HALF_OPEN: Trait.WAITING | Trait.ERROR,
        S.COMPLETED: Trait.TERMINAL | Trait.SATISFIES,
        S.FAILED: Trait.TERMINAL | Trait.ERROR,
        S.SKIPPED: Trait.TERMINAL,  # satisfies where an operator skipped it: see satisfies_dependents
        S.CANCELLED: Trait.TERMINAL,
        S.RESOLVED: Trait.TERMINAL | Trait.SATISFIES,
    },
    S.PENDING,
    (
        Move(START, S.PENDING, (T.CREATED, T.RESET)),
        Move(S.PENDING, S.QUEUED, (T.SCHEDULER_ASSIGNED,), "dependencies_satisfied"),
        Move(S.PENDING, S.SKIPPED, (T.DEPENDENCY_FAILED, T.CONDITION_NOT_MET, T.USER_SKIPPED), severity=WARNING),
        Move(S.PENDING, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.PENDING, S.FAILED, (T.REJECTED,), severity=ERROR),
        Move(S.PENDING, S.RESOLVED, _RESOLVED),
        Move(S.QUEUED, S.RUNNING, (T.WORKER_STARTED,), "worker_with_capabilities_free"),
        Move(S.QUEUED, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.QUEUED, S.FAILED, (T.REJECTED, T.CIRCUIT_REJECTED), severity=ERROR),
        Move(S.QUEUED, S.RESOLVED, _RESOLVED),
        Move(S.RUNNING, S.VALIDATING, (T.EXECUTION_COMPLETED,), "exit_code_expected"),
        Move(S.RUNNING, S.ERRORED, (T.EXECUTION_FAILED, T.WORKER_LOST), severity=WARNING),
        Move(S.RUNNING, S.TIMED_OUT, (T.EXECUTION_TIMED_OUT,), severity=WARNING),
        Move(S.RUNNING, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.RUNNING, S.RESOLVED, _RESOLVED),
        Move(S.ERRORED, S.RETRYING, (T.RETRY_SCHEDULED,), "retries_left", WARNING),
        Move(S.ERRORED, S.RETRYING, (T.REASSIGNED,), "may_lose_another_worker", WARNING),
        Move(S.ERRORED, S.CIRCUIT_OPEN, (T.CIRCUIT_OPENED,), "breaker_open", WARNING),
        Move(S.ERRORED, S.FAILED, (T.RETRIES_EXHAUSTED,), "no_retry_left", ERROR),
        Move(S.ERRORED, S.FAILED, (T.PERMANENT_ERROR,), "error_is_permanent", ERROR),
        Move(S.ERRORED, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.ERRORED, S.RESOLVED, _RESOLVED),
        Move(S.TIMED_OUT, S.RETRYING, (T.RETRY_SCHEDULED,), "retries_left", WARNING),
        Move(S.TIMED_OUT, S.CIRCUIT_OPEN, (T.CIRCUIT_OPENED,), "breaker_open", WARNING),
        Move(S.TIMED_OUT, S.FAILED, (T.RETRIES_EXHAUSTED,), "no_retry_left", ERROR),
        Move(S.TIMED_OUT, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.TIMED_OUT, S.RESOLVED, _RESOLVED),
        Move(S.VALIDATING, S.COMPLETED, (T.VALIDATION_PASSED,), "all_checks_passed"),
        Move(S.VALIDATING, S.FAILED, (T.VALIDATION_FAILED,), "a_check_failed", ERROR),
        Move(S.VALIDATING, S.ERRORED, (T.VALIDATION_FAILED,), "retries_failed_validation", WARNING),
        Move(S.VALIDATING, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.VALIDATING, S.RESOLVED, _RESOLVED),
        Move(S.RETRYING, S.QUEUED, (T.RETRY_DELAY_ELAPSED,)),
        Move(S.RETRYING, S.CIRCUIT_OPEN, (T.CIRCUIT_OPENED,), "breaker_open", WARNING),
        Move(S.RETRYING, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.RETRYING, S.RESOLVED, _RESOLVED),
        Move(S.CIRCUIT_OPEN, S.HALF_OPEN, (T.COOLDOWN_EXPIRED, T.CIRCUIT_CLOSED)),
        Move(S.CIRCUIT_OPEN, S.FAILED, (T.GAVE_UP,), severity=ERROR),
        Move(S.CIRCUIT_OPEN, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.CIRCUIT_OPEN, S.RESOLVED, _RESOLVED),
        Move(S.HALF_OPEN, S.QUEUED, (T.PROBE_SCHEDULED,), "breaker_admits"),
        Move(S.HALF_OPEN, S.CIRCUIT_OPEN, (T.PROBE_DENIED,), "another_probe_is_out", WARNING),
        Move(S.HALF_OPEN, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.HALF_OPEN, S.RESOLVED, _RESOLVED),
    ),
)


def breaks_workstream(state: str | None, trigger: str | None) -> bool:
    """Whether a task ended so that its workstream cannot have all it was to do, unless it could do without."""
    return state == TaskState.FAILED or (state == TaskState.CANCELLED and trigger == TaskTrigger.USER_CANCELLED)


def satisfies_dependents(state: str, trigger: str) -> bool:
    """Whether what depends on a task that ended so may go on: a skip by an operator counts, one by rule does not."""
    if state == TaskState.SKIPPED:
        return trigger == TaskTrigger.USER_SKIPPED
    return Trait.SATISFIES in TASK.states[state]
