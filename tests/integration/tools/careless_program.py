"""Opens a worker process, says its id, and ends without closing it."""

import asyncio

from tests.contract.tools.places import Engine, Heard
from understudy.actors.definition import WorkerDefinition, WorkerKind
from understudy.adapters.tools.in_process import ProcessWorkplace


async def main() -> None:
    workplace = ProcessWorkplace("w-1", WorkerDefinition(id="w", kind=WorkerKind.PROCESS), Engine())
    await workplace.open(Heard())
    print(workplace.pid, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
