"""What test_faults measures: results from small to far too large, and how much memory they have cost the runtime."""

import asyncio
import json
import resource
import sys

from tests.integration.engine.functions import keep_quiet
from understudy.runtime import RetryPolicy, Runtime, Task, WorkerDefinition, WorkerKind, Workstream

SIZES = (2**10, 2**16, 2**19, 2**20 - 2, 2**20, 2**22, 2**24, 2**26)
WORKERS = {
    "thread": WorkerDefinition("w", WorkerKind.THREAD),
    "process": WorkerDefinition("w", WorkerKind.PROCESS),
}


async def main(database: str, kind: str) -> None:
    keep_quiet()
    once = RetryPolicy(max_attempts=1)
    call = "tests.integration.engine.functions:make_text"
    told: dict[int, str | None] = {}
    async with Runtime(database, workers=[WORKERS[kind]]) as runtime:
        for warm in (True, False):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for size in SIZES[:1] if warm else SIZES:
                handle = await runtime.submit(Workstream((Task("a", call=call, inputs={"size": size}, retry=once),)))
                await handle.wait()
                told[size] = (await handle.task("a")).last_error
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"errors": told, "grown_kib": grown}), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
