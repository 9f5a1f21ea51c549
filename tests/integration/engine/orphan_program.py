"""What test_kill kills while a worker process of it is busy for ever."""

import asyncio
import sys

from tests.integration.engine.functions import keep_quiet
from understudy.runtime import Runtime, Task, WorkerDefinition, WorkerKind, Workstream


async def main(database: str) -> None:
    keep_quiet()
    async with Runtime(database, workers=[WorkerDefinition("w", WorkerKind.PROCESS)]) as runtime:
        handle = await runtime.submit(Workstream((Task("a", call="tests.integration.engine.functions:say_pid"),)))
        await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
