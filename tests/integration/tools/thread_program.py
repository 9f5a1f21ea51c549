"""Abandons a thread that never ends, and ends itself."""

import asyncio

from tests.contract.tools.places import working
from understudy.actors.definition import WorkerKind


async def main() -> None:
    async with working(WorkerKind.THREAD) as place:
        running = asyncio.create_task(place.run("ignore"))
        await place.engine.started.wait()
        running.cancel()
        await asyncio.wait([running])
    print("over", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
