"""What it costs to run programs durably, against a bare loop over the same ones; and how soon the command speaks."""

from rich.console import Console

from benchmarks.figures import Figure, against, at_most, medians
from benchmarks.program_samples import PROGRAMS

SAMPLES = "benchmarks.program_samples"
SLOTS = (1, 6)  # programs at a time; six is what a runtime does by itself on two cores
GOAL = 0.7


def measure(console: Console) -> list[Figure]:
    systems = [f"{name} {slots} {who}" for name in PROGRAMS for slots in SLOTS for who in ("understudy", "bare")]
    found = {system: each["per_second"] for system, each in medians(console, SAMPLES, "programs", systems, 5).items()}
    figures = [
        against(
            f"{name} programs, {slots} at a time",
            found[f"{name} {slots} understudy"],
            "programs/s",
            "bare anyio.open_process",
            found[f"{name} {slots} bare"],
            GOAL if slots > 1 else None,  # one after the other waits for the disk in between
        )
        for name in PROGRAMS
        for slots in SLOTS
    ]
    help_ms = medians(console, SAMPLES, "help", ["understudy"], 7)["understudy"]["ms"]
    return [*figures, at_most("understudy --help", help_ms, "ms", 300)]
