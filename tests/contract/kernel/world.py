"""One way to drive both kernels, so that every claim about actors is made of both."""

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar, cast

import msgspec

from understudy.actors.kernel import Actor, Kernel, LoopKernel, Promise, Reply, SimulatedKernel, StopReport

T = TypeVar("T")


class World(Protocol):
    @property
    def kernel(self) -> Kernel: ...

    async def settle(self) -> None:
        """Let everything run that can run now."""
        ...

    async def answer(self, promise: Promise[T]) -> T:
        """Let it run until the promise is kept, however much time that takes."""
        ...

    async def close(self, grace_s: float) -> StopReport: ...


class LoopWorld:
    def __init__(self, kernel: LoopKernel) -> None:
        self.kernel = kernel

    async def settle(self) -> None:
        await self.kernel.settled()

    async def answer(self, promise: Promise[T]) -> T:
        return await cast("Awaitable[T]", promise)

    async def close(self, grace_s: float) -> StopReport:
        return await self.kernel.close(grace_s)


class SimulatedWorld:
    def __init__(self, kernel: SimulatedKernel) -> None:
        self.kernel = kernel

    async def settle(self) -> None:
        self.kernel.run(until=self.kernel.clock.now())

    async def answer(self, promise: Promise[T]) -> T:
        self.kernel.run()
        return promise.result()

    async def close(self, grace_s: float) -> StopReport:
        return self.kernel.close(grace_s)


class Recorder(Actor[Any]):
    """Keeps what it receives in the list that it was given. An exception it is told is raised."""

    __slots__ = ("seen",)

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def receive(self, message: Any) -> None:
        if isinstance(message, BaseException):
            raise message
        self.seen.append(message)


class Ask(msgspec.Struct, frozen=True):
    reply: Reply[int]


class Answering(Actor[Ask]):
    """Answers every ask with how many it has had."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def receive(self, message: Ask) -> None:
        self.count += 1
        message.reply.send(self.count)
