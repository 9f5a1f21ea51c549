"""Samples of programs: so many run durably by a runtime, or by a bare loop over `anyio.open_process`."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from benchmarks.figures import run_sample
from understudy.runtime import Runtime, Task, WorkerDefinition, WorkerKind, Workstream
from understudy.runtime.tuning import tune

COUNT = 1_000
PROGRAMS = {"silent": ("true",), "talking": ("echo", "hello")}


async def run_programs(system: str) -> dict[str, float]:
    """`NAME SLOTS WHO`: how many programs a second, so many at a time."""
    name, slots, who = system.split()
    take = _durable if who == "understudy" else _bare
    began = time.perf_counter()
    await take(PROGRAMS[name], int(slots))
    return {"per_second": COUNT / (time.perf_counter() - began)}


async def _durable(argv: tuple[str, ...], slots: int) -> None:
    tune()
    workers = [WorkerDefinition("programs", WorkerKind.PROGRAM, max_concurrent_tasks=slots)]
    tasks = tuple(Task(f"t{number}", argv=argv) for number in range(COUNT))
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(Path(folder, "state.db"), workers=workers) as runtime:
            record = await (await runtime.submit(Workstream(tasks))).wait()
    if record.state != "completed":
        sys.exit(f"the workstream is {record.state}: {record.last_error}")


async def _bare(argv: tuple[str, ...], slots: int) -> None:
    """What anybody would write: run it, read what it says, look at its exit code."""
    left = iter(range(COUNT))

    async def work() -> None:
        for _ in left:
            async with await anyio.open_process(argv, stdin=subprocess.DEVNULL) as process:
                if process.stdout is not None and process.stderr is not None:
                    async with anyio.create_task_group() as group:
                        group.start_soon(_read, process.stdout)
                        await _read(process.stderr)
                if await process.wait() != 0:
                    sys.exit(f"{argv} failed")

    async with anyio.create_task_group() as group:
        for _ in range(slots):
            group.start_soon(work)


async def _read(stream: anyio.abc.ByteReceiveStream) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def show_help(system: str) -> dict[str, float]:
    """How long the command takes to say what it can do."""
    command = [str(Path(sys.executable).with_name("understudy")), "--help"]
    began = time.perf_counter()
    await anyio.run_process(command)
    return {"ms": (time.perf_counter() - began) * 1e3}


if __name__ == "__main__":
    run_sample({"programs": run_programs, "help": show_help})
