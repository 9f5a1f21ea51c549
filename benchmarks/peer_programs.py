"""The peers' samples: no-op tasks and the time of one, run by the interpreter of the peer's own environment.

`python -m benchmarks.peer_programs tasks|latency PEER` prints a sample as JSON. It imports the standard library and
the peer, nothing else: that environment has no more. Polls are tuned as far as each lets them be.
"""

import asyncio
import importlib
import json
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")
TASKS = int(os.environ.get("UNDERSTUDY_PEER_TASKS", "2000"))
TIMES = int(os.environ.get("UNDERSTUDY_LATENCIES", "1000"))
WARM_UP = 20
POLL_S = 0.001

Start = Callable[[int], Any]  # a task, and what to wait for its result with


def noop(i: int) -> int:
    return i


async def noop_async(i: int) -> int:
    return i


def huey(work: str, folder: str) -> dict[str, float]:
    """WAL and synchronous=FULL. A task is taken from the file before it runs: at most once."""
    logging.getLogger("huey").setLevel(logging.ERROR)
    queue = importlib.import_module("huey").SqliteHuey(filename=f"{folder}/huey.db", fsync=True)
    consumer = queue.create_consumer(
        workers=1, worker_type="thread", periodic=False, initial_delay=POLL_S, max_delay=POLL_S
    )
    task = queue.task()(noop)
    consumer.start()
    found = sample(work, task, lambda result: result.get(blocking=True, backoff=1, max_delay=POLL_S))
    consumer.stop()
    return found


def flexiq(work: str, folder: str) -> dict[str, float]:
    """A Rust core on SQLite, synchronous=NORMAL; async tasks are its faster ones."""
    logging.disable(logging.WARNING)
    queue = importlib.import_module("flexiq").Queue(
        db_path=f"{folder}/queue.db", workers=2, scheduler_poll_interval_ms=1
    )
    task = queue.task()(noop_async)
    threading.Thread(target=queue.run_worker, daemon=True).start()
    return sample(work, task.delay, lambda job: job.result(timeout=60, poll_interval=POLL_S, max_poll_interval=POLL_S))


def dbos(work: str, folder: str) -> dict[str, float]:
    """As shipped: a rollback journal, synchronous=FULL. A workflow of one step for each task."""
    library = importlib.import_module("dbos").DBOS
    library(config=dbos_settings(folder))
    return asyncio.run(sample_async(work, library))


def dbos_wal(work: str, folder: str) -> dict[str, float]:
    """With an engine of its own, WAL and synchronous=FULL, and its sync functions, which are faster there."""
    library = importlib.import_module("dbos").DBOS
    database = importlib.import_module("sqlalchemy")
    settings = dbos_settings(folder)
    engine = database.create_engine(settings["system_database_url"], pool_timeout=30)

    def connected(connection: Any, _: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        for setting in ("busy_timeout=30000", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}")

    database.event.listen(engine, "connect", connected)
    library(config={**settings, "system_database_engine": engine})
    step = library.step()(noop)

    def one_step(i: int) -> Any:
        return step(i)

    flow = library.workflow()(one_step)
    library.launch()
    return sample(
        work,
        lambda number: library.start_workflow(flow, number),
        lambda handle: handle.get_result(polling_interval_sec=POLL_S),
    )


def dbos_settings(folder: str) -> dict[str, Any]:
    address = f"sqlite:///{folder}/dbos.sqlite"
    return {"name": "bench", "log_level": "ERROR", "run_admin_server": False, "system_database_url": address}


async def sample_async(work: str, library: Any) -> dict[str, float]:
    step = library.step()(noop_async)

    async def one_step(i: int) -> Any:
        return await step(i)

    flow = library.workflow()(one_step)
    library.launch()

    async def one(number: int) -> Any:
        return await (await library.start_workflow_async(flow, number)).get_result()

    for number in range(WARM_UP):
        await one(number)
    if work == "latency":
        return percentiles([await timed(one, number) for number in range(TIMES)])
    began = time.perf_counter()
    started = [await library.start_workflow_async(flow, number) for number in range(TASKS)]
    results = await asyncio.gather(*(each.get_result() for each in started))
    return throughput(results, began)


async def timed(one: Callable[[int], Awaitable[Any]], number: int) -> float:
    began = time.perf_counter()
    await one(number)
    return (time.perf_counter() - began) * 1e3


def sample(work: str, start: Start, result_of: Callable[[Any], Any]) -> dict[str, float]:
    for number in range(WARM_UP):
        result_of(start(number))
    if work == "latency":
        times: list[float] = []
        for number in range(TIMES):
            began = time.perf_counter()
            result_of(start(number))
            times.append((time.perf_counter() - began) * 1e3)
        return percentiles(times)
    began = time.perf_counter()
    started = [start(number) for number in range(TASKS)]
    return throughput([result_of(each) for each in started], began)


def throughput(results: list[Any], began: float) -> dict[str, float]:
    seconds = time.perf_counter() - began
    if results != list(range(TASKS)):
        raise SystemExit("the results are not those of the tasks")
    return {"per_second": TASKS / seconds}


def percentiles(times: list[float]) -> dict[str, float]:
    return {"p50_ms": statistics.median(times), "p99_ms": statistics.quantiles(times, n=100)[98]}


PROGRAMS = {"DBOS": dbos, "DBOS with WAL": dbos_wal, "FlexiQ": flexiq, "huey": huey}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=DATA, ignore_cleanup_errors=True) as place:
        answer = PROGRAMS[sys.argv[2]](sys.argv[1], place)
    print(json.dumps(answer), flush=True)
    os._exit(0)  # their threads go on for ever
