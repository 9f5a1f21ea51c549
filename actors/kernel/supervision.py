"""What happens to an actor that crashes: a policy as data, and one pure decision.

Doing what was decided is in `failures`. A crash that may be restarted is, at once and from the actor's
last snapshot; one crash too many within the window puts the actor into quarantine, where it keeps
its mail and waits for an operator.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """What to do with an actor that has crashed."""

    RESTART = "restart"
    STOP = "stop"
    ESCALATE = "escalate"
    QUARANTINE = "quarantine"


class Supervision(msgspec.Struct, frozen=True):
    """A policy. By default an actor may be restarted 3 times in 5 seconds; the next crash is one too many."""

    on_crash: Verdict = Verdict.RESTART
    restarts_max: int = 3
    window_s: float = 5.0


def decide(policy: Supervision, restarts: Sequence[float], now: float) -> Verdict:
    """Judge a crash at `now`, given when the actor was restarted before."""
    if policy.on_crash is not Verdict.RESTART:
        return policy.on_crash
    if len(recent(policy, restarts, now)) < policy.restarts_max:
        return Verdict.RESTART
    return Verdict.QUARANTINE


def recent(policy: Supervision, restarts: Sequence[float], now: float) -> list[float]:
    """The restarts that still count."""
    return [at for at in restarts if now - at < policy.window_s]
