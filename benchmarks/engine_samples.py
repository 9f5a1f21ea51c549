"""Samples of the whole engine: `python -m benchmarks.engine_samples WORK SYSTEM` prints one as JSON.

Every database is a file on the project's disk with synchronous=FULL, as shipped, and is removed with the sample.
"""

import asyncio
import gc
import logging
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
import psutil
import structlog

from benchmarks.engine_tasks import CALL, GATE
from benchmarks.figures import run_sample
from benchmarks.store_samples import data_folder
from understudy.actors.definition import Task, Workstream
from understudy.actors.lifecycle import TaskState, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.adapters.stores.sqlite import SqliteStore, rows
from understudy.adapters.stores.sqlite.store import writes_of
from understudy.runtime.handles import Handle
from understudy.runtime.runtime import Runtime
from understudy.runtime.tuning import tune

TASKS = int(os.environ.get("UNDERSTUDY_ENGINE_TASKS", "20000"))
LONG_RUN = int(os.environ.get("UNDERSTUDY_LONG_RUN_TASKS", "1000000"))
LATENCIES = int(os.environ.get("UNDERSTUDY_LATENCIES", "1000"))
WAITING = int(os.environ.get("UNDERSTUDY_WAITING_TASKS", "100000"))
WARM_UP = 100
GROUP = 500  # submitted at once: at most 1,000 may wait
LIVE = 10_000

STREAM = 5_000  # tasks of each workstream of the long run
Written = list[list[tuple[str, list[rows.Row]]]]  # batches of statements with their rows


@contextmanager
def database() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=data_folder()) as folder:
        yield Path(folder) / "state.db"


@asynccontextmanager
async def fresh_runtime(count: int) -> AsyncIterator[Runtime]:
    """A runtime that has run a few tasks. When it is closed, `count` more must have completed."""
    with database() as path:
        async with Runtime(path, grace_s=0) as runtime:
            await complete(runtime, numbered(range(WARM_UP)))
            yield runtime
        check_completed(path, WARM_UP + count)


def check_completed(path: Path, count: int) -> None:
    """A sample in which tasks did not do their work says nothing. The file is asked, not the engine."""
    with closing(sqlite3.connect(path)) as connection:
        found = dict(connection.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall())
    if found != {TaskState.COMPLETED.value: count}:
        raise SystemExit(f"{count} tasks are to be completed, found {found}")


def task(number: int, *after: int) -> Task:
    return Task(id=f"t{number}", call=f"{CALL}noop", inputs={"i": number}, after=tuple(f"t{each}" for each in after))


def numbered(numbers: range) -> Workstream:
    return Workstream(tasks=tuple(task(number) for number in numbers))


async def complete(runtime: Runtime, definition: Workstream) -> Handle:
    handle = await runtime.submit(definition)
    await ended(handle)
    return handle


async def ended(handle: Handle) -> None:
    record = await handle.wait()
    if record.state != WorkstreamState.COMPLETED:
        raise SystemExit(f"{handle} is {record.state}: {record.last_error}")


async def tasks(system: str) -> dict[str, float]:
    """From nothing to all completed; then every result is read back, and both together are `with_results`."""
    async with fresh_runtime(TASKS) as runtime:
        began = time.perf_counter()
        handle = await complete(runtime, numbered(range(TASKS)))
        seconds = time.perf_counter() - began
        results = await handle.result()
        with_results = time.perf_counter() - began
        if results != {f"t{number}": number for number in range(TASKS)}:
            raise SystemExit("the results are not those of the tasks")
    return {"per_second": TASKS / seconds, "with_results": TASKS / with_results}


async def streams(system: str) -> dict[str, float]:
    """Workstreams of one task each."""
    async with fresh_runtime(TASKS) as runtime:
        began = time.perf_counter()
        for start in range(0, TASKS, GROUP):
            group = range(start, min(start + GROUP, TASKS))
            await asyncio.gather(*(complete(runtime, numbered(range(each, each + 1))) for each in group))
        return {"per_second": TASKS / (time.perf_counter() - began)}


async def capture(path: str) -> dict[str, float]:
    """Run the tasks, and write down what each commit wrote."""
    written: Written = []
    commit = SqliteStore.commit

    async def record(store: SqliteStore, batch: Batch) -> None:
        written.append(writes_of(batch))
        await commit(store, batch)

    async with fresh_runtime(TASKS) as runtime:
        with patch.object(SqliteStore, "commit", record):
            await complete(runtime, numbered(range(TASKS)))
    await asyncio.to_thread(Path(path).write_bytes, msgspec.msgpack.encode(written))
    return {"batches": len(written)}


async def raw(system: str) -> dict[str, float]:
    """The same rows in the same batches, by executemany alone."""
    with database() as path:
        recorded = path.with_name("written")
        run_child("capture", str(recorded))
        written = msgspec.msgpack.decode(recorded.read_bytes(), type=Written)
        async with SqliteStore(path):
            pass  # makes the schema
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        began = time.perf_counter()
        for batch in written:
            connection.execute("BEGIN IMMEDIATE")
            for statement, values in batch:
                connection.executemany(statement, values)
            connection.execute("COMMIT")
        seconds = time.perf_counter() - began
        connection.close()
    rows_written = sum(len(values) for batch in written for _, values in batch)
    return {
        "per_second": TASKS / seconds,
        "rows_per_task": rows_written / TASKS,
        "rows_per_commit": rows_written / len(written),
    }


def run_child(work: str, argument: str) -> None:
    command = [sys.executable, "-m", "benchmarks.engine_samples", work, argument]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise SystemExit(f"{work} failed:\n{finished.stderr}")


async def latency(system: str) -> dict[str, float]:
    """From submitting one task to its result, with nothing else to do."""
    times: list[float] = []
    async with fresh_runtime(LATENCIES + WARM_UP) as runtime:
        for number in range(LATENCIES + WARM_UP):
            began = time.perf_counter()
            handle = await runtime.submit(numbered(range(number, number + 1)))
            result = await handle.result()
            times.append((time.perf_counter() - began) * 1e3)
            if result != {f"t{number}": number}:
                raise SystemExit(f"task {number} gave {result}")
    measured = times[WARM_UP:]  # the first ones warm up
    return {"p50_ms": statistics.median(measured), "p99_ms": statistics.quantiles(measured, n=100)[98]}


def wide(width: int) -> Workstream:
    middle = range(1, width + 1)
    return Workstream(tasks=(task(0), *(task(number, 0) for number in middle), task(width + 1, *middle)))


def chain(length: int) -> Workstream:
    return Workstream(tasks=(task(0), *(task(number, number - 1) for number in range(1, length))))


def diamonds(count: int) -> Workstream:
    """One after another, so that there are 2^count ways through."""
    found: list[Task] = []
    for first in range(0, 4 * count, 4):
        found += (task(first, *([first - 1] if first else [])), task(first + 1, first), task(first + 2, first))
        found.append(task(first + 3, first + 1, first + 2))
    return Workstream(tasks=tuple(found))


SHAPES = {"wide": wide, "chain": chain, "diamonds": diamonds}


async def graph(system: str) -> dict[str, float]:
    """`wide 10000`: from submitting such a graph to its end."""
    shape, size = system.split()
    definition = SHAPES[shape](int(size))
    async with fresh_runtime(len(definition.tasks)) as runtime:
        began = time.perf_counter()
        await complete(runtime, definition)
        seconds = time.perf_counter() - began
    return {"us_per_task": seconds / len(definition.tasks) * 1e6, "tasks": len(definition.tasks)}


def resident_mb() -> float:
    gc.collect()
    resident: int = psutil.Process().memory_info().rss
    return resident / 2**20


async def waiting(system: str) -> dict[str, float]:
    """Many tasks after one that does not end; then it ends, and they must run."""
    async with fresh_runtime(WAITING + 1) as runtime:
        before = resident_mb()
        first = Task(id="first", call=f"{CALL}wait_at_gate")
        others = (Task(id=f"t{n}", call=f"{CALL}noop", inputs={"i": n}, after=("first",)) for n in range(WAITING))
        handle = await runtime.submit(Workstream(tasks=(first, *others)))
        await GATE.wait_for(1)
        grown = resident_mb() - before
        GATE.opened.set()
        await ended(handle)
        return {"grown_mb": grown, "grown_mb_at_end": resident_mb() - before}


async def long_run(system: str) -> dict[str, float]:
    """Workstream after workstream through one runtime: memory after the first 100,000 tasks, and at the end.

    With workstreams of 20,000 it reaches its height a little later, and then stays there.
    """
    done, early, early_at = 0, 0.0, min(100_000, LONG_RUN // 2)
    async with fresh_runtime(LONG_RUN) as runtime:
        began = time.perf_counter()
        while done < LONG_RUN:
            size = min(STREAM, LONG_RUN - done)
            await complete(runtime, numbered(range(size)))
            done += size
            if not early and done >= early_at:
                early = resident_mb()
        seconds, late = time.perf_counter() - began, resident_mb()
    return {
        "tasks": done,
        "early_mb": early,
        "late_mb": late,
        "grown_percent": (late / early - 1) * 100,
        "per_second": done / seconds,
    }


async def leave_behind(path: str) -> dict[str, float]:
    """Tasks that do not end, until somebody kills this process; without that it ends in a minute."""
    async with Runtime(path) as runtime:
        blocking = (Task(id=f"t{number}", call=f"{CALL}wait_at_gate") for number in range(LIVE))
        await runtime.submit(Workstream(tasks=tuple(blocking)))
        await GATE.wait_for(1_000)  # as many as the worker runs at once
        print("ready", flush=True)
        await asyncio.sleep(60)
    return {}


def kill_when_ready(path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.engine_samples", "leave_behind", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        said = child.stdout.readline() if child.stdout else ""
        child.kill()
    if said.strip() != "ready":
        raise SystemExit(f"the process that was to be killed said {said!r}")


async def recovery(system: str) -> dict[str, float]:
    """The start on what a killed process left. The tasks must then run to their end."""
    with database() as path:
        kill_when_ready(path)
        began = time.perf_counter()
        async with Runtime(path) as runtime:
            seconds = time.perf_counter() - began
            found = runtime.recovery
            if found.tasks != LIVE:
                raise SystemExit(f"{found}, of {LIVE}")
            GATE.opened.set()
            [record] = await runtime.workstreams()
            await ended(runtime.handle(record.id))
            until_end = time.perf_counter() - began
        check_completed(path, LIVE)
    return {"seconds": seconds, "until_end": until_end, "tasks": found.tasks, "run_again": found.run_again}


WORKS = (tasks, streams, capture, raw, latency, graph, waiting, long_run, leave_behind, recovery)

if __name__ == "__main__":
    tune()  # a process that does nothing else
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    run_sample({work.__name__: work for work in WORKS})
