"""Whether and when to try again: pure decisions about a failed attempt."""

import re
from enum import StrEnum

import msgspec

from understudy.actors.definition.policies import ErrorRules, RetryPolicy
from understudy.actors.kernel.entropy import Entropy
from understudy.actors.ports.workplace import Report


class Failing(StrEnum):
    """What a failure says about the next attempt."""

    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"  # tried again, within the limits


class Failure(msgspec.Struct, frozen=True):
    """A failed attempt, judged."""

    failing: Failing
    retry_after_s: float | None = None


def judge(report: Report, policy: RetryPolicy) -> Failure:
    """A rule of the policy counts before what the tool says itself; of the rules, those for permanent failures do."""
    if _fits(report, policy.permanent):
        failing = Failing.PERMANENT
    elif _fits(report, policy.transient):
        failing = Failing.TRANSIENT
    else:
        failing = Failing.PERMANENT if report.permanent else Failing.UNKNOWN
    return Failure(failing, report.retry_after_s)


def backoff_s(policy: RetryPolicy, retries: int, entropy: Entropy, retry_after_s: float | None = None) -> float:
    """Seconds until the next attempt, after so many retries. What the tool asks for wins, without jitter."""
    if retry_after_s is not None:
        return max(0.0, retry_after_s)
    exponent = min(retries, 60)  # beyond that the delay has long met its maximum, and a float its limit
    delay = min(policy.base_delay * 2.0**exponent, policy.max_delay)
    return delay * (1 + policy.jitter * (2 * entropy.random() - 1))


def _fits(report: Report, rules: ErrorRules) -> bool:
    return (
        any(name in report.kinds for name in rules.exceptions)
        or (report.exit_code is not None and report.exit_code in rules.exit_codes)
        or any(re.search(pattern, report.text) for pattern in rules.patterns)
    )
