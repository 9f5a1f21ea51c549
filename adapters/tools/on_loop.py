"""The workplace of async workers: coroutine functions and calls of HTTP APIs, in the asyncio task that asks for them.

It is the shortest way to run something, and stays that: no task, no thread and no log line of its own.
"""

from understudy.actors.ports.workplace import Hearing, Order, Report, Services
from understudy.adapters.tools.attempts import attempt_async
from understudy.adapters.tools.context import TaskContext
from understudy.adapters.tools.http import HttpCaller


class LoopWorkplace:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._http = HttpCaller()

    async def open(self, hearing: Hearing) -> None:
        """Always ready: it lives and dies with the loop."""

    async def run(self, order: Order) -> Report:
        context = TaskContext(order, self._services)
        if order.call is None and order.request is not None:
            return await self._http.attempt(context)
        return await attempt_async(context)

    async def close(self) -> None:
        await self._http.close()

    def kill(self) -> None:
        """Code on the loop ends when it is cancelled, and cannot be forced to."""
        self._http.kill()
