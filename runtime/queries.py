"""What can be asked of a runtime without changing anything: records in pages, histories, explanations, events.

Everything is answered from the store, as it was committed last. Waiting is told of each commit.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from understudy.actors.engine import messages as m
from understudy.actors.engine.explaining import Explanation
from understudy.actors.engine.house import House
from understudy.actors.engine.requests import NotFound
from understudy.actors.lifecycle import TASK, WORKSTREAM, Entity
from understudy.actors.ports.store import Store
from understudy.actors.records import TaskRecord, Transition, WorkstreamRecord
from understudy.runtime.reasons import explain
from understudy.runtime.records import Records
from understudy.runtime.waiting import Waiting


class Queries(Records, ABC):
    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._waiting = Waiting()

    @property
    @abstractmethod
    def house(self) -> House: ...

    async def explain(self, target: str) -> Explanation:
        """Why a workstream or a task is not moving; also `worker:id` and `breaker:id`."""
        workstream_id, _, key = target.partition("/")
        stream = self.house.workstreams.get(workstream_id)
        if stream is not None:
            explanation: Explanation = await stream.ask(lambda reply: m.Explain(key or None, reply))
            return explanation
        return await explain(self, target)

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
