"""A runtime on a real file for the tests of the engine, with its log in hand: wait for a line, never for time."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import structlog

from tests.meta.house import ROOT
from understudy.actors.ports.store import AttemptQuery
from understudy.actors.records import Attempt
from understudy.adapters.stores.sqlite.inspection import Finding, find_faults
from understudy.runtime import Handle, RetryPolicy, Runtime, Task, WorkerDefinition, WorkerKind, Workstream

HANG_S = 60  # no claim about speed: what has not happened by then will not happen
HERE = "tests.integration.engine.functions"
ONCE = RetryPolicy(max_attempts=1)
AT_ONCE = RetryPolicy(base_delay=0, jitter=0)
LOOP = WorkerDefinition("loop", max_concurrent_tasks=100)
THREADS = WorkerDefinition("threads", WorkerKind.THREAD, max_concurrent_tasks=8)
PROCESS = WorkerDefinition("process", WorkerKind.PROCESS)

Line = dict[str, Any]


class Lines:
    """What a runtime has logged. Every thread may write, the loop waits."""

    def __init__(self) -> None:
        self.all: list[Line] = []
        self.log = structlog.wrap_logger(None, processors=[self._keep])
        self._loop = asyncio.get_running_loop()
        self._news = anyio.Event()
        self._called: list[tuple[str, Callable[[], None]]] = []

    def when(self, text: str, called: Callable[[], None]) -> None:
        """Call something on the thread that writes such a line."""
        self._called.append((text, called))

    def having(self, text: str, **fields: Any) -> list[Line]:
        """Lines with a text in their event, and with these fields."""
        return [line for line in self.all if text in line["event"] and fields.items() <= line.items()]

    async def wait_for(self, text: str, **fields: Any) -> Line:
        with anyio.fail_after(HANG_S):
            while not (found := self.having(text, **fields)):
                await self._news.wait()
        return found[0]

    def _keep(self, _logger: Any, method: str, event: Any) -> Any:
        self.all.append({**event, "level": method})
        for text, called in self._called:
            if text in event["event"]:
                called()
        self._loop.call_soon_threadsafe(self._tell)
        raise structlog.DropEvent

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class World:
    """An open runtime, and what it has logged."""

    def __init__(self, runtime: Runtime, lines: Lines) -> None:
        self.runtime = runtime
        self.lines = lines

    async def run(self, *tasks: Task, **fields: Any) -> dict[str, Any]:
        """Submit a workstream and wait for its result."""
        handle = await self.runtime.submit(Workstream(tasks, **fields))
        with anyio.fail_after(HANG_S):
            return await handle.result()

    async def submit(self, *tasks: Task, **fields: Any) -> Handle:
        return await self.runtime.submit(Workstream(tasks, **fields))

    async def attempts(self, handle: Handle, key: str) -> list[Attempt]:
        """Of one task, in order."""
        found = await self.runtime.attempts(AttemptQuery(task_id=f"{handle.id}/{key}"))
        return sorted(found, key=lambda each: (each.generation, each.attempt, each.ended_at))


@asynccontextmanager
async def opened(path: Path, *workers: WorkerDefinition, **options: Any) -> AsyncIterator[World]:
    lines = Lines()
    options.setdefault("grace_s", 0.2)
    async with Runtime(path, workers=workers or (LOOP, THREADS), log=lines.log, **options) as runtime:
        yield World(runtime, lines)


def faults(path: Path) -> list[Finding]:
    """What the library's own check finds wrong with a database."""
    return list(find_faults(path))


def call(function: str, key: str | None = None, /, **fields: Any) -> Task:
    """A task that calls one of the functions of the tests. What is not a field of a task is an argument."""
    own = {field: fields.pop(field) for field in tuple(fields) if field in Task.__struct_fields__}
    return Task(key or function, call=function if ":" in function else f"{HERE}:{function}", inputs=fields, **own)


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A program of the tests, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.integration.engine.{program}", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
