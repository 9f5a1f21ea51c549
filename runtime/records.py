"""Records as they were committed last: one by one, in pages, and with their histories.

It needs a store and nothing that runs, so a database at rest is read by the same words as a runtime.
"""

from collections.abc import AsyncIterator, Sequence

from understudy.actors.engine.reading import read_all
from understudy.actors.engine.requests import NotFound
from understudy.actors.lifecycle import Entity
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


class Records:
    def __init__(self, store: Store) -> None:
        self._store = store

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

    async def worker(self, worker_id: str) -> WorkerRecord:
        record = await self._store.load(Entity.WORKER, worker_id)
        if not isinstance(record, WorkerRecord):
            raise NotFound(f"there is no worker {worker_id}")
        return record

    async def breaker(self, breaker_id: str) -> BreakerRecord:
        """By the name of its tool."""
        record = await self._store.load(Entity.BREAKER, breaker_id)
        if not isinstance(record, BreakerRecord):
            raise NotFound(f"there is no breaker {breaker_id}")
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
