"""The lifecycle of a workstream: a graph of tasks on its way to an end."""

from typing import Final

from understudy.actors.lifecycle.machine import START, Entity, Machine, Move, Severity, Trait, Word


class WorkstreamState(Word):
    PLANNED = "planned"
    READY = "ready"
    EXECUTING = "executing"
    WAITING_FOR_DEPENDENCIES = "waiting_for_dependencies"
    WAITING_FOR_RETRY = "waiting_for_retry"
    RETRYING = "retrying"
    BLOCKED = "blocked"
    VALIDATING = "validating"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RESOLVED = "resolved"


class WorkstreamTrigger(Word):
    SUBMITTED = "submitted"
    RESET = "reset"
    ALL_TASKS_CREATED = "all_tasks_created"
    REJECTED = "rejected"
    USER_CANCELLED = "user_cancelled"
    PARENT_CANCELLED = "parent_cancelled"
    TIMED_OUT = "timed_out"
    FIRST_TASK_STARTED = "first_task_started"
    NO_DEPENDENCIES_READY = "no_dependencies_ready"
    NO_TASKS_FOUND = "no_tasks_found"
    ONLY_RETRIES_LEFT = "only_retries_left"
    RETRY_ELIGIBLE = "retry_eligible"
    PERMANENT_FAILURE = "permanent_failure"
    ALL_TASKS_COMPLETED = "all_tasks_completed"
    CRITICAL_TASK_FAILED = "critical_task_failed"
    RETRIES_EXHAUSTED = "retries_exhausted"
    DEPENDENCIES_READY = "dependencies_ready"
    RETRY_READY = "retry_ready"
    RETRY_DELAY_ELAPSED = "retry_delay_elapsed"
    TASK_FIXED = "task_fixed"
    GAVE_UP = "gave_up"
    RESOLVED_MANUALLY = "resolved_manually"
    VALIDATION_PASSED = "validation_passed"
    VALIDATION_FAILED = "validation_failed"


S, T, WARNING, ERROR, CRITICAL = (
    WorkstreamState, WorkstreamTrigger, Severity.WARNING, Severity.ERROR, Severity.CRITICAL
)  # fmt: skip
_CANCELLED = (T.USER_CANCELLED, T.PARENT_CANCELLED)
_CANCELLED_OR_LATE = (*_CANCELLED, T.TIMED_OUT)

WORKSTREAM: Final = Machine(
    Entity.WORKSTREAM,
    {
        S.PLANNED: Trait.WAITING,
        S.READY: Trait.WAITING,
        S.EXECUTING: Trait.ACTIVE,
        S.WAITING_FOR_DEPENDENCIES: Trait.WAITING,
        S.WAITING_FOR_RETRY: Trait.WAITING,
        S.RETRYING: Trait.WAITING | Trait.ERROR,
        S.BLOCKED: Trait.WAITING | Trait.ERROR,
        S.VALIDATING: Trait.ACTIVE,
        S.COMPLETED: Trait.TERMINAL | Trait.SATISFIES,
        S.FAILED: Trait.TERMINAL | Trait.ERROR,
        S.CANCELLED: Trait.TERMINAL,
        S.RESOLVED: Trait.TERMINAL | Trait.SATISFIES,
    },
    S.PLANNED,
    (
        Move(START, S.PLANNED, (T.SUBMITTED, T.RESET)),
        Move(S.PLANNED, S.READY, (T.ALL_TASKS_CREATED,), "task_count_matches"),
        Move(S.PLANNED, S.FAILED, (T.REJECTED,), severity=ERROR),
        Move(S.PLANNED, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.READY, S.EXECUTING, (T.FIRST_TASK_STARTED,), "a_task_is_running"),
        Move(S.READY, S.WAITING_FOR_DEPENDENCIES, (T.NO_DEPENDENCIES_READY,)),
        Move(S.READY, S.COMPLETED, (T.NO_TASKS_FOUND,), "has_no_tasks"),
        Move(S.READY, S.CANCELLED, _CANCELLED, severity=WARNING),
        Move(S.EXECUTING, S.WAITING_FOR_DEPENDENCIES, (T.NO_DEPENDENCIES_READY,)),
        Move(S.EXECUTING, S.WAITING_FOR_RETRY, (T.ONLY_RETRIES_LEFT,), severity=WARNING),
        Move(S.EXECUTING, S.RETRYING, (T.RETRY_ELIGIBLE,), "retries_left", WARNING),
        Move(S.EXECUTING, S.BLOCKED, (T.PERMANENT_FAILURE,), "policy_is_block", ERROR),
        Move(S.EXECUTING, S.VALIDATING, (T.ALL_TASKS_COMPLETED,), "all_tasks_satisfied"),
        Move(S.EXECUTING, S.FAILED, (T.CRITICAL_TASK_FAILED,), "policy_is_fail", CRITICAL),
        Move(S.EXECUTING, S.FAILED, (T.RETRIES_EXHAUSTED,), "no_retry_left", CRITICAL),
        Move(S.EXECUTING, S.CANCELLED, _CANCELLED_OR_LATE, severity=WARNING),
        Move(S.WAITING_FOR_DEPENDENCIES, S.EXECUTING, (T.DEPENDENCIES_READY,)),
        Move(S.WAITING_FOR_DEPENDENCIES, S.CANCELLED, _CANCELLED_OR_LATE, severity=WARNING),
        Move(S.WAITING_FOR_RETRY, S.EXECUTING, (T.RETRY_READY,)),
        Move(S.WAITING_FOR_RETRY, S.CANCELLED, _CANCELLED_OR_LATE, severity=WARNING),
        Move(S.RETRYING, S.EXECUTING, (T.RETRY_DELAY_ELAPSED,)),
        Move(S.RETRYING, S.CANCELLED, _CANCELLED_OR_LATE, severity=WARNING),
        Move(S.BLOCKED, S.EXECUTING, (T.TASK_FIXED,)),
        Move(S.BLOCKED, S.FAILED, (T.GAVE_UP,), severity=CRITICAL),
        Move(S.BLOCKED, S.RESOLVED, (T.RESOLVED_MANUALLY,)),
        Move(S.BLOCKED, S.CANCELLED, _CANCELLED_OR_LATE, severity=WARNING),
        Move(S.VALIDATING, S.COMPLETED, (T.VALIDATION_PASSED,), "all_checks_passed"),
        Move(S.VALIDATING, S.FAILED, (T.VALIDATION_FAILED,), "a_check_failed", CRITICAL),
        Move(S.VALIDATING, S.CANCELLED, _CANCELLED, severity=WARNING),
    ),
)
