"""A place to work for the tests: a workplace, what it was heard to say, and what its tasks asked of the engine."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from understudy.actors.definition import Task, WorkerDefinition, WorkerKind, Workstream
from understudy.actors.errors import MisuseError
from understudy.actors.ports.workplace import Order, Report, Workplace
from understudy.adapters.folders import Folders
from understudy.adapters.tools.in_process import ProcessWorkplace
from understudy.adapters.tools.workplaces import RealWorkplaces

HANG_S = 60  # no claim about speed: what has not happened by then will not happen
FUNCTIONS = "tests.contract.tools.functions"


class Heard:
    """What a workplace told of itself."""

    def __init__(self) -> None:
        self.beats = 0
        self.deaths: list[str] = []
        self.news = anyio.Event()

    def beat(self) -> None:
        self.beats += 1
        self._tell()

    def died(self, why: str) -> None:
        self.deaths.append(why)
        self._tell()

    async def next(self) -> None:
        await self.news.wait()

    def _tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()


class Engine:
    """The services: everything that is asked is kept, and answered."""

    def __init__(self) -> None:
        self.notes: list[tuple[float | None, str | None]] = []
        self.spawned: list[tuple[str, Workstream, int]] = []
        self.added: list[Task] = []
        self.started = anyio.Event()
        self.asked = anyio.Event()
        self.given_up = anyio.Event()

    def output(self, order: Order, line: str) -> None:
        self.notes.append((None, line))

    def progress(self, order: Order, share: float | None, note: str | None) -> None:
        self.notes.append((share, note))
        self.started.set()

    async def spawn(self, order: Order, definition: Workstream, number: int) -> str:
        self.spawned.append((order.key, definition, number))
        return f"child-{number}"

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        if workstream_id == "missing":
            raise MisuseError("there is no workstream missing")
        if workstream_id == "endless":
            self.asked.set()
            try:
                await anyio.Event().wait()
            finally:
                self.given_up.set()
        return {"of": workstream_id}

    async def add(self, order: Order, tasks: Sequence[Task]) -> None:
        self.added += tasks


class Place:
    def __init__(self, workplace: Workplace, engine: Engine, heard: Heard, is_async: bool) -> None:
        self.workplace = workplace
        self.engine = engine
        self.heard = heard
        self.is_async = is_async

    @property
    def pid(self) -> int:
        assert isinstance(self.workplace, ProcessWorkplace)
        return self.workplace.pid

    def order(self, name: str, inputs: dict[str, Any], secrets: tuple[str, ...] = ()) -> Order:
        return Order(
            task_id="flow/a", workstream_id="flow", key="a", generation=1, attempt=2, worker_id="w-1",
            call=f"{FUNCTIONS}:{name}_async" if self.is_async else f"{FUNCTIONS}:{name}",
            inputs=inputs, timeout_s=60.0, deadline_at=4_102_444_800_000_000, secrets=secrets,
            previous_error="ValueError: before", cause="retry", correlation_id="c-1",
        )  # fmt: skip

    async def run(self, name: str, secrets: tuple[str, ...] = (), **inputs: Any) -> Report:
        with anyio.fail_after(HANG_S):
            return await self.workplace.run(self.order(name, inputs, secrets))


@asynccontextmanager
async def working(
    kind: WorkerKind, *, is_async: bool = False, heartbeat: float = 5.0, cancel_grace_s: float = 30.0
) -> AsyncIterator[Place]:
    engine, heard = Engine(), Heard()
    definition = WorkerDefinition(id="w", kind=kind, max_concurrent_tasks=5, heartbeat=heartbeat)
    folders = Folders(Path("nowhere"))  # functions leave nothing there
    workplace = RealWorkplaces(engine, folders, cancel_grace_s=cancel_grace_s).make("w-1", definition)
    await workplace.open(heard)
    try:
        yield Place(workplace, engine, heard, is_async)
    finally:
        await workplace.close()
