"""The store's figures: audited transitions against raw SQLite, a long trail, and definitions against PyYAML."""

from rich.console import Console

from benchmarks.figures import Figure, against, at_most, medians, plain

SAMPLES = "benchmarks.store_samples"


def measure(console: Console) -> list[Figure]:
    commits = medians(console, SAMPLES, "commit", ["understudy", "sqlite3.executemany"], 5)
    loading = medians(console, SAMPLES, "load_yaml", ["understudy", "PyYAML's C loader"], 5)
    checked = medians(console, SAMPLES, "check_graph", ["understudy"], 3)["understudy"]
    trail = medians(console, SAMPLES, "trail", ["understudy"], 1)["understudy"]
    hostile = medians(console, SAMPLES, "hostile_yaml", ["understudy"], 3)["understudy"]
    raw, ours = commits["sqlite3.executemany"]["per_second"], commits["understudy"]["per_second"]
    yaml, us = loading["PyYAML's C loader"]["per_second"], loading["understudy"]["per_second"]
    return [
        against("audited transitions, synchronous=FULL", ours, "rows/s", "raw executemany", raw, 0.5),
        against("loading and checking YAML, 10,000 tasks", us, "tasks/s", "PyYAML's C loader", yaml, 1 / 3),
        at_most("checking a graph of 100,000 tasks", checked["seconds"], "s", 2),
        at_most("history of one task in a long trail", trail["history_ms"], "ms", 10),
        plain("transitions in that trail", trail["rows"], "rows"),
        at_most("memory that checking it takes", trail["grown_mb"], "MB", 50),
        plain("time that checking it takes", trail["check_seconds"], "s"),
        at_most("hostile YAML refused", hostile["worst_ms"], "ms", 100),
    ]
