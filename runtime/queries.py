"""What can be asked of a runtime without changing anything: records in pages, histories, explanations, events.

Everything is answered from the store, as it was committed last. Waiting is told of each commit.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence

from understudy.actors.engine import messages as m
from understudy.actors.engine.explaining import Explanation, of_ended
from understudy.actors.engine.house import House
from understudy.actors.engine.reading import read_all
from understudy.actors.engine.requests import NotFound
from understudy.actors.lifecycle import TASK, WORKSTREAM, Entity
from understudy.actors.ports.store import AttemptQuery, Store
from understudy.actors.records import (
    Attempt,
    BreakerRecord,
    CheckResult,
    TaskRecord,
    Transition,
    WorkerRecord,
    WorkstreamRecord,
)
from understudy.runtime.waiting import Waiting


class Queries(ABC):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting = Waiting()

    @property
    @abstractmethod
    def house(self) -> House: ...

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
                return await self._waiting.for_workstream(workstream_id)
            record = await self.workstream(workstream_id)
            if WORKSTREAM.is_terminal(record.state):
                return record

    async def wait_for_task(self, task_id: str) -> TaskRecord:
        """Wait until it has ended."""
        while True:
            ended, news = self._waiting.for_task(task_id), self._waiting.for_news()  # before the look: it may end now
            try:
                record = await self._store.load(Entity.TASK, task_id)
                if record is None:
                    await self.explain(task_id)  # raises where there is none; else it is about to be created
                    await asyncio.wait([ended, news], return_when=asyncio.FIRST_COMPLETED)
                elif isinstance(record, TaskRecord) and TASK.is_terminal(record.state):
                    return record
                else:
                    await ended
            finally:
                ended.cancel()

    async def events(self, *, after: int = 0, workstream_id: str | None = None) -> AsyncIterator[Transition]:
        """All that was committed behind a sequence, and then whatever comes: never a gap, however slow the reader."""
        if not after and workstream_id is not None:
            first = await self.history(Entity.WORKSTREAM, workstream_id, limit=1)
            if not first:
                raise NotFound(f"there is no workstream {workstream_id}")
            after = first[0].sequence - 1
        has_ended = False
        while not self._waiting.is_over:
            news = self._waiting.for_news()  # before the look, as above
            page = await self._store.trail(after=after)
            for each in page:
                after = each.sequence
                if workstream_id is None or each.workstream_id == workstream_id:
                    yield each
            if page:
                continue
            if has_ended:  # and nothing has come since that was seen
                return
            if workstream_id is not None:
                has_ended = WORKSTREAM.is_terminal((await self.workstream(workstream_id)).state)
            if not has_ended:
                await asyncio.wait([news])
