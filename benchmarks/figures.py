"""What a benchmark yields: figures with a goal, a table for people and a line of JSON for each."""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).with_name("results.jsonl")


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


def sample(module: str, *arguments: str) -> dict[str, Any]:
    """Run one sample in a process of its own, so that samples do not share a heap. It prints one line of JSON."""
    command = [sys.executable, "-m", module, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise SystemExit(f"the sample {' '.join(arguments)} failed:\n{finished.stderr}")
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


def run_sample(works: dict[str, Callable[[str], Coroutine[Any, Any, dict[str, float]]]]) -> None:
    """What a module of samples does when it is run: `WORK SYSTEM` on the command line, JSON on the last line."""
    work, system = sys.argv[1:]
    print(json.dumps(asyncio.run(works[work](system))), flush=True)


def medians(
    console: Console, module: str, work: str, systems: Sequence[str], repeats: int
) -> dict[str, dict[str, float]]:
    """Sample each system in turn, again and again, so that a slow minute of the machine hits all of them."""
    samples: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
    for round_number in range(repeats):
        for system in systems:
            console.print(f"[dim]{work}: {system} ({round_number + 1} of {repeats})[/dim]")
            samples[system].append(sample(module, work, system))
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
            f"{each.value:,.4g} {each.unit}" if each.value < 1_000 else f"{each.value:,.0f} {each.unit}",
            each.peer or "",
            "" if each.peer_value is None else f"{each.peer_value:,.0f}",
            "" if each.ratio is None else f"{each.ratio:,.1f}x",
            each.goal,
            {True: "[green]yes", False: "[red]NO", None: ""}[each.met],
        )
    console.print(table)
