"""Acceptance tests: whether what a task, or a whole workstream, has done is good enough."""

from typing import Any, Protocol

import msgspec

from understudy.actors.definition import Check
from understudy.actors.ports.workspaces import Place
from understudy.actors.records import CheckResult


class Subject(msgspec.Struct, frozen=True, gc=False):
    """What is looked at."""

    task_id: str  # or the id of a workstream, for its final validation
    generation: int
    attempt: int
    output: Any = None
    place: Place | None = None  # where relative paths lead to, and commands run
    secrets: tuple[str, ...] = ()  # names of variables of the environment whose values are to be hidden


class Checks(Protocol):
    async def run(self, checks: tuple[Check, ...], subject: Subject) -> list[CheckResult]:
        """All of them, beside each other, with their results in order. One that cannot be run has failed."""
        ...
