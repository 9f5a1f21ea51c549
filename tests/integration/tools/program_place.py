"""A place where the tests run programs: the workplace, what was heard of it, and the logs that it left."""

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator, MutableSequence, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.integration.tools.unasked import Unasked
from understudy.actors.ports.workplace import Order, Program, Report
from understudy.actors.ports.workspaces import Place
from understudy.adapters.folders import Folders
from understudy.adapters.tools.orphans import ProcessLedger
from understudy.adapters.tools.programs import ProgramWorkplace

HANG_S = 60  # no claim about speed: what has not happened by then will not happen


class Ears(Unasked):
    """Hears the lines of programs, and waits for one."""

    def __init__(self) -> None:
        self.lines: MutableSequence[str] = []
        self._news = anyio.Event()

    def output(self, order: Order, line: str) -> None:
        self.lines.append(line)
        self._news.set()
        self._news = anyio.Event()

    async def hear(self, count: int = 1) -> Sequence[str]:
        """Wait until there are so many lines."""
        with anyio.fail_after(HANG_S):
            while len(self.lines) < count:
                await self._news.wait()
        return self.lines

    def beat(self) -> None: ...

    def died(self, why: str) -> None: ...


class ProgramPlace:
    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.ears = Ears()
        self.workplace = ProgramWorkplace(self.ears, folders, ProcessLedger(folders.processes))
        self._attempts = 0

    def order(
        self,
        program: Program,
        *,
        secrets: tuple[str, ...] = (),
        place: Place | None = None,
        previous_error: str | None = None,
    ) -> Order:
        self._attempts += 1
        return Order(
            task_id="flow/a", workstream_id="flow", key="a", generation=1, attempt=self._attempts, worker_id="w-1",
            inputs={}, timeout_s=60.0, deadline_at=4_102_444_800_000_000, program=program, secrets=secrets, place=place,
            previous_error=previous_error,
        )  # fmt: skip

    async def run(self, *argv: str, secrets: tuple[str, ...] = (), place: Place | None = None, **more: Any) -> Report:
        with anyio.fail_after(HANG_S):
            return await self.workplace.run(self.order(Program(argv, **more), secrets=secrets, place=place))

    async def python(self, code: str, *arguments: str, **more: Any) -> Report:
        return await self.run(sys.executable, "-c", code, *arguments, **more)

    async def script(self, text: str, *arguments: str, **more: Any) -> Report:
        return await self.run(text, *arguments, shell=True, **more)

    def start(self, *argv: str, **more: Any) -> "asyncio.Task[Report]":
        return asyncio.create_task(self.run(*argv, **more))

    def logs(self) -> list[str]:
        return [each.path.read_text() for each in self.folders.logs("flow")]


@asynccontextmanager
async def running_programs(folder: Path) -> AsyncIterator[ProgramPlace]:
    place = ProgramPlace(Folders(folder / "state.db"))
    await place.workplace.open(place.ears)
    try:
        yield place
    finally:
        with anyio.fail_after(HANG_S):
            await place.workplace.close()


async def wait_for_end(pid: int) -> None:
    """Until a process, of whomever, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        found, _, _ = await asyncio.to_thread(select.select, [descriptor], [], [], HANG_S)
        assert found, f"process {pid} is still there"
    finally:
        os.close(descriptor)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
