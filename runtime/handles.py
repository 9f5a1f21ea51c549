"""A workstream in the hands of whoever submitted it: its result, its tasks, what happens in it, and its end."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from understudy.actors.engine.explaining import Explanation
from understudy.actors.engine.requests import Done
from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import WORKSTREAM, Entity, Trait, satisfies_dependents
from understudy.actors.records import TaskRecord, Transition, WorkstreamRecord, task_id

if TYPE_CHECKING:
    from understudy.runtime.runtime import Runtime


class WorkstreamFailed(UnderstudyError):
    """A workstream has ended, but not well. How is in `record`."""

    def __init__(self, record: WorkstreamRecord) -> None:
        why = f": {record.last_error}" if record.last_error else ""
        super().__init__(f"workstream {record.id} is {record.state}{why}; look at it with `explain` or its history")
        self.record = record


class TaskFailed(UnderstudyError):
    """A task has ended without a result. How is in `record`."""

    def __init__(self, record: TaskRecord) -> None:
        why = f": {record.last_error}" if record.last_error else ""
        super().__init__(f"task {record.id} is {record.state}{why}")
        self.record = record


class Handle:
    """One workstream of a runtime. It holds nothing but the id: make as many as you like."""

    def __init__(self, runtime: "Runtime", workstream_id: str) -> None:
        self._runtime = runtime
        self.id = workstream_id

    def __repr__(self) -> str:
        return f"<workstream {self.id}>"

    async def wait(self) -> WorkstreamRecord:
        """Wait for its end, good or not."""
        return await self._runtime.wait_for_workstream(self.id)

    async def result(self) -> dict[str, Any]:
        """What its tasks gave, by their ids, items of maps left out. Raises `WorkstreamFailed`."""
        record = await self.wait()
        if Trait.SATISFIES not in WORKSTREAM.states[record.state]:
            raise WorkstreamFailed(record)
        return {task.key: task.output async for task in self._runtime.all_tasks(self.id) if task.map_of is None}

    async def output(self, key: str) -> Any:
        """Wait for one of its tasks, and give what it gave. Raises `TaskFailed`."""
        record = await self._runtime.wait_for_task(task_id(self.id, key))
        if not satisfies_dependents(record.state, record.trigger or ""):
            raise TaskFailed(record)
        return record.output

    async def record(self) -> WorkstreamRecord:
        """How it stands."""
        return await self._runtime.workstream(self.id)

    async def task(self, key: str) -> TaskRecord:
        """How one of its tasks stands."""
        return await self._runtime.task(task_id(self.id, key))

    async def events(self, after: int = 0) -> AsyncIterator[Transition]:
        """All that happens in it, from its beginning or behind a sequence, until its end."""
        async for each in self._runtime.events(after=after, workstream_id=self.id):
            yield each
            if each.entity is Entity.WORKSTREAM and each.record_id == self.id and WORKSTREAM.is_terminal(each.to_state):
                return

    async def cancel(self, *, who: str | None = None, why: str | None = None, request_id: str | None = None) -> Done:
        """Cancel it with all its tasks and children."""
        return await self._runtime.cancel(self.id, who=who, why=why, request_id=request_id)

    async def explain(self, key: str | None = None) -> Explanation:
        """Why it, or one of its tasks, is not moving."""
        return await self._runtime.explain(self.id if key is None else task_id(self.id, key))
