"""The workplace of async workers: coroutine functions on the loop, in the asyncio task that asks for them.

It is the shortest way to run something, and stays that: no task, no thread and no log line of its own.
"""

from understudy.actors.ports.workplace import Hearing, Order, Report, Services
from understudy.adapters.tools.attempts import attempt_async
from understudy.adapters.tools.context import TaskContext


class LoopWorkplace:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def open(self, hearing: Hearing) -> None:
        """Always ready: it lives and dies with the loop."""

    async def run(self, order: Order) -> Report:
        return await attempt_async(TaskContext(order, self._services))

    async def close(self) -> None:
        """Nothing is held."""

    def kill(self) -> None:
        """Code on the loop ends when it is cancelled, and cannot be forced to."""
