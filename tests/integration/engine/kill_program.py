"""What test_kill kills at random moments: `kill_program DATABASE FOLDER FIRST`.

It goes on with what it finds, submits workstreams by a counter, and says each step in a line. What was acknowledged
is written to a file beside, and so is every execution, with fsync: the parent compares that with the database.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from tests.integration.engine.functions import keep_quiet
from understudy.runtime import Flow, RetryPolicy, Runtime, WorkerDefinition, WorkerKind, current_task, task

AT_ONCE = RetryPolicy(max_attempts=10, base_delay=0.005)
WORKERS = (
    WorkerDefinition("loop", max_concurrent_tasks=20),
    WorkerDefinition("threads", WorkerKind.THREAD, max_concurrent_tasks=4),
)


def append(path: Path, text: str) -> None:
    """A line that stays, whatever happens next."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{text}\n".encode())
    os.fsync(file)
    os.close(file)


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


@task(retry=AT_ONCE)
async def step(folder: str, after: Any = None) -> str:
    token = current_task().token
    append(Path(folder) / "effects", token)
    say(f"ran {token}")
    return token


@task(retry=AT_ONCE)
def stumble(folder: str, after: Any = None) -> str:
    """Fails every first time."""
    token = current_task().token
    append(Path(folder) / "effects", token)
    if not (Path(folder) / f"stumbled-{token.partition('/')[0]}").exists():
        (Path(folder) / f"stumbled-{token.partition('/')[0]}").touch()
        raise ValueError("stumbled")
    return token


def work(number: int, folder: str) -> Flow:
    flow = Flow(f"w{number:06}")
    first = flow.having(id="first").add(step, folder)
    left = flow.having(id="left").add(step, folder, first.output)
    right = flow.having(id="right").add(stumble, folder, first.output)
    flow.having(id="last", after=[left, right]).add(step, folder, left.output)
    return flow


async def submit(runtime: Runtime, number: int, folder: Path) -> None:
    handle = await runtime.submit(work(number, str(folder)), request_id=f"request-{number}")
    append(folder / "acknowledged", handle.id)
    say(f"acknowledged {handle.id}")
    await handle.wait()
    say(f"ended {handle.id}")


async def finish(runtime: Runtime, folder: Path) -> None:
    """Wait for everything that was ever acknowledged."""
    for line in (folder / "acknowledged").read_text().split():
        await runtime.handle(line).wait()
    say(f"finished: {runtime.health()}")


async def main(database: str, where: str, first: int) -> None:
    keep_quiet()
    folder = Path(where)
    async with Runtime(database, workers=WORKERS) as runtime:
        say(f"open: {runtime.recovery}")
        if first < 0:
            await finish(runtime, folder)
            return
        for number in range(first, first + 10_000, 4):
            await asyncio.gather(*(submit(runtime, number + each, folder) for each in range(4)))


if __name__ == "__main__":
    # Under this name, and not as __main__, its functions are found again by its next life.
    from tests.integration.engine import kill_program

    asyncio.run(kill_program.main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
