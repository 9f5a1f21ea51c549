"""What the engine's samples run as tasks. A module of its own, since the one that is started is `__main__`."""

import asyncio

CALL = "benchmarks.engine_tasks:"


class Gate:
    """Where tasks wait, and how many have come to it."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.came = asyncio.Semaphore(0)

    async def wait_for(self, count: int) -> None:
        for _ in range(count):
            await self.came.acquire()


GATE = Gate()


async def noop(i: int) -> int:
    return i


async def wait_at_gate() -> None:
    GATE.came.release()
    await GATE.opened.wait()
