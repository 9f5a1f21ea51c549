"""Opens a worker process, says its id, and waits to be killed."""

import asyncio

from tests.contract.tools.places import working
from understudy.actors.definition import WorkerKind


async def main() -> None:
    async with working(WorkerKind.PROCESS) as place:
        running = asyncio.create_task(place.run("ignore"))
        await place.engine.started.wait()
        print(place.pid, flush=True)  # noqa: T201
        await running


if __name__ == "__main__":
    asyncio.run(main())
