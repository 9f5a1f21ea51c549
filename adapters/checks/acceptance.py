"""Runs the checks of an attempt beside each other, each within its time.

However a check ends, it ends in a result: one that cannot be run has failed, and its detail says why, without secrets
and of a bounded size. Only the cancellation of all of them passes through, when nothing of them runs any more.
"""

import asyncio
import contextlib
import shlex
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from understudy.actors.definition import Check
from understudy.actors.ports.checks import Subject
from understudy.actors.records import CheckResult
from understudy.adapters.checks.commands import (
    Tail,
    directory_of,
    find_fault_of_command,
    find_fault_of_js_import,
    find_fault_of_python_import,
)
from understudy.adapters.checks.files import find_fault_of_file
from understudy.adapters.checks.outputs import find_fault_by_pattern, find_fault_by_schema
from understudy.adapters.clock import wall_us
from understudy.adapters.tools.calls import find
from understudy.adapters.tools.failures import cut, describe
from understudy.adapters.tools.secrets import Secrets
from understudy.adapters.tools.threads import Threads

T = TypeVar("T")
THREADS_MAX: Final = 32
NAME_MAX: Final = 200  # characters


class RealChecks:
    def __init__(self) -> None:
        self._threads = Threads("understudy-check", THREADS_MAX)

    async def run(self, checks: tuple[Check, ...], subject: Subject) -> list[CheckResult]:
        secrets = Secrets(subject.secrets)
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(self._run(check, position, subject, secrets)) for position, check in enumerate(checks)
            ]
        return [each.result() for each in running]

    def close(self) -> None:
        """Let idle threads end."""
        self._threads.close()

    async def _run(self, check: Check, position: int, subject: Subject, secrets: Secrets) -> CheckResult:
        began = wall_us()
        tail = Tail(secrets)
        timer = asyncio.timeout(check.timeout)
        try:
            async with timer:
                fault = await self._look(check, subject, tail)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            fault = _too_long(check.timeout, tail) if timer.expired() else describe(error, secrets.hide).error
        name = _writable(secrets.hide(check.name or _name(check, secrets)))[:NAME_MAX]
        detail = None if fault is None else cut(_writable(secrets.hide(fault)))
        return CheckResult(
            subject.task_id,
            subject.generation,
            subject.attempt,
            position,
            name,
            fault is None,
            began,
            wall_us(),
            detail,
        )

    async def _look(self, check: Check, subject: Subject, tail: Tail) -> str | None:
        """What is wrong, if something is."""
        if check.file_exists is not None:
            is_closed = subject.place is not None and subject.place.is_closed
            return await self._in_thread(find_fault_of_file, check.file_exists, directory_of(subject), is_closed)
        if check.python_import is not None:
            return await find_fault_of_python_import(check.python_import, subject, tail)
        if check.js_import is not None:
            return await find_fault_of_js_import(check.js_import, subject, tail)
        if check.command is not None:
            return await find_fault_of_command(check.command, subject, tail)
        if check.output_matches is not None:
            return find_fault_by_pattern(check.output_matches, subject.output)
        if check.output_schema is not None:
            return await self._in_thread(find_fault_by_schema, check.output_schema, subject.output)
        if check.call is not None:
            return await self._ask(check.call, subject.output)
        return "it names nothing that is to be looked at"

    async def _ask(self, path: str, output: Any) -> str | None:
        """A function passes an output by returning nothing or something true. It gets a copy of its own."""
        called = find(path)
        own = msgspec.to_builtins(output)
        passed = await called.function(own) if called.is_async else await self._in_thread(called.function, own)
        return None if passed or passed is None else f"{path} gave {passed!r}"

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """Where it does not end in time its thread is left to itself."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Callable[[], T]] = loop.create_future()

        def work() -> None:
            outcome = _outcome(function, *args)
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(_settle, ended, outcome)

        job = self._threads.submit(work)
        try:
            give = await ended
        except asyncio.CancelledError:
            job.abandon()
            raise
        return give()


def _outcome(function: Callable[..., T], *args: Any) -> Callable[[], T]:
    """What gives the value, or raises what was raised. A future cannot hold every exception."""
    try:
        value = function(*args)
    except BaseException as error:
        raised = error

        def give() -> T:
            raise raised

        return give
    return lambda: value


def _settle(ended: "asyncio.Future[T]", value: T) -> None:
    if not ended.done():
        ended.set_result(value)


def _is_cancelled() -> bool:
    """By somebody else, and not by what runs here."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _too_long(timeout: float, tail: Tail) -> str:
    what, lines = f"it took longer than {timeout:g} s", tail.lines()
    return f"{what}:\n{lines}" if lines else what


def _name(check: Check, secrets: Secrets) -> str:
    if check.call is not None:
        return check.call
    if check.command is not None:
        return shlex.join(map(secrets.hide, check.command))  # within quotes one would not be found
    if check.output_schema is not None:
        return "output_schema"
    return " ".join(f"{kind} {getattr(check, kind)}" for kind in check.kinds)


def _writable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
