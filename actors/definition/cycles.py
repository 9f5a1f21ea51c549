"""Finding cycles in a graph of any size, without recursion."""

from collections.abc import Mapping
from typing import Final

CYCLES_MAX: Final = 10  # that are told; a graph can have more cycles than tasks


def find_cycles(waits_for: Mapping[str, list[str]]) -> list[list[str]]:
    """Cycles that share no task, each as a -> b -> a in the order in which the tasks would have to run."""
    left = _unrunnable(waits_for)
    cycles: list[list[str]] = []
    while left and len(cycles) < CYCLES_MAX:
        cycle = _walk(waits_for, left)
        cycles.append(cycle)
        rest = left - set(cycle)
        left = _unrunnable({task: [each for each in waits_for[task] if each in rest] for task in rest})
    return cycles


def _unrunnable(waits_for: Mapping[str, list[str]]) -> set[str]:
    """What is left when again and again every task is taken away that waits for nothing that is left."""
    missing = {task: len(before) for task, before in waits_for.items()}
    followers: dict[str, list[str]] = {}
    for task, before in waits_for.items():
        for each in before:
            followers.setdefault(each, []).append(task)
    ready = [task for task, count in missing.items() if not count]
    while ready:
        for follower in followers.get(ready.pop(), ()):
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return {task for task, count in missing.items() if count > 0}


def _walk(waits_for: Mapping[str, list[str]], left: set[str]) -> list[str]:
    """Go from a task that is left to one it waits for, until one comes again."""
    task = min(left)
    order: dict[str, int] = {}
    way: list[str] = []
    while task not in order:
        order[task] = len(way)
        way.append(task)
        task = next(each for each in waits_for[task] if each in left)
    cycle = way[order[task] :]
    start = cycle.index(min(cycle))
    turned = cycle[start:] + cycle[:start]
    return [turned[0], *reversed(turned[1:]), turned[0]]
