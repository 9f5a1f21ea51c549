"""What test_faults stops as a whole: tasks with short timeouts, which end when a line comes in."""

import asyncio
import sys

import structlog

from understudy.runtime import RetryPolicy, Runtime, Task, Workstream, current_task

TIMEOUT_S = 1.0
TASKS = 5


async def hold() -> str:
    current_task().progress(note="holds")
    await asyncio.to_thread(sys.stdin.readline)
    return "held"


def hold_in_thread() -> str:
    current_task().progress(note="holds")
    sys.stdin.readline()
    return "held"


async def main(database: str) -> None:
    structlog.configure(processors=[structlog.processors.KeyValueRenderer(key_order=["event", "task"])])
    here = "tests.integration.engine.pause_program"
    once = RetryPolicy(max_attempts=1)
    tasks = [Task(f"loop-{n}", call=f"{here}:hold", timeout=TIMEOUT_S, retry=once) for n in range(TASKS)]
    tasks += [Task(f"thread-{n}", call=f"{here}:hold_in_thread", timeout=TIMEOUT_S, retry=once) for n in range(TASKS)]
    async with Runtime(database) as runtime:
        handle = await runtime.submit(Workstream(tuple(tasks)))
        record = await handle.wait()
        print(f"ended {record.state}", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
