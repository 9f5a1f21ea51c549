"""The kernel's figures: messages, actors, timers, and how long it holds the loop."""

from rich.console import Console

from benchmarks.figures import Figure, against, at_least, at_most, medians, smaller

MESSAGES, FOOTPRINT = "benchmarks.messages", "benchmarks.footprint"
OURS, QUEUE, STREAM, PYKKA = "understudy", "asyncio.Queue", "anyio stream", "pykka"


def measure(console: Console) -> list[Figure]:
    return [*_fan_out(console), *_ping_pong(console), *_idle(console), *_timers(console), *_promises(console)]


def _fan_out(console: Console) -> list[Figure]:
    found = {
        system: answer["per_second"]
        for system, answer in medians(console, MESSAGES, "fan_out", [OURS, QUEUE, STREAM, PYKKA], 5).items()
    }
    name = "fan-out to 100,000 actors"
    return [
        at_least(name, found[OURS], "messages/s", 1_000_000),
        against(name, found[OURS], "messages/s", QUEUE, found[QUEUE], 8),
        against(name, found[OURS], "messages/s", STREAM, found[STREAM]),
        against(name, found[OURS], "messages/s", "pykka (1,000 actors)", found[PYKKA]),
    ]


def _ping_pong(console: Console) -> list[Figure]:
    answers = medians(console, MESSAGES, "ping_pong", [OURS, QUEUE, STREAM, PYKKA], 7)
    found = {system: answer["per_second"] for system, answer in answers.items()}
    goals = {QUEUE: 10, STREAM: None, PYKKA: None}
    return [against("ping-pong", found[OURS], "round trips/s", peer, found[peer], goal) for peer, goal in goals.items()]


def _idle(console: Console) -> list[Figure]:
    found = medians(console, FOOTPRINT, "idle", [OURS, QUEUE], 3)
    ours, peer = found[OURS], found[QUEUE]
    return [
        at_most("an idle actor, of a million", ours["bytes"], "bytes", 400),
        smaller("memory of an idle actor", ours["bytes"], "bytes", QUEUE, peer["bytes"]),
        at_least("a million idle actors that answer", ours["answered"], "actors", 1_000_000),
        against("spawn", ours["per_second"], "actors/s", QUEUE, peer["per_second"]),
    ]


def _timers(console: Console) -> list[Figure]:
    found = medians(console, FOOTPRINT, "timers", [OURS, "heapq alone"], 3)
    ours = found[OURS]
    return [
        at_least("timers armed and fired in virtual time", ours["fired"], "timers", 1_000_000),
        against("timers", ours["per_second"], "timers/s", "heapq alone", found["heapq alone"]["per_second"]),
    ]


def _promises(console: Console) -> list[Figure]:
    """What docs/kernel.md says about time, measured."""
    held = medians(console, FOOTPRINT, "loop_hold", [OURS], 3)[OURS]
    ended = medians(console, FOOTPRINT, "exit", [OURS], 3)[OURS]
    return [
        at_most("loop held by a busy kernel, 99th percentile", held["p99_ms"], "ms", 4),
        at_most("exit after the grace, work that ignores its cancellation", ended["seconds"], "s", 2),
        at_most("exit after the grace, a million actors", ended["million_seconds"], "s", 2),
    ]
