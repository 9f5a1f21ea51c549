"""What checks are run on in the tests: places, functions that look at outputs, and a short way to run one check."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from understudy.actors.definition import Check
from understudy.actors.ports.checks import Subject
from understudy.actors.ports.workspaces import Place
from understudy.actors.records import CheckResult
from understudy.adapters.checks.acceptance import RealChecks

HANG_S = 60  # no claim about speed: what has not happened by then will not happen
FUNCTIONS = "tests.integration.checks.checked"
never = threading.Event()


def subject(
    directory: Path | None = None, output: Any = None, secrets: tuple[str, ...] = (), is_closed: bool = True
) -> Subject:
    place = None if directory is None else Place(str(directory), is_closed)
    return Subject("flow/a", 1, 2, output, place, secrets)


async def run(*checks: Check, of: Subject) -> list[CheckResult]:
    made = RealChecks()
    try:
        with anyio.fail_after(HANG_S):
            return await made.run(checks, of)
    finally:
        made.close()


async def fault(check: Check, of: Subject) -> str | None:
    """What a check finds wrong."""
    [result] = await run(check, of=of)
    assert result.passed is (result.detail is None)
    return result.detail


def is_even(output: int) -> bool:
    return output % 2 == 0


async def is_even_async(output: int) -> bool:
    return is_even(output)


def say_nothing(output: Any) -> None:
    """Passes."""


def spoil(output: list[int]) -> bool:
    output.append(1)
    return len(output) == 1


def fail(output: str) -> None:
    raise ValueError(f"it is {output}")


def stop(output: Any) -> None:
    raise StopIteration("early")


def leave(output: Any) -> None:
    raise SystemExit(3)


async def give_up(output: Any) -> None:
    raise asyncio.CancelledError


def time_out(output: Any) -> None:
    raise TimeoutError("its own")


def wait_for_ever(output: Any) -> None:
    never.wait()


@contextmanager
def nothing_left_behind(marker: str) -> Iterator[None]:
    """No process that has this in its command line goes on running."""
    yield
    assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if marker.encode() in read(path)] == []


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
