"""Who waits for what: ends of workstreams and tasks, and news of any kind. Everybody is told after the commit."""

import asyncio
from collections.abc import Iterable
from typing import TypeVar

from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import TASK, Entity
from understudy.actors.ports.store import Batch
from understudy.actors.records import WorkstreamRecord

T = TypeVar("T")


class RuntimeClosed(UnderstudyError):
    """The runtime was closed while somebody waited. The work is stored: open it again, and wait again."""


class Waiting:
    """The futures of those who wait, by the id of what they wait for."""

    def __init__(self) -> None:
        self._workstreams: dict[str, list[asyncio.Future[WorkstreamRecord]]] = {}
        self._tasks: dict[str, list[asyncio.Future[None]]] = {}
        self._news: asyncio.Future[None] | None = None
        self.is_over = False

    def for_workstream(self, workstream_id: str) -> "asyncio.Future[WorkstreamRecord]":
        """Done when a workstream that is in memory has ended, with its record."""
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

    def tell_of_end(self, record: WorkstreamRecord) -> None:
        _release(self._workstreams.pop(record.id, ()), record)

    def tell_of(self, batch: Batch) -> None:
        """A batch has landed."""
        if self._news is not None:
            _release([self._news], None)
        if self._tasks:
            for each in batch.transitions:
                if each.entity is Entity.TASK and each.record_id in self._tasks and TASK.is_terminal(each.to_state):
                    _release(self._tasks.pop(each.record_id), None)

    def forsake(self) -> None:
        """Nobody is to wait for ever for a runtime that is closed."""
        self.is_over = True
        _abandon(self._workstreams)
        _abandon(self._tasks)
        if self._news is not None:
            _release([self._news], None)

    def _enter(self, waiting: "dict[str, list[asyncio.Future[T]]]", key: str) -> "asyncio.Future[T]":
        if self.is_over:
            raise _closed(key)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
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


def _abandon(waiting: "dict[str, list[asyncio.Future[T]]]") -> None:
    for key, futures in waiting.items():
        for future in futures:
            if not future.done():
                future.set_exception(_closed(key))


def _release(futures: "Iterable[asyncio.Future[T]]", result: T) -> None:
    for future in futures:
        if not future.done():
            future.set_result(result)
