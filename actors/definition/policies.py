"""How failure is met: retries with backoff, circuit breakers, checks, and the workers that run it all.

Every default is the one that the documents name.
"""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.actors.definition.limits import Argv, Attempts, Delay, ExitCode, Id, Seconds, Share, Threshold


class ErrorRules(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which failures are meant, by any of these."""

    exceptions: Annotated[tuple[str, ...], Meta(description="Names of exception types, with or without module.")] = ()
    exit_codes: tuple[ExitCode, ...] = ()
    patterns: Annotated[tuple[str, ...], Meta(description="Regular expressions searched for in the output.")] = ()


class RetryPolicy(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When and how often to try again: min(base_delay * 2^n, max_delay), give or take the jitter."""

    enabled: Annotated[bool, Meta(description="Whether to try again at all.")] = True
    max_attempts: Annotated[Attempts, Meta(description="The first attempt counts.")] = 5
    base_delay: Annotated[Delay, Meta(description="Seconds before the second attempt.")] = 2.0
    max_delay: Delay = 60.0
    jitter: Annotated[Share, Meta(description="A delay varies by this share, both ways.")] = 0.25
    on_failed_checks: Annotated[bool, Meta(description="Whether a failed check is tried again as well.")] = False
    lost_workers_max: Annotated[Threshold, Meta(description="A task that loses this many workers has failed.")] = 3
    transient: Annotated[ErrorRules, Meta(description="Failures that are worth another attempt.")] = ErrorRules()
    permanent: Annotated[ErrorRules, Meta(description="Failures that are not.")] = ErrorRules()

    @property
    def retries_max(self) -> int:
        """Attempts after the first."""
        return self.max_attempts - 1 if self.enabled else 0


class BreakerPolicy(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When to keep tasks from a tool that fails, and for how long."""

    enabled: bool = True
    failure_threshold: Annotated[Threshold, Meta(description="Failures in a row.")] = 5
    error_repeats: Annotated[Threshold, Meta(description="How often the same error may come again in a row.")] = 2
    cooldown: Annotated[Seconds, Meta(description="Seconds until a probe is let through.")] = 60.0
    success_threshold: Annotated[Threshold, Meta(description="Probes that must succeed to close it.")] = 1


class Check(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One acceptance test. Exactly one of its kinds is given."""

    file_exists: str | None = None
    python_import: Annotated[str | None, Meta(description="A module that must import.")] = None
    js_import: Annotated[str | None, Meta(description="A module that Node.js must be able to load.")] = None
    command: Annotated[Argv | None, Meta(description="A program and its arguments; 0 passes.")] = None
    output_matches: Annotated[str | None, Meta(description="A regular expression found in the output.")] = None
    output_schema: Annotated[dict[str, Any] | None, Meta(description="A JSON Schema for the output.")] = None
    call: Annotated[str | None, Meta(description="A Python function, module:function.")] = None
    timeout: Seconds = 30.0
    name: str | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that are given: one, in a sound definition."""
        return tuple(kind for kind in CHECK_KINDS if getattr(self, kind) is not None)


CHECK_KINDS = (
    "file_exists", "python_import", "js_import", "command", "output_matches", "output_schema", "call",
)  # fmt: skip


class WorkerKind(StrEnum):
    """Where a worker runs its tasks."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"
    PROGRAM = "program"


class WorkerDefinition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A worker, or several of a kind."""

    id: Id
    kind: WorkerKind = WorkerKind.ASYNC
    count: Annotated[int, Meta(ge=1, le=10_000)] = 1
    capabilities: tuple[str, ...] = ()
    max_concurrent_tasks: Annotated[int, Meta(ge=1, le=100_000)] = 1
    heartbeat: Annotated[Seconds, Meta(description="Seconds between two signs of life.")] = 5.0
    missed_checks_max: Annotated[Threshold, Meta(description="Missed in a row, it counts as unresponsive.")] = 3
    recovery: Annotated[Seconds, Meta(description="Seconds that an unresponsive worker has to come back.")] = 60.0
