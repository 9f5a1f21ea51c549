"""What test_faults kills at named points: `crash_program DATABASE EFFECTS POINT COUNT`.

It submits one workstream, once for all its lives, and kills itself when it has come to the point so many times.
Without a point it runs to the end, and prints what became of the work.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

from tests.integration.engine.functions import keep_quiet, nothing
from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order, Report
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.adapters.tools.on_loop import LoopWorkplace
from understudy.runtime import Flow, Runtime, current_task

TASKS = 8


def leave_trace(path: str, after: Any = None) -> str:
    """Write down which attempt this is, and be sure that it stays written."""
    token = current_task().token
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{token}\n".encode())
    os.fsync(file)
    os.close(file)
    return token


async def leave_trace_async(path: str, after: Any = None) -> str:
    return leave_trace(path)


def arm(point: str, count: int) -> None:
    """Let this process die when it comes to the point for the `count`th time."""
    left = count
    commit, run = SqliteStore.commit, LoopWorkplace.run

    def come_to(here: str) -> None:
        nonlocal left
        left -= here == point
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    async def crashing_commit(self: SqliteStore, batch: Batch) -> None:
        come_to("before commit")
        if batch.attempts:
            come_to("before result")
        await commit(self, batch)
        if batch.attempts:
            come_to("after result")
        come_to("after commit")

    async def crashing_run(self: LoopWorkplace, order: Order) -> Report:
        come_to("before dispatch")
        report = await run(self, order)
        come_to("after effect")
        return report

    SqliteStore.commit = crashing_commit  # type: ignore[method-assign]
    LoopWorkplace.run = crashing_run  # type: ignore[method-assign]


async def main(database: str, effects: str, point: str, count: int) -> None:
    keep_quiet()
    flow = Flow("work")
    last: Any = flow.having(id="t0").add(leave_trace_async, effects)
    for number in range(1, TASKS):
        last = flow.having(id=f"t{number}").add(leave_trace_async, effects, last.output)
    flow.having(id="free").add(nothing)
    if point != "none":
        arm(point, count)
    async with Runtime(database) as runtime:
        handle = await runtime.submit(flow, request_id="the work")
        record = await handle.wait()
        print(json.dumps([record.state, str(runtime.recovery)]), flush=True)  # noqa: T201


if __name__ == "__main__":
    # Under this name, and not as __main__, its functions are found again by its next life.
    from tests.integration.engine import crash_program

    asyncio.run(crash_program.main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
