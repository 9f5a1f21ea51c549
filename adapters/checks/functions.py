"""Checks that call a Python function with the task's output, and those that look at the output itself.

A function passes the output by returning nothing or something true; it fails it by returning something false, or by
raising, whose text is the detail.
"""

import asyncio
import functools
import re
from collections.abc import Callable
from typing import Any

import msgspec

from understudy.actors.definition import Check
from understudy.actors.records import CheckResult
from understudy.adapters.clock import wall_us
from understudy.adapters.tools.calls import find

KINDS = frozenset({"call", "output_matches"})


class FunctionChecks:
    """Runs the checks of one attempt beside each other."""

    async def run(
        self, checks: tuple[Check, ...], task_id: str, generation: int, attempt: int, output: Any
    ) -> list[CheckResult]:
        running = (
            self._run(check, functools.partial(CheckResult, task_id, generation, attempt, position), output)
            for position, check in enumerate(checks)
        )
        return list(await asyncio.gather(*running))

    async def _run(self, check: Check, result: Callable[..., CheckResult], output: Any) -> CheckResult:
        began = wall_us()
        name = check.name or check.call or f"output_matches {check.output_matches}"
        try:
            async with asyncio.timeout(check.timeout):
                detail = await _look(check, output)
        except TimeoutError:
            detail = f"it took longer than {check.timeout:g} s"
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
        return result(name, detail is None, began, wall_us(), detail)


async def _look(check: Check, output: Any) -> str | None:
    """What is wrong, if something is."""
    if check.output_matches is not None:
        text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        return None if re.search(check.output_matches, text) else f"{check.output_matches!r} is not in the output"
    if check.call is None:
        return f"checks of kind {' '.join(check.kinds)} cannot be run here"
    called = find(check.call)
    passed = await called.function(output) if called.is_async else await asyncio.to_thread(called.function, output)
    return None if passed or passed is None else f"{check.call} gave {passed!r}"
