"""What a benchmark yields: figures with a goal, a table for people and a line of JSON for each."""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).with_name("results.jsonl")
SAMPLE_S_MAX = 900.0
ERROR_LINES_MAX = 60  # the end of what a failed sample said: the error is there


class Figure(msgspec.Struct, frozen=True):
    """One measured value. `ratio` is to the peer's value, measured in the same run."""

    figure: str
    value: float
    unit: str
    peer: str | None
    peer_value: float | None
    ratio: float | None
    goal: str
    met: bool | None  # None where there is no goal


def plain(figure: str, value: float, unit: str) -> Figure:
    """A figure to know, without a goal."""
    return Figure(figure, value, unit, None, None, None, "", None)


def at_least(figure: str, value: float, unit: str, goal: float) -> Figure:
    return Figure(figure, value, unit, None, None, None, f">= {goal:,.0f} {unit}", value >= goal)


def at_most(figure: str, value: float, unit: str, goal: float) -> Figure:
    return Figure(figure, value, unit, None, None, None, f"<= {goal:,.4g} {unit}", value <= goal)


def against(figure: str, value: float, unit: str, peer: str, peer_value: float, goal: float | None = None) -> Figure:
    ratio = value / peer_value
    met = None if goal is None else ratio >= goal
    return Figure(figure, value, unit, peer, peer_value, ratio, "" if goal is None else f">= {goal:g}x", met)


def smaller(figure: str, value: float, unit: str, peer: str, peer_value: float) -> Figure:
    """Where less is better: the ratio says how many times more the peer takes."""
    return Figure(figure, value, unit, peer, peer_value, peer_value / value, "", None)


def sample(module: str, *arguments: str, python: str = sys.executable) -> dict[str, Any]:
    """Run one sample in a process of its own, so that samples do not share a heap. It prints one line of JSON."""
    command = [python, "-m", module, *arguments]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SAMPLE_S_MAX)
    except subprocess.TimeoutExpired as error:
        said = error.stderr.decode() if isinstance(error.stderr, bytes) else ""
        raise SystemExit(f"the sample {' '.join(arguments)} is stuck, stopped it:\n{_end_of(said)}") from None
    if finished.returncode != 0:
        raise SystemExit(f"the sample {' '.join(arguments)} failed:\n{_end_of(finished.stderr)}")
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


def _end_of(text: str) -> str:
    return "\n".join(text.splitlines()[-ERROR_LINES_MAX:])


def run_sample(works: dict[str, Callable[[str], Coroutine[Any, Any, dict[str, float]]]]) -> None:
    """What a module of samples does when it is run: `WORK SYSTEM` on the command line, JSON on the last line."""
    work, system = sys.argv[1:]
    print(json.dumps(asyncio.run(works[work](system))), flush=True)


def medians(
    console: Console, module: str, work: str, systems: Sequence[str], repeats: int
) -> dict[str, dict[str, float]]:
    """One work of a module, done by each system."""
    return interleaved(console, work, {system: partial(sample, module, work, system) for system in systems}, repeats)


def interleaved(
    console: Console, work: str, takers: Mapping[str, Callable[[], dict[str, Any]]], repeats: int
) -> dict[str, dict[str, float]]:
    """Sample each system in turn, again and again, so that a slow minute of the machine hits all of them."""
    samples: dict[str, list[dict[str, Any]]] = {system: [] for system in takers}
    for round_number in range(repeats):
        for system, take in takers.items():
            console.print(f"[dim]{work}: {system} ({round_number + 1} of {repeats})[/dim]")
            samples[system].append(take())
    return {
        system: {name: statistics.median(each[name] for each in taken) for name in taken[0]}
        for system, taken in samples.items()
    }


def publish(console: Console, figures: Sequence[Figure]) -> None:
    with RESULTS.open("a") as file:
        file.writelines(msgspec.json.encode(figure).decode() + "\n" for figure in figures)
    table = Table(title="understudy against its goals and peers")
    for heading in ("figure", "value", "peer", "peer's value", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading in ("figure", "peer") else "right")
    for each in figures:
        table.add_row(
            each.figure,
            f"{_short(each.value)} {each.unit}",
            each.peer or "",
            "" if each.peer_value is None else _short(each.peer_value),
            "" if each.ratio is None else f"{each.ratio:,.{1 if each.ratio >= 1 else 2}f}x",
            each.goal,
            {True: "[green]yes", False: "[red]NO", None: ""}[each.met],
        )
    console.print(table)


def _short(value: float) -> str:
    return f"{value:,.4g}" if value < 1_000 else f"{value:,.0f}"
