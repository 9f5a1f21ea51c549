"""Run the benchmarks named on the command line, or all of them. Exits with 1 when a goal is missed."""

import sys
from collections.abc import Callable

from rich.console import Console

from benchmarks import engine, figures, kernel, programs, store

PARTS: dict[str, Callable[[Console], list[figures.Figure]]] = {
    "kernel": kernel.measure,
    "store": store.measure,
    "engine": engine.measure,
    "programs": programs.measure,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        sys.exit(f"no benchmark is named {', '.join(unknown)}; there are {', '.join(PARTS)}")
    console = Console(width=None if sys.stdout.isatty() else 140)  # a file has room for whole rows
    figures.RESULTS.unlink(missing_ok=True)
    missed = 0
    for name in names or PARTS:
        measured = PARTS[name](console)
        figures.publish(console, measured)
        missed += sum(figure.met is False for figure in measured)
    console.print(f"{missed} goals missed; every figure is in benchmarks/{figures.RESULTS.name}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
