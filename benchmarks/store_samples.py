"""Samples of storing and loading: `python -m benchmarks.store_samples WORK SYSTEM` prints one as JSON."""

import asyncio
import os
import sqlite3
import tempfile
import time
from pathlib import Path

import psutil
import yaml

from benchmarks.figures import run_sample
from understudy.actors.definition import DefinitionError, Task, Workstream, find_problems
from understudy.actors.journal import Book, Journal
from understudy.actors.kernel import LoopKernel
from understudy.actors.lifecycle import Entity, TaskState, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.records import TaskRecord, Transition, WorkstreamRecord
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.adapters.stores.sqlite.inspection import find_faults
from understudy.adapters.stores.sqlite.rows import snapshot_row, transition_row
from understudy.adapters.stores.sqlite.statements import STATEMENTS
from understudy.runtime.definition import load_text
from understudy.runtime.definition.loading import Format
from understudy.runtime.definition.yaml_reading import read_yaml

ROWS = 100_000
BATCH = 1_000
TRAIL_ROWS = int(os.environ.get("UNDERSTUDY_TRAIL_ROWS", "1000000"))


def data_folder() -> Path:
    """On the disk of the project: a temporary folder may be memory, where a sync costs nothing."""
    folder = Path(__file__).with_name("data")
    folder.mkdir(exist_ok=True)
    return folder


def record(number: int, state: TaskState) -> TaskRecord:
    return TaskRecord(f"w/{number:08}", "w", f"{number:08}", state, created_at=1, updated_at=2)


async def commit(system: str) -> dict[str, float]:
    """Each task makes a move, so that a move and a snapshot are written; both systems write the same rows."""
    with tempfile.TemporaryDirectory(dir=data_folder()) as folder:
        path = Path(folder) / "state.db"
        if system == "understudy":
            return {"per_second": await commit_ours(path)}
        async with SqliteStore(path):
            pass
        return {"per_second": commit_raw(path)}


async def commit_ours(path: Path) -> float:
    async with SqliteStore(path) as store, LoopKernel(grace_s=60) as kernel:
        book = Book(0, lambda: 1)
        kernel.spawn(Journal, (book, store))
        done = asyncio.Event()
        began = time.perf_counter()
        for number in range(ROWS):
            book.move(Entity.TASK, None, record(number, TaskState.PENDING), "created")
            if not number % BATCH:
                await asyncio.sleep(0)
        book.then(done.set)
        await done.wait()
        return 2 * ROWS / (time.perf_counter() - began)


def commit_raw(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    made = [(move(number), record(number, TaskState.PENDING)) for number in range(ROWS)]
    moves = [transition_row(transition) for transition, _ in made]
    snapshots = [snapshot_row(each) for _, each in made]
    began = time.perf_counter()
    for start in range(0, ROWS, BATCH):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(STATEMENTS["put_task"], snapshots[start : start + BATCH])
        connection.executemany(STATEMENTS["add_transition"], moves[start : start + BATCH])
        connection.execute("COMMIT")
    return 2 * ROWS / (time.perf_counter() - began)


def move(number: int, sequence: int | None = None) -> Transition:
    return Transition(
        sequence or number + 1, Entity.TASK, f"w/{number:08}", 1, "*", "pending", "created", 1, workstream_id="w"
    )


def definition_text() -> str:
    lines = ["params: {version: 1.2.0}", "tasks:"]
    for number in range(10_000):
        lines += [
            f"  - id: task-{number}",
            "    call: shop.release:write_notes",
            f'    with: {{version: "${{params.version}}", number: {number}}}',
            f"    after: [{f'task-{number - 1}' if number else ''}]",
        ]
    return "\n".join(lines) + "\n"


async def load_yaml(system: str) -> dict[str, float]:
    text = definition_text()
    began = time.perf_counter()
    if system == "understudy":
        load_text(text, Format.YAML)
    else:
        yaml.load(text, Loader=yaml.CSafeLoader)
    return {"per_second": 10_000 / (time.perf_counter() - began)}


async def check_graph(system: str) -> dict[str, float]:
    chain = [Task(id="t0", call="m:f")]
    chain += (Task(id=f"t{number}", call="m:f", after=(f"t{number - 1}",)) for number in range(1, 100_000))
    definition = Workstream(tasks=tuple(chain))
    began = time.perf_counter()
    if find_problems(definition):
        raise SystemExit("a sound graph has problems")
    return {"seconds": time.perf_counter() - began}


LIFE = (
    ("*", "pending", "created"),
    ("pending", "queued", "scheduler_assigned"),
    ("queued", "running", "worker_started"),
    ("running", "errored", "execution_failed"),
    ("errored", "retrying", "retry_scheduled"),
    ("retrying", "queued", "retry_delay_elapsed"),
    ("queued", "running", "worker_started"),
    ("running", "timed_out", "execution_timed_out"),
    ("timed_out", "failed", "retries_exhausted"),
)


def trail_batch(first: int, moves: int, tasks: int) -> Batch:
    """Moves of a long trail, in which all tasks live at the same time: move n is a step of task n modulo tasks."""
    batch = Batch()
    for number in range(first, first + moves):
        step, task = divmod(number, tasks)
        source, target, trigger = LIFE[step]
        record_id = f"w/{task:08}"
        batch.transitions.append(
            Transition(number + 1, Entity.TASK, record_id, 1, source, target, trigger, number, workstream_id="w")
        )
        if step == len(LIFE) - 1:
            batch.snapshots[Entity.TASK, record_id] = record(task, TaskState.FAILED)
    return batch


async def trail(system: str) -> dict[str, float]:
    """A long trail: the history of one task, and a check of everything, whose memory must not grow with the file."""
    process = psutil.Process()
    tasks = TRAIL_ROWS // len(LIFE)
    total = tasks * len(LIFE)
    with tempfile.TemporaryDirectory(dir=data_folder()) as folder:
        path = Path(folder) / "state.db"
        async with SqliteStore(path) as store:
            await store.commit(owner(total + 1))
            for start in range(0, total, 20_000):
                await store.commit(trail_batch(start, min(20_000, total - start), tasks))
            times: list[float] = []
            for number in range(0, tasks, max(1, tasks // 50)):
                began = time.perf_counter()
                found = await store.history(Entity.TASK, f"w/{number:08}")
                times.append((time.perf_counter() - began) * 1e3)
                if len(found) != len(LIFE):
                    raise SystemExit(f"task {number} has {len(found)} moves")
        before = process.memory_info().rss
        began = time.perf_counter()
        findings = sum(1 for _ in find_faults(path))
        seconds, grown = time.perf_counter() - began, (process.memory_info().rss - before) / 2**20
        if findings:
            raise SystemExit(f"{findings} findings in a sound trail")
    return {"history_ms": max(times), "rows": total, "grown_mb": grown, "check_seconds": seconds}


def owner(sequence: int) -> Batch:
    """The workstream of all those tasks, and the moves that led to its end."""
    record = WorkstreamRecord("w", WorkstreamState.FAILED, created_at=1, updated_at=2)
    born = Transition(sequence, Entity.WORKSTREAM, "w", 1, "*", "planned", "submitted", 1, workstream_id="w")
    ended = Transition(sequence + 1, Entity.WORKSTREAM, "w", 1, "planned", "failed", "rejected", 2, workstream_id="w")
    return Batch(transitions=[born, ended], snapshots={(Entity.WORKSTREAM, "w"): record})


async def hostile_yaml(system: str) -> dict[str, float]:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    worst = 0.0
    for text in (bomb, "[" * 20_000, "a: !!python/object:x []", "a: 1\na: 2\n"):
        began = time.perf_counter()
        try:
            read_yaml(text)
        except DefinitionError:
            worst = max(worst, (time.perf_counter() - began) * 1e3)
        else:
            raise SystemExit("hostile YAML was read")
    return {"worst_ms": worst}


if __name__ == "__main__":
    run_sample(
        {
            "commit": commit,
            "load_yaml": load_yaml,
            "check_graph": check_graph,
            "trail": trail,
            "hostile_yaml": hostile_yaml,
        }
    )
