"""The lifecycle of a worker: what runs tasks, is watched, and can be paused."""

from typing import Final

from understudy.actors.lifecycle.machine import START, Entity, Machine, Move, Severity, Trait, Word


class WorkerState(Word):
    INITIALIZING = "initializing"
    IDLE = "idle"
    BUSY = "busy"
    PAUSED = "paused"
    UNRESPONSIVE = "unresponsive"
    SHUTDOWN = "shutdown"
    FAILED = "failed"
    TERMINATED = "terminated"


class WorkerTrigger(Word):
    SPAWNED = "spawned"
    REGISTRATION_COMPLETE = "registration_complete"
    REGISTRATION_FAILED = "registration_failed"
    TERMINATE = "terminate"
    TASK_ASSIGNED = "task_assigned"
    PAUSE = "pause"
    HEALTH_CHECK_TIMEOUT = "health_check_timeout"
    SHUTDOWN_REQUESTED = "shutdown_requested"
    TASK_COMPLETED = "task_completed"
    RESOURCES_EXHAUSTED = "resources_exhausted"
    ERROR_UNRECOVERABLE = "error_unrecoverable"
    RESUME = "resume"
    HEALTH_CHECK_RECOVERED = "health_check_recovered"
    MAX_TIMEOUT_EXCEEDED = "max_timeout_exceeded"


S, T, WARNING, ERROR = WorkerState, WorkerTrigger, Severity.WARNING, Severity.ERROR

WORKER: Final = Machine(
    Entity.WORKER,
    {
        S.INITIALIZING: Trait.WAITING,
        S.IDLE: Trait.WAITING,
        S.BUSY: Trait.ACTIVE,
        S.PAUSED: Trait.WAITING,
        S.UNRESPONSIVE: Trait.WAITING | Trait.ERROR,
        S.SHUTDOWN: Trait.TERMINAL,
        S.FAILED: Trait.TERMINAL | Trait.ERROR,
        S.TERMINATED: Trait.TERMINAL,
    },
    S.INITIALIZING,
    (
        Move(START, S.INITIALIZING, (T.SPAWNED,)),
        Move(S.INITIALIZING, S.IDLE, (T.REGISTRATION_COMPLETE,), "capabilities_registered"),
        Move(S.INITIALIZING, S.FAILED, (T.REGISTRATION_FAILED,), severity=ERROR),
        Move(S.INITIALIZING, S.TERMINATED, (T.TERMINATE,), severity=WARNING),
        Move(S.IDLE, S.BUSY, (T.TASK_ASSIGNED,), "capabilities_cover_the_task"),
        Move(S.IDLE, S.PAUSED, (T.PAUSE,), "has_run_a_task"),
        Move(S.IDLE, S.UNRESPONSIVE, (T.HEALTH_CHECK_TIMEOUT,), "missed_checks_in_a_row", ERROR),
        Move(S.IDLE, S.SHUTDOWN, (T.SHUTDOWN_REQUESTED,)),
        Move(S.IDLE, S.TERMINATED, (T.TERMINATE,), severity=WARNING),
        Move(S.BUSY, S.IDLE, (T.TASK_COMPLETED,), "no_task_left"),
        Move(S.BUSY, S.PAUSED, (T.PAUSE, T.RESOURCES_EXHAUSTED), severity=WARNING),
        Move(S.BUSY, S.UNRESPONSIVE, (T.HEALTH_CHECK_TIMEOUT,), "missed_checks_in_a_row", ERROR),
        Move(S.BUSY, S.SHUTDOWN, (T.SHUTDOWN_REQUESTED,), "tasks_have_ended"),
        Move(S.BUSY, S.FAILED, (T.ERROR_UNRECOVERABLE,), severity=ERROR),
        Move(S.BUSY, S.TERMINATED, (T.TERMINATE,), severity=WARNING),
        Move(S.PAUSED, S.BUSY, (T.RESUME,), "has_tasks"),
        Move(S.PAUSED, S.IDLE, (T.RESUME,), "has_no_tasks"),
        Move(S.PAUSED, S.SHUTDOWN, (T.SHUTDOWN_REQUESTED,)),
        Move(S.PAUSED, S.TERMINATED, (T.TERMINATE,), severity=WARNING),
        Move(S.UNRESPONSIVE, S.IDLE, (T.HEALTH_CHECK_RECOVERED,)),
        Move(S.UNRESPONSIVE, S.TERMINATED, (T.MAX_TIMEOUT_EXCEEDED, T.TERMINATE), severity=ERROR),
    ),
)
