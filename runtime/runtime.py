"""The embedding facade: `async with Runtime("state.db") as runtime`, and durable workstreams from there on.

It holds nothing that is not in the store, and no global state: a process may have several, each with a file of its own.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from understudy.actors.definition import (
    DefinitionError,
    Problem,
    WorkerDefinition,
    WorkerKind,
    Workstream,
    find_problems,
)
from understudy.actors.engine.engine import Engine, Recovery
from understudy.actors.engine.house import House, Limits
from understudy.actors.engine.reception import NotTakingWork
from understudy.actors.engine.requests import Done, Operation, Request
from understudy.actors.errors import MisuseError
from understudy.actors.journal import Book
from understudy.actors.kernel import LoopKernel, MailboxFull, StopReport
from understudy.actors.ports.store import Batch, Store
from understudy.actors.records import WorkstreamRecord
from understudy.adapters.checks.acceptance import RealChecks
from understudy.adapters.clock import ResponsiveClock, wall_us
from understudy.adapters.folders import Folders
from understudy.adapters.stores.sqlite import Durability, SqliteStore
from understudy.adapters.tools.orphans import end_orphans
from understudy.adapters.tools.workplaces import RealWorkplaces
from understudy.adapters.watchdog import Watchdog
from understudy.adapters.workspaces.places import RealWorkspaces
from understudy.runtime.definition import Flow
from understudy.runtime.handles import Handle
from understudy.runtime.logs import default_log, log_batch
from understudy.runtime.queries import Queries
from understudy.runtime.runnable import find_unrunnable
from understudy.runtime.services import RuntimeServices
from understudy.runtime.watching import Watchers

DEFAULT_WORKERS = (
    WorkerDefinition("loop", WorkerKind.ASYNC, max_concurrent_tasks=1_000),
    WorkerDefinition("threads", WorkerKind.THREAD, max_concurrent_tasks=min(32, (os.cpu_count() or 1) + 4)),
    WorkerDefinition("programs", WorkerKind.PROGRAM, max_concurrent_tasks=min(32, (os.cpu_count() or 1) + 4)),
)
ORPHANS_GRACE_S = 2.0  # between TERM and KILL for what a crashed runtime has left


class Runtime(Queries):
    """Open it with `async with`. On the way out running attempts get `grace_s` to end; the rest is resumed later."""

    def __init__(
        self,
        path: str | Path,
        *,
        workers: Sequence[WorkerDefinition] = DEFAULT_WORKERS,
        durability: Durability = Durability.FULL,
        grace_s: float = 5.0,
        limits: Limits | None = None,
        log: Any = None,
    ) -> None:
        self.log = log or default_log(str(path))
        self._workers = tuple(workers)
        self._limits = limits or Limits()
        self._clock = ResponsiveClock(self._note_stall)
        self._kernel = LoopKernel(grace_s=grace_s, clock=self._clock)
        self._watchdog: Watchdog | None = None
        self._checks = RealChecks()
        self._folders = Folders(Path(path))
        self.watchers = Watchers(self.log)
        self._engine: Engine | None = None
        self.recovery = Recovery()
        super().__init__(SqliteStore(path, durability=durability))

    async def __aenter__(self) -> Self:
        await self._store.__aenter__()
        try:
            await self._kernel.__aenter__()
            await self._start(self._store)
        except BaseException:
            await self.close(grace_s=0)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _start(self, store: Store) -> None:
        await self._end_orphans()
        book = Book(await store.last_sequence(), wall_us)
        book.published = self._publish
        entropy = self._kernel.entropy
        house = House(
            book=book,
            store=store,
            workplaces=RealWorkplaces(RuntimeServices(self), self._folders),
            checks=self._checks,
            workspaces=RealWorkspaces(self._folders),
            secret=os.environ.get,
            note=self.log.warning,
            owner=f"{os.getpid()}-{entropy.below(2**32):08x}",
            limits=self._limits,
            spawn=lambda build, seat, name: self._kernel.spawn(build, seat, name=name),
        )
        house.ended = self._waiting.tell_of_end
        self._clock.start()
        self._watchdog = Watchdog(self._clock, self._report_stall)
        self._watchdog.start()
        self._engine = Engine(self._kernel, house)
        self.recovery = await self._engine.recover(self._workers)
        self.log.info(str(self.recovery), **msgspec.structs.asdict(self.recovery))

    async def close(self, grace_s: float | None = None) -> StopReport:
        """Let running attempts end, for at most the grace; then stop everything. Nothing that was stored is lost."""
        if self._engine is not None:
            self._engine.stop_assigning()
        try:
            report = await self._kernel.close(grace_s)
            if self._engine is not None:
                await self._engine.close_workplaces()
        finally:
            self._clock.stop()
            self._checks.close()
            if self._watchdog is not None:
                self._watchdog.stop()
                self._watchdog = None
            self._waiting.forsake()
            await self._store.__aexit__()
        return report

    async def kill(self) -> None:
        """Stop at once, as a crash would, but leave no program running. What was stored is recovered the next time."""
        if self._engine is not None:
            self._engine.kill_workplaces()
        await self.close(grace_s=0)

    async def _end_orphans(self) -> None:
        """Programs of a runtime that was killed would work beside their own next attempts."""
        for orphan in await end_orphans(self._folders, ORPHANS_GRACE_S):
            self.log.warning("ended a program that a crashed runtime had left", pid=orphan.pid, attempt=orphan.token)

    @property
    def house(self) -> House:
        if self._engine is None:
            raise MisuseError("the runtime is not open: use `async with Runtime(...) as runtime`")
        return self._engine.house

    def health(self) -> str:
        """`ok`, or what is degraded: actors that crash again and again, a disk that is full."""
        trouble = self.house.book.closed_because
        health = str(self._kernel.health())
        return f"degraded; {trouble}; {health}" if trouble else health

    # Work

    async def submit(
        self,
        definition: Workstream | Flow,
        *,
        params: dict[str, Any] | None = None,
        who: str | None = None,
        why: str | None = None,
        request_id: str | None = None,
    ) -> Handle:
        """Take in a workstream. When this returns it is durable. The same `request_id` gives the same workstream."""
        plain = definition.build() if isinstance(definition, Flow) else definition
        if params:
            unknown = sorted(set(params) - set(plain.params))
            if unknown:
                raise DefinitionError([Problem(f"$.params.{name}", "there is no such param") for name in unknown])
            plain = msgspec.structs.replace(plain, params={**plain.params, **params})
        self._check(plain)
        target = plain.id or self.new_id()
        done = await self._ask(Request(Operation.SUBMIT, target, who, why, request_id), plain)
        return Handle(self, done.target)

    async def submit_child(self, definition: Workstream, parent: WorkstreamRecord) -> Handle:
        """Take in a workstream that belongs to another one, and is cancelled with it."""
        self._check(definition)
        request = Request(Operation.SUBMIT, definition.id or self.new_id(), why=f"child of {parent.id}")
        done = await self._ask(request, definition, parent.id, parent.depth + 1)
        return Handle(self, done.target)

    def handle(self, workstream_id: str) -> Handle:
        """A workstream that was submitted before, by this process or another."""
        return Handle(self, workstream_id)

    # What operators do

    async def cancel(self, target: str, **said: Any) -> Done:
        """A workstream with all that belongs to it, or one task, as `workstream/task`."""
        return await self._operate(Operation.CANCEL, target, **said)

    async def skip(self, target: str, **said: Any) -> Done:
        """A task is left out; what depends on it goes on as if it had succeeded."""
        return await self._operate(Operation.SKIP, target, **said)

    async def resolve(self, target: str, *, output: Any = None, **said: Any) -> Done:
        """Somebody has done by hand what a task was to do, or what a blocked workstream was."""
        return await self._operate(Operation.RESOLVE, target, output=output, **said)

    async def reset(self, target: str, **said: Any) -> Done:
        """Begin a task or a workstream that has ended once more, as its next generation."""
        return await self._operate(Operation.RESET, target, **said)

    async def give_up(self, target: str, **said: Any) -> Done:
        """A task that waits for its breaker fails now; a blocked workstream too."""
        return await self._operate(Operation.GIVE_UP, target, **said)

    async def pause(self, worker_id: str, **said: Any) -> Done:
        """A worker takes no new tasks."""
        return await self._operate(Operation.PAUSE, worker_id, **said)

    async def resume(self, worker_id: str, **said: Any) -> Done:
        """A paused worker takes tasks again."""
        return await self._operate(Operation.RESUME, worker_id, **said)

    async def drain(self, worker_id: str, **said: Any) -> Done:
        """A worker ends when its tasks have."""
        return await self._operate(Operation.DRAIN, worker_id, **said)

    async def terminate(self, worker_id: str, **said: Any) -> Done:
        """A worker ends now; its tasks go to others."""
        return await self._operate(Operation.TERMINATE, worker_id, **said)

    async def trip(self, breaker: str, **said: Any) -> Done:
        """Keep everybody from a tool."""
        return await self._operate(Operation.TRIP, breaker, **said)

    async def reset_breaker(self, breaker: str, **said: Any) -> Done:
        """Let everybody use a tool again."""
        return await self._operate(Operation.RESET_BREAKER, breaker, **said)

    async def operate(self, request: Request) -> Done:
        """Any of these, as a request that came from elsewhere."""
        return await self._ask(request)

    async def _operate(self, operation: Operation, target: str, **said: Any) -> Done:
        return await self._ask(Request(operation, target, **said))

    async def _ask(
        self, request: Request, definition: Workstream | None = None, parent_id: str | None = None, depth: int = 0
    ) -> Done:
        _ = self.house
        try:
            promise = self._engine.ask(request, definition, parent_id, depth)  # type: ignore[union-attr]  # it is open
        except MailboxFull as error:
            raise NotTakingWork(f"{error.capacity} requests wait already") from None
        done: Done = await promise
        return done

    def _check(self, definition: Workstream) -> None:
        """Everything that is wrong with a definition, and what this runtime cannot run."""
        problems = find_problems(definition)
        if not problems:
            problems = find_unrunnable(definition, self.house.workplaces)
        if problems:
            raise DefinitionError(problems)

    def new_id(self) -> str:
        """In the order of time, so that lists of workstreams are too."""
        return f"w{wall_us():014x}-{self._kernel.entropy.below(2**24):06x}"

    # What is told

    def _publish(self, batch: Batch) -> None:
        """A batch has landed."""
        log_batch(self.log, batch)
        self._waiting.tell_of(batch)
        self.watchers.landed(batch)

    def _note_stall(self, stalled_s: float) -> None:
        self.log.warning(f"paused {stalled_s:.1f} s; timers moved", stalled_s=round(stalled_s, 3))

    def _report_stall(self, stalled_s: float, stack: str) -> None:
        self.log.warning("the loop is blocked: use a thread or a process", stalled_s=round(stalled_s, 3), stack=stack)
