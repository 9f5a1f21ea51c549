"""What can be asked of a runtime without changing anything: records in pages, histories, explanations, events.

Everything is answered from the store, as it was committed last. Waiting is told of each commit.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from understudy.actors.engine import messages as m
from understudy.actors.engine.explaining import Explanation, of_ended
from understudy.actors.engine.reading import read_all
from understudy.actors.engine.requests import NotFound
from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import TASK, WORKSTREAM, Entity, Severity, satisfies_dependents
from understudy.actors.ports.store import AttemptQuery, Batch, Store
from understudy.actors.records import (
    Attempt,
    BreakerRecord,
    CheckResult,
    TaskRecord,
    Transition,
    WorkerRecord,
    WorkstreamRecord,
)

if TYPE_CHECKING:
    from understudy.actors.engine.house import House

_LEVELS = {Severity.WARNING: "warning", Severity.ERROR: "error", Severity.CRITICAL: "critical"}


class RuntimeClosed(UnderstudyError):
    """The runtime was closed while somebody waited. The work is stored: open it again, and wait again."""


class Queries:
    log: Any
    house: "House"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._workstream_waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._task_waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._news: asyncio.Future[None] | None = None
        self._closed = False

    # Records

    async def workstream(self, workstream_id: str) -> WorkstreamRecord:
        record = await self._store.load(Entity.WORKSTREAM, workstream_id)
        if not isinstance(record, WorkstreamRecord):
            raise NotFound(f"there is no workstream {workstream_id}")
        return record

    async def task(self, task_id: str) -> TaskRecord:
        """By its full id, `workstream/task`."""
        record = await self._store.load(Entity.TASK, task_id)
        if not isinstance(record, TaskRecord):
            raise NotFound(f"there is no task {task_id}; tasks are named workstream/task")
        return record

    async def workstreams(
        self, *, states: Sequence[str] | None = None, after: str = "", limit: int = 100
    ) -> list[WorkstreamRecord]:
        """A page, in the order of their ids: the next one begins after the last id of this one."""
        found = await self._store.page(Entity.WORKSTREAM, states=states, after=after, limit=limit)
        return [each for each in found if isinstance(each, WorkstreamRecord)]

    async def tasks(
        self,
        workstream_id: str | None = None,
        *,
        states: Sequence[str] | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[TaskRecord]:
        """A page, in the order of their ids."""
        found = await self._store.page(
            Entity.TASK, states=states, workstream_id=workstream_id, after=after, limit=limit
        )
        return [each for each in found if isinstance(each, TaskRecord)]

    async def all_tasks(self, workstream_id: str) -> AsyncIterator[TaskRecord]:
        """Every task of a workstream, page by page."""
        async for each in read_all(self._store, Entity.TASK, workstream_id=workstream_id):
            if isinstance(each, TaskRecord):
                yield each

    async def workers(self) -> list[WorkerRecord]:
        return [each async for each in read_all(self._store, Entity.WORKER) if isinstance(each, WorkerRecord)]

    async def breakers(self) -> list[BreakerRecord]:
        return [each async for each in read_all(self._store, Entity.BREAKER) if isinstance(each, BreakerRecord)]

    async def history(self, entity: Entity, record_id: str, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        """A record's moves, in order."""
        return await self._store.history(entity, record_id, after=after, limit=limit)

    async def attempts(self, query: AttemptQuery) -> list[Attempt]:
        """The newest first."""
        return await self._store.attempts(query)

    async def checks(self, task_id: str) -> list[CheckResult]:
        return await self._store.checks(task_id)

    async def explain(self, target: str) -> Explanation:
        """Why a workstream or a task is not moving."""
        workstream_id, _, key = target.partition("/")
        stream = self.house.workstreams.get(workstream_id)
        if stream is not None:
            explanation: Explanation = await stream.ask(lambda reply: m.Explain(key or None, reply))
            return explanation
        record = await self.task(target) if key else await self.workstream(target)
        return of_ended(target, record.state, record.last_error)

    # Waiting

    async def wait_for_workstream(self, workstream_id: str) -> WorkstreamRecord:
        """Wait until it has ended."""
        while True:
            if workstream_id in self.house.workstreams:
                await self._wait(self._workstream_waiters, workstream_id)
            record = await self.workstream(workstream_id)
            if WORKSTREAM.is_terminal(record.state):
                return record

    async def wait_for_output(self, task_id: str) -> Any:
        """Wait until a task has ended, and give what it gave. Raises `TaskFailed`."""
        from understudy.runtime.handles import TaskFailed

        while True:
            waiting = asyncio.ensure_future(self._wait(self._task_waiters, task_id))
            try:
                await asyncio.sleep(0)
                record = await self.task(task_id)
                if TASK.is_terminal(record.state):
                    break
                await waiting
            finally:
                waiting.cancel()
        if not satisfies_dependents(record.state, record.trigger or ""):
            raise TaskFailed(record)
        return record.output

    async def events(self, *, after: int = 0, workstream_id: str | None = None) -> AsyncIterator[Transition]:
        """Everything that was committed behind a sequence, and then whatever comes. Never a gap, however slow the reader."""
        if not after and workstream_id is not None:
            first = await self.history(Entity.WORKSTREAM, workstream_id, limit=1)
            if not first:
                raise NotFound(f"there is no workstream {workstream_id}")
            after = first[0].sequence - 1
        while not self._closed:
            news = self._next_news()
            page = await self._store.trail(after=after)
            for each in page:
                after = each.sequence
                if workstream_id is None or each.workstream_id == workstream_id:
                    yield each
            if not page:
                await asyncio.wait([news])

    def _next_news(self) -> "asyncio.Future[None]":
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        return self._news

    async def _wait(self, waiters: dict[str, list["asyncio.Future[None]"]], key: str) -> None:
        if self._closed:
            raise RuntimeClosed(f"the runtime is closed; {key} goes on when it is opened again")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.setdefault(key, []).append(future)
        try:
            await future
        finally:
            left = waiters.get(key, [])
            if future in left:
                left.remove(future)
            if not left:
                waiters.pop(key, None)

    # What the engine tells

    def _tell_of_end(self, workstream_id: str) -> None:
        for future in self._workstream_waiters.pop(workstream_id, ()):
            if not future.done():
                future.set_result(None)

    def _publish(self, batch: Batch) -> None:
        """A batch has landed."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        for each in batch.transitions:
            if each.severity is not Severity.INFO:
                self._log_move(each)
            if self._task_waiters and each.entity is Entity.TASK and each.record_id in self._task_waiters:
                if TASK.is_terminal(each.to_state):
                    for future in self._task_waiters.pop(each.record_id):
                        if not future.done():
                            future.set_result(None)

    def _log_move(self, move: Transition) -> None:
        log = getattr(self.log, _LEVELS[move.severity])
        log(
            f"{move.entity} {move.to_state}",
            record=move.record_id,
            workstream=move.workstream_id,
            trigger=move.trigger,
            attempt=move.attempt,
            reason=move.reason,
        )

    def _forsake_waiters(self) -> None:
        """Nobody is to wait for ever for a runtime that is closed."""
        self._closed = True
        for waiters in (self._workstream_waiters, self._task_waiters):
            for key, futures in waiters.items():
                for future in futures:
                    if not future.done():
                        future.set_exception(RuntimeClosed(f"the runtime was closed while {key} was awaited"))
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
