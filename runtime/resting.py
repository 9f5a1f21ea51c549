"""A database at rest, opened to change something in it: what operators want is done, and nothing is started.

The engine is the same as ever, so every move is a legal one. But nobody works in it: what is ready waits in the queue,
no function is looked up, no secret is read, no check and no merge is run. All that is left to the process that goes on.
Programs that a killed process has left are ended, as their attempts are.
"""

import asyncio
import os
from pathlib import Path
from typing import Any, NoReturn, Self

from understudy.actors.definition import Check, WorkerDefinition, WorkerKind, Workspace
from understudy.actors.engine.engine import Engine
from understudy.actors.engine.house import House, Limits
from understudy.actors.engine.requests import Conflict, Done, Operation, Request
from understudy.actors.errors import InternalError, MisuseError
from understudy.actors.journal import Book
from understudy.actors.kernel import LoopKernel
from understudy.actors.ports.checks import Subject
from understudy.actors.ports.workplace import Workplace
from understudy.actors.ports.workspaces import MergePlan
from understudy.actors.records import CheckResult
from understudy.adapters.clock import wall_us
from understudy.adapters.folders import Folders
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.adapters.tools.orphans import end_orphans
from understudy.runtime.records import Records
from understudy.runtime.runtime import ORPHANS_GRACE_S

_OF_WORKERS = frozenset({Operation.PAUSE, Operation.RESUME, Operation.DRAIN, Operation.TERMINATE})


class Resting(Records):
    """Open it with `async with`. Raises `StoreRefused` where a process has the database open."""

    def __init__(self, path: str | Path) -> None:
        self._sqlite = SqliteStore(path)
        self._kernel = LoopKernel(grace_s=0)
        self._engine: Engine | None = None
        super().__init__(self._sqlite)

    async def __aenter__(self) -> Self:
        if not self._sqlite.path.is_file():
            raise MisuseError(f"{self._sqlite.path} is not there")
        await self._sqlite.__aenter__()
        try:
            await end_orphans(Folders(self._sqlite.path), ORPHANS_GRACE_S)
            await self._kernel.__aenter__()
            self._engine = Engine(self._kernel, await self._furnish())
            await self._engine.recover(())
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._kernel.close(0)
        finally:
            await self._sqlite.__aexit__()

    async def operate(self, request: Request) -> Done:
        """Do what an operator wants. When this returns it is durable."""
        if self._engine is None:
            raise MisuseError("the database is not open: use `async with Resting(...) as resting`")
        if request.operation in _OF_WORKERS:
            what = f"worker {request.target} lives in a process, and none has this database open"
            raise Conflict(f"{what}: start one with `understudy run`; it brings its own workers")
        done: Done = await self._engine.ask(request)
        return done

    async def _furnish(self) -> House:
        idle = _Idle()
        return House(
            book=Book(await self._sqlite.last_sequence(), wall_us),
            store=self._sqlite,
            workplaces=idle,
            checks=idle,
            workspaces=idle,
            secret=lambda name: f"${{secrets.{name}}}",  # goes nowhere
            note=lambda *_, **__: None,
            owner=f"{os.getpid()}-resting",
            limits=Limits(),
            spawn=lambda build, seat, name: self._kernel.spawn(build, seat, name=name),
        )


class _Idle:
    """Stands where work would be done. What it is asked for never ends, and is asked for again by the next process."""

    def make(self, worker_id: str, definition: WorkerDefinition) -> Workplace:
        raise InternalError(f"worker {worker_id} ({definition.kind}) has no place in a database at rest")

    def kinds_for(self, call: str) -> frozenset[str]:
        return frozenset(kind.value for kind in WorkerKind)

    async def run(self, checks: tuple[Check, ...], subject: Subject) -> list[CheckResult]:
        await _never()

    async def prepare(self, workstream_id: str, workspace: Workspace, directory: str | None) -> str:
        await _never()

    async def plan_merge(self, workstream_id: str, workspace: Workspace, path: str) -> MergePlan:
        await _never()

    async def merge(self, workstream_id: str, workspace: Workspace, path: str) -> str:
        await _never()

    def let_go(self, workstream_id: str) -> None: ...

    async def remove(self, workstream_id: str, workspace: Workspace, path: str) -> None:
        await _never()


async def _never() -> NoReturn:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    await future
    raise InternalError("nobody was to answer")
