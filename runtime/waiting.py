"""Who waits for what: ends of workstreams and tasks, and news of any kind. Everybody is told after the commit."""

import asyncio

from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import TASK, Entity
from understudy.actors.ports.store import Batch


class RuntimeClosed(UnderstudyError):
    """The runtime was closed while somebody waited. The work is stored: open it again, and wait again."""


class Waiting:
    """The futures of those who wait, by the id of what they wait for."""

    def __init__(self) -> None:
        self._workstreams: dict[str, list[asyncio.Future[None]]] = {}
        self._tasks: dict[str, list[asyncio.Future[None]]] = {}
        self._news: asyncio.Future[None] | None = None
        self.is_over = False

    def for_workstream(self, workstream_id: str) -> "asyncio.Future[None]":
        """Done when a workstream that is in memory has ended."""
        return self._enter(self._workstreams, workstream_id)

    def for_task(self, task_id: str) -> "asyncio.Future[None]":
        """Done when a task has ended the next time."""
        return self._enter(self._tasks, task_id)

    def for_news(self) -> "asyncio.Future[None]":
        """Done when something was committed."""
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
            if self.is_over:
                self._news.set_result(None)
        return self._news

    def tell_of_end(self, workstream_id: str) -> None:
        _release(self._workstreams.pop(workstream_id, ()))

    def tell_of(self, batch: Batch) -> None:
        """A batch has landed."""
        if self._news is not None:
            _release([self._news])
        if self._tasks:
            for each in batch.transitions:
                if each.entity is Entity.TASK and each.record_id in self._tasks and TASK.is_terminal(each.to_state):
                    _release(self._tasks.pop(each.record_id))

    def forsake(self) -> None:
        """Nobody is to wait for ever for a runtime that is closed."""
        self.is_over = True
        for waiting in (self._workstreams, self._tasks):
            for key, futures in waiting.items():
                for future in futures:
                    if not future.done():
                        future.set_exception(_closed(key))
        if self._news is not None:
            _release([self._news])

    def _enter(self, waiting: "dict[str, list[asyncio.Future[None]]]", key: str) -> "asyncio.Future[None]":
        if self.is_over:
            raise _closed(key)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.setdefault(key, []).append(future)

        def leave(_: object) -> None:
            left = waiting.get(key, [])
            if future in left:
                left.remove(future)
                if not left:
                    del waiting[key]

        future.add_done_callback(leave)
        return future


def _closed(key: str) -> RuntimeClosed:
    return RuntimeClosed(f"the runtime is closed; {key} goes on when it is opened again")


def _release(futures: "list[asyncio.Future[None]] | tuple[()]") -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
