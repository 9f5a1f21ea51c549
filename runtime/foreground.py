"""One workstream, run in the foreground of a terminal: started or resumed, shown, and stopped in order by a signal.

The first signal cancels the workstream and lets what runs end; the second one ends everything at once, as a crash
would. Nothing is lost either way: what was cancelled can be resumed, what was cut off is recovered. A signal is heard
from before the database is opened until it is closed.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from understudy.actors.definition import WorkerDefinition, WorkerKind, Workstream
from understudy.actors.engine.requests import Conflict, NotFound
from understudy.actors.errors import MisuseError, UnderstudyError
from understudy.actors.kernel import IntakeClosed
from understudy.actors.lifecycle import WORKSTREAM, Entity, InvalidTransition, Trait, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order
from understudy.actors.records import WorkstreamRecord
from understudy.runtime.counter import open_counter
from understudy.runtime.runtime import DEFAULT_WORKERS, Runtime
from understudy.runtime.views.scene import Scene
from understudy.runtime.watching import Watcher

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POOLED = frozenset({WorkerKind.PROGRAM, WorkerKind.THREAD})


class View(Watcher, Protocol):
    """A watcher that can also be told something."""

    def note(self, text: str) -> None: ...


class Stopped(UnderstudyError):
    """A signal came before there was anything to cancel."""


class Ended(msgspec.Struct, frozen=True):
    """How a run ended."""

    record: WorkstreamRecord
    scene: Scene
    others: int  # workstreams in the same database that are not done
    was_cut_off: bool = False  # by a second signal


class Foreground:
    """Runs one workstream of a database to its end."""

    def __init__(
        self,
        database: Path,
        workers: Sequence[WorkerDefinition],
        show: Callable[[Scene], AbstractContextManager[View]],
    ) -> None:
        self._database = database
        self._workers = workers
        self._show = show
        self._signals: list[signal.Signals] = []
        self._view: View | None = None
        self._untold: list[Callable[[View], None]] = []  # what came before there was a view
        self._moved = asyncio.Event()
        self._patience: anyio.CancelScope | None = None  # until the second signal

    async def start(self, definition: Workstream, params: dict[str, Any]) -> Ended:
        """Submit a workstream, and run it."""
        with self._hearing_signals():
            async with self._open() as runtime:
                target = definition.id or runtime.new_id()
                await _refuse_known(runtime, target)
                named = msgspec.structs.replace(definition, id=target)
                return await self._run(runtime, target, lambda: runtime.submit(named, params=params, who=_login()))

    async def resume(self, workstream_id: str) -> Ended:
        """Go on with a workstream: one that a crash has cut off, that is blocked, or that has ended without success."""
        with self._hearing_signals():
            async with self._open() as runtime:
                record = await runtime.workstream(workstream_id)

                async def go_on() -> None:
                    found = record
                    if found.ending is not None:
                        found = await runtime.wait_for_workstream(workstream_id)
                    if found.state is WorkstreamState.BLOCKED or _has_failed(found):
                        await runtime.reset(workstream_id, who=_login(), why="resumed")
                    async for child in _descendants(runtime, workstream_id):
                        if child.state is WorkstreamState.BLOCKED:  # a task of its parent waits for it
                            await runtime.reset(child.id, who=_login(), why="resumed")

                return await self._run(runtime, workstream_id, go_on)

    # One run

    def _open(self) -> Runtime:
        runtime = Runtime(self._database, workers=self._workers, log=_Notes(self))
        runtime.watchers.add(self)  # from the beginning: what is recovered moves before anybody can look at it
        return runtime

    async def _run(self, runtime: Runtime, workstream_id: str, begin: Callable[[], Awaitable[object]]) -> Ended:
        scene = Scene(workstream_id)
        await _look_around(runtime, scene)
        if self._signals:
            await runtime.close(grace_s=0)
            raise Stopped(f"{self._signals[0].name} came before {workstream_id} was begun: nothing was changed")
        if runtime.recovery.workstreams:
            self.tell(str(runtime.recovery))
        with self._show(scene) as view:
            self._view = view
            for tell in self._untold:
                tell(view)
            with anyio.CancelScope() as self._patience:
                async with open_counter(runtime, self._database):
                    await begin()
                    await self._wait(runtime, scene)
            others = len(set(runtime.house.workstreams) - set(scene.workstreams))
            await self._close(runtime)
        record = scene.workstreams.get(workstream_id)
        if record is None:
            raise Stopped(f"{self._signals[0].name} came before {workstream_id} was taken in: see `understudy ls`")
        return Ended(record, scene, others, self._is_cut_off)

    async def _wait(self, runtime: Runtime, scene: Scene) -> None:
        is_asked = False
        while not scene.is_over:
            self._moved.clear()
            if self._signals and not is_asked:
                is_asked = True
                await self._cancel(runtime, scene.root_id)
            await self._moved.wait()

    async def _close(self, runtime: Runtime) -> None:
        """Programs that were told to end have time for it, unless somebody has lost patience."""
        if self._is_cut_off:
            await runtime.kill()
            return
        closing = asyncio.ensure_future(runtime.close(grace_s=0 if self._signals else None))
        closing.add_done_callback(lambda _: self._moved.set())
        while not closing.done() and not self._is_cut_off:
            self._moved.clear()
            await self._moved.wait()
        if not closing.done():
            with suppress(IntakeClosed):  # it is closing already, and what it waits for is killed now
                await runtime.kill()
        await closing

    async def _cancel(self, runtime: Runtime, workstream_id: str) -> None:
        try:
            await runtime.cancel(workstream_id, who=_login(), why=f"{self._signals[0].name} in the terminal")
        except (Conflict, InvalidTransition, NotFound) as error:  # it has ended meanwhile, or does so
            self.tell(str(error))

    # What is heard

    @contextmanager
    def _hearing_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._receive, number)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _receive(self, number: signal.Signals) -> None:
        self._signals.append(number)
        self._moved.set()
        if self._is_cut_off and self._patience is not None:
            self._patience.cancel()
        elif not self._is_cut_off:
            self.tell(f"{number.name}: cancelling; once more to stop at once")

    @property
    def _is_cut_off(self) -> bool:
        return len(self._signals) > 1

    def landed(self, batch: Batch) -> None:
        """Something has moved: the view keeps the scene, and whoever waits looks whether it is over."""
        self._pass_on(lambda view: view.landed(batch))
        self._moved.set()

    def heard(self, order: Order, line: str) -> None:
        self._pass_on(lambda view: view.heard(order, line))

    def tell(self, text: str) -> None:
        """Say something besides."""
        self._pass_on(lambda view: view.note(text))

    def _pass_on(self, tell: Callable[[View], None]) -> None:
        if self._view is None:
            self._untold.append(tell)
        else:
            tell(self._view)


def workers_for(definition: Workstream, slots: int | None) -> tuple[WorkerDefinition, ...]:
    """The workers that a definition asks for, and the usual ones of the kinds that it says nothing of."""
    kinds = {each.kind for each in definition.workers}
    usual = [
        msgspec.structs.replace(each, max_concurrent_tasks=slots) if slots and each.kind in _POOLED else each
        for each in DEFAULT_WORKERS
        if each.kind not in kinds
    ]
    return (*definition.workers, *usual)


async def _look_around(runtime: Runtime, scene: Scene) -> None:
    """See what is there already: the workstream with its tasks, where it is resumed, workers and breakers."""
    for worker in await runtime.workers():
        scene.see(Entity.WORKER, worker.id, worker)
    for breaker in await runtime.breakers():
        scene.see(Entity.BREAKER, breaker.id, breaker)
    try:
        record = await runtime.workstream(scene.root_id)
    except NotFound:
        return
    await _look_at(runtime, scene, record)
    async for child in _descendants(runtime, record.id):
        await _look_at(runtime, scene, child)


async def _look_at(runtime: Runtime, scene: Scene, record: WorkstreamRecord) -> None:
    scene.see(Entity.WORKSTREAM, record.id, record)
    async for task in runtime.all_tasks(record.id):
        scene.see(Entity.TASK, task.id, task)


async def _descendants(runtime: Runtime, workstream_id: str) -> AsyncIterator[WorkstreamRecord]:
    """The children of a workstream and theirs: their ids begin with its own, so that they come next."""
    after = workstream_id
    while page := await runtime.workstreams(after=after):
        for each in page:
            after = each.id
            if not each.id.startswith(f"{workstream_id}."):
                return
            yield each


async def _refuse_known(runtime: Runtime, workstream_id: str) -> None:
    try:
        await runtime.workstream(workstream_id)
    except NotFound:
        return
    raise MisuseError(
        f"there is a workstream {workstream_id} already: go on with it by `understudy run --resume {workstream_id}`, "
        "or give the file another id"
    )


def _has_failed(record: WorkstreamRecord) -> bool:
    return WORKSTREAM.is_terminal(record.state) and Trait.SATISFIES not in WORKSTREAM.states[record.state]


def _login() -> str | None:
    return os.environ.get("USER") or os.environ.get("LOGNAME")


class _Notes:
    """The runtime's log: what the view does not know as a move already."""

    def __init__(self, foreground: Foreground) -> None:
        self._foreground = foreground

    def info(self, event: str, **fields: Any) -> None: ...

    def warning(self, event: str, **fields: Any) -> None:
        if "trigger" not in fields:
            said = ", ".join(f"{name}: {value}" for name, value in fields.items() if name != "stack")
            self._foreground.tell(f"{event} ({said})" if said else event)

    error = warning
    critical = warning
