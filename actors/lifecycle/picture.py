"""A lifecycle as people and programs want to see it: rows, Mermaid, DOT, and the page in the docs.

All of them are made from the same rows, whether the lifecycle is ours or a document's.
"""

from collections.abc import Iterable

import msgspec

from understudy.actors.lifecycle.machine import START, Machine, Trait
from understudy.actors.lifecycle.vocabulary import Vocabulary


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One move for one reason."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    trigger: str | None
    guard: str | None = None
    severity: str | None = None


class Lifecycle(msgspec.Struct, frozen=True):
    """One entity's states and moves, ready to be shown."""

    entity: str
    states: tuple[str, ...]
    initial: str
    terminal: tuple[str, ...]
    transitions: tuple[Row, ...]


def of_machine(machine: Machine) -> Lifecycle:
    rows = tuple(
        Row(move.source, move.target, trigger, move.guard, move.severity.value)
        for move in machine.moves
        for trigger in move.triggers
    )
    terminal = tuple(state for state in machine.states if machine.is_terminal(state))
    return Lifecycle(machine.entity, tuple(machine.states), machine.initial, terminal, rows)


def of_vocabulary(entity: str, vocabulary: Vocabulary, machine: Machine) -> Lifecycle:
    rows = tuple(Row(source, target, None) for source, targets in vocabulary.moves.items() for target in targets)
    terminal = tuple(state for state in vocabulary.states if state not in vocabulary.moves)
    return Lifecycle(entity, vocabulary.states, vocabulary.read(machine.initial), terminal, rows)


def mermaid(lifecycle: Lifecycle) -> str:
    lines = ["stateDiagram-v2"]
    born = [(source, target, triggers) for source, target, triggers in _joined(lifecycle) if source == START]
    if not born:
        lines.append(f"    [*] --> {lifecycle.initial}")
    for source, target, triggers in _joined(lifecycle):
        label = f": {', '.join(triggers)}" if triggers else ""
        lines.append(f"    {'[*]' if source == START else source} --> {target}{label}")
    lines += (f"    {state} --> [*]" for state in lifecycle.terminal)
    return "\n".join(lines) + "\n"


def dot(lifecycle: Lifecycle) -> str:
    lines = [f"digraph {lifecycle.entity} {{", "    rankdir=LR;", "    node [shape=box, style=rounded];"]
    lines.append('    "*" [shape=point];')
    lines += (f'    "{state}" [peripheries=2];' for state in lifecycle.terminal)
    edges = _joined(lifecycle)
    if not any(source == START for source, _, _ in edges):
        lines.append(f'    "*" -> "{lifecycle.initial}";')
    for source, target, triggers in edges:
        label = f' [label="{_LINE_BREAK.join(triggers)}"]' if triggers else ""
        lines.append(f'    "{source}" -> "{target}"{label};')
    return "\n".join([*lines, "}"]) + "\n"


def page(machines: Iterable[Machine]) -> str:
    """The page docs/lifecycles.md."""
    parts = [_OPENING]
    for machine in machines:
        lifecycle = of_machine(machine)
        parts += [f"## {machine.entity.capitalize()}", f"```mermaid\n{mermaid(lifecycle)}```"]
        parts += ["\n".join(_state_lines(machine)), "\n".join(_move_lines(lifecycle))]
    return "\n\n".join(parts) + "\n"


_LINE_BREAK = r"\n"  # DOT's own, inside a label

_OPENING = """# The lifecycles

Made from the tables in `actors/lifecycle` by `understudy lifecycle --format markdown`; a test holds this page to them.
A terminal record never changes again: a reset, and a skip or resolve of what has ended, start a new generation."""

_TRAITS = {
    Trait.TERMINAL: "terminal",
    Trait.ACTIVE: "active",
    Trait.WAITING: "waiting",
    Trait.HOLDS_WORKER: "holds a worker",
    Trait.SATISFIES: "satisfies dependents",
    Trait.ERROR: "error",
}


def describe(traits: Trait) -> str:
    return ", ".join(words for trait, words in _TRAITS.items() if trait in traits)


def _joined(lifecycle: Lifecycle) -> list[tuple[str, str, list[str]]]:
    """Moves with the same ends as one, with all their triggers."""
    joined: dict[tuple[str, str], list[str]] = {}
    for row in lifecycle.transitions:
        triggers = joined.setdefault((row.source, row.target), [])
        if row.trigger:
            triggers.append(row.trigger)
    return [(source, target, triggers) for (source, target), triggers in joined.items()]


def _state_lines(machine: Machine) -> list[str]:
    rows = [f"| `{state}` | {describe(traits)} |" for state, traits in machine.states.items()]
    return ["| state | what is true of it |", "|---|---|", *rows]


def _move_lines(lifecycle: Lifecycle) -> list[str]:
    rows = [
        f"| `{row.source}` | `{row.target}` | `{row.trigger}` | {row.guard or ''} | {row.severity} |"
        for row in lifecycle.transitions
    ]
    return ["| from | to | trigger | only when | severity |", "|---|---|---|---|---|", *rows]
