"""The workplace of thread workers: plain functions in threads of this process.

Python cannot end a thread. A cancelled attempt is told so and abandoned: its thread goes on until the code in it
ends, and does not keep the process from exiting.
"""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from understudy.actors.definition import Task, Workstream
from understudy.actors.ports.workplace import Hearing, Order, Report, Services
from understudy.adapters.tools.attempts import attempt_plain, failed
from understudy.adapters.tools.context import TaskContext
from understudy.adapters.tools.threads import Threads


class ThreadWorkplace:
    def __init__(self, worker_id: str, threads: int, services: Services) -> None:
        self._threads = Threads(f"understudy-{worker_id}", threads)
        self._services = services

    async def open(self, hearing: Hearing) -> None:
        """Always ready: threads start when they are needed."""

    async def run(self, order: Order) -> Report:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Report] = loop.create_future()
        asking = _Asking(self._services, loop)
        context = TaskContext(order, asking, asking.wait)

        def work() -> None:
            report = attempt_plain(context)
            _call(loop, _settle, ended, report)

        try:
            job = self._threads.submit(work)
        except RuntimeError as error:  # the system gives no more threads
            return failed(context, error)
        try:
            return await ended
        except asyncio.CancelledError:
            context.cancel()
            asking.give_up()
            job.abandon()
            raise

    async def close(self) -> None:
        self._threads.close()

    def kill(self) -> None:
        """Threads cannot be forced to end: what runs there is abandoned by its cancellation."""
        self._threads.close()


class _Asking:
    """The services, for code in a thread: what is async is waited for on the loop, progress is only sent there."""

    def __init__(self, services: Services, loop: asyncio.AbstractEventLoop) -> None:
        self._services = services
        self._loop = loop
        self._asked: set[concurrent.futures.Future[Any]] = set()
        self._given_up = False

    def wait(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        async def answer() -> Any:
            return await ask()

        answered = asyncio.run_coroutine_threadsafe(answer(), self._loop)
        self._asked.add(answered)
        if self._given_up:  # looked at after it was added: one of the two sees the other
            answered.cancel()
        try:
            return answered.result()
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError("it was given up: the attempt was cancelled") from None
        finally:
            self._asked.discard(answered)

    def give_up(self) -> None:
        """Wait for no answer any more."""
        self._given_up = True
        for answered in tuple(self._asked):
            answered.cancel()

    def progress(self, order: Order, share: float | None, note: str | None) -> None:
        _call(self._loop, self._services.progress, order, share, note)

    async def spawn(self, order: Order, definition: Workstream, number: int) -> str:
        return await self._services.spawn(order, definition, number)

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        return await self._services.result_of(workstream_id)

    async def add(self, order: Order, tasks: Sequence[Task]) -> None:
        await self._services.add(order, tasks)


def _settle(ended: "asyncio.Future[Report]", report: Report) -> None:
    if not ended.done():
        ended.set_result(report)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever waited
        loop.call_soon_threadsafe(function, *args)
