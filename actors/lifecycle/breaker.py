"""The lifecycle of a circuit breaker: it keeps tasks from a tool that fails, and lets one probe through."""

from typing import Final

from understudy.actors.lifecycle.machine import START, Entity, Machine, Move, Severity, Trait, Word


class BreakerState(Word):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerTrigger(Word):
    CREATED = "created"
    FAILURE_THRESHOLD_EXCEEDED = "failure_threshold_exceeded"
    ERROR_REPEATED = "error_repeated"
    FORCED_OPEN = "forced_open"
    COOLDOWN_EXPIRED = "cooldown_expired"
    RESET = "reset"
    PROBE_SUCCEEDED = "probe_succeeded"
    PROBE_FAILED = "probe_failed"


S, T, ERROR = BreakerState, BreakerTrigger, Severity.ERROR

BREAKER: Final = Machine(
    Entity.BREAKER,
    {
        S.CLOSED: Trait.ACTIVE,
        S.OPEN: Trait.WAITING | Trait.ERROR,
        S.HALF_OPEN: Trait.WAITING | Trait.ERROR,
    },
    S.CLOSED,
    (
        Move(START, S.CLOSED, (T.CREATED,)),
        Move(S.CLOSED, S.OPEN, (T.FAILURE_THRESHOLD_EXCEEDED, T.ERROR_REPEATED, T.FORCED_OPEN), severity=ERROR),
        Move(S.OPEN, S.HALF_OPEN, (T.COOLDOWN_EXPIRED,)),
        Move(S.OPEN, S.CLOSED, (T.RESET,)),
        Move(S.HALF_OPEN, S.CLOSED, (T.PROBE_SUCCEEDED,), "enough_probes_succeeded"),
        Move(S.HALF_OPEN, S.CLOSED, (T.RESET,)),
        Move(S.HALF_OPEN, S.OPEN, (T.PROBE_FAILED, T.FORCED_OPEN), severity=ERROR),
    ),
)
