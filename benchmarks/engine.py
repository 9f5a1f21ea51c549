"""The engine's figures: durable tasks against peers and raw SQLite, the time of one, graphs, memory and recovery."""

from functools import partial

from rich.console import Console

from benchmarks import peers
from benchmarks.figures import Figure, against, at_least, at_most, interleaved, medians, plain, sample, smaller

SAMPLES = "benchmarks.engine_samples"
OURS, STREAMS, RAW = "understudy", "one-task workstreams", "raw executemany"
GOALS = {"DBOS": 40, "DBOS with WAL": None, "FlexiQ": 10, "huey": 6}  # how many times as many tasks
NAMES = {
    "DBOS": "DBOS on SQLite",
    "DBOS with WAL": "DBOS on SQLite, set to WAL",
    "FlexiQ": "FlexiQ on SQLite, synchronous=NORMAL",
    "huey": "huey on SQLite with fsync",
}
GRAPHS = {  # the shape and its two sizes
    "a graph 1 -> n -> 1": ("wide", 10_000, 100_000),
    "a chain of n": ("chain", 1_000, 10_000),
    "n diamonds": ("diamonds", 100, 1_000),
}


def measure(console: Console) -> list[Figure]:
    return [*_tasks(console), *_latency(console), *_graphs(console), *_memory(console), *_recovery(console)]


def _tasks(console: Console) -> list[Figure]:
    takers = {
        OURS: partial(sample, SAMPLES, "tasks", OURS),
        STREAMS: partial(sample, SAMPLES, "streams", OURS),
        RAW: partial(sample, SAMPLES, "raw", OURS),
        **peers.takers(console, "tasks"),
    }
    found = interleaved(console, "tasks", takers, 5)
    ours, raw = found[OURS], found[RAW]
    return [
        at_least("durable no-op tasks, synchronous=FULL", ours["per_second"], "tasks/s", 12_000),
        against("the same, against its rows written raw", ours["per_second"], "tasks/s", RAW, raw["per_second"], 0.4),
        *(
            against(
                "the same, results read", ours["with_results"], "tasks/s", NAMES[peer], found[peer]["per_second"], goal
            )
            for peer, goal in GOALS.items()
            if peer in found
        ),
        plain("the same, as workstreams of one task", found[STREAMS]["per_second"], "tasks/s"),
        plain("rows written for one task", raw["rows_per_task"], "rows"),
        plain("rows in one commit", raw["rows_per_commit"], "rows"),
    ]


def _latency(console: Console) -> list[Figure]:
    takers = {OURS: partial(sample, SAMPLES, "latency", OURS), **peers.takers(console, "latency")}
    found = interleaved(console, "latency", takers, 3)
    name = "submit to result of one task"
    return [
        at_most(f"{name}, 50th percentile", found[OURS]["p50_ms"], "ms", 1.5),
        at_most(f"{name}, 99th percentile", found[OURS]["p99_ms"], "ms", 6),
        *(
            smaller(f"{name}, 50th percentile", found[OURS]["p50_ms"], "ms", NAMES[peer], found[peer]["p50_ms"])
            for peer in GOALS
            if peer in found
        ),
    ]


def _graphs(console: Console) -> list[Figure]:
    """What a task costs in a graph ten times as large must be what it costs in the small one, or nearly so."""
    systems = [f"{shape} {size}" for shape, *sizes in GRAPHS.values() for size in sizes]
    found = {system: each["us_per_task"] for system, each in medians(console, SAMPLES, "graph", systems, 3).items()}
    figures: list[Figure] = []
    for name, (shape, small, large) in GRAPHS.items():
        at_small, at_large = found[f"{shape} {small}"], found[f"{shape} {large}"]
        figures += (
            plain(f"{name}, n = {small:,}, for each task", at_small, "us"),
            plain(f"{name}, n = {large:,}, for each task", at_large, "us"),
            at_most(f"{name}: a task in the large one against the small one", at_large / at_small, "x", 1.5),
        )
    return figures


def _memory(console: Console) -> list[Figure]:
    waiting = medians(console, SAMPLES, "waiting", [OURS], 3)[OURS]
    long_run = medians(console, SAMPLES, "long_run", [OURS], 1)[OURS]
    count = f"{long_run['tasks']:,.0f}"
    return [
        at_most("memory of 100,000 tasks that wait", waiting["grown_mb"], "MB", 300),
        plain("memory when they have run", waiting["grown_mb_at_end"], "MB"),
        plain("memory after 100,000 tasks", long_run["early_mb"], "MB"),
        at_most(f"its growth until {count} tasks", long_run["grown_percent"], "%", 10),
        plain(f"{count} tasks through one runtime", long_run["per_second"], "tasks/s"),
    ]


def _recovery(console: Console) -> list[Figure]:
    found = medians(console, SAMPLES, "recovery", [OURS], 5)[OURS]
    return [
        at_most("start with 10,000 live tasks of a killed process", found["seconds"], "s", 2),
        plain("the same, until they have run", found["until_end"], "s"),
    ]
