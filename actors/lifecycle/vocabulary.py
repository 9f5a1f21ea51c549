"""How a record and its history read in the words of a document that describes the same thing otherwise.

A document has a state machine of its own. A canonical state reads as one of its states, and a canonical
move as a path of at most three of its moves: none where both ends read alike. Where the documents contradict each
other one must give way; such a move is `reconciled`, with the reason. Nothing else may differ.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from understudy.actors.lifecycle.machine import START

PATH_MAX: Final = 3  # a move of ours may stand for this many of a document's
HAS_RUN: Final = frozenset({"busy", "paused", "unresponsive"})  # a worker that was in one of these is not new any more


class ByPrevious(msgspec.Struct, frozen=True):
    """Reads differently according to the state that the record was in before."""

    otherwise: str
    after: dict[str, str]


class ByRun(msgspec.Struct, frozen=True):
    """Reads differently once the worker is not new any more."""

    fresh: str
    has_run: str


Reading = str | ByPrevious | ByRun


class Said(msgspec.Struct, frozen=True):
    """One of the document's moves. `implied` ones lie between two states that a record of ours rests in."""

    source: str | None
    target: str
    implied: bool = False
    reconciled: str | None = None


class Vocabulary(msgspec.Struct, frozen=True):
    """One entity in one document: its own moves, and how our states read."""

    moves: dict[str, tuple[str, ...]]
    words: dict[str, Reading]
    reconciled: dict[tuple[str, str], str] = {}
    passed_through: frozenset[str] = frozenset()  # states that no record of ours rests in

    @property
    def states(self) -> tuple[str, ...]:
        ends = (state for source, targets in self.moves.items() for state in (source, *targets))
        return tuple(dict.fromkeys(ends))

    @property
    def edges(self) -> frozenset[tuple[str, str]]:
        return frozenset((source, target) for source, targets in self.moves.items() for target in targets)

    def read(self, state: str, previous: str | None = None, has_run: bool = False) -> str:
        """The document's word for a record in `state`."""
        reading = self.words[state]
        if isinstance(reading, ByPrevious):
            return reading.after.get(previous or "", reading.otherwise)
        if isinstance(reading, ByRun):
            return reading.has_run if has_run else reading.fresh
        return reading

    def read_moves(self, moves: Iterable[tuple[str, str]]) -> list[Said]:
        """A record's whole life, as (from, to) in our words, told as the document would tell it."""
        told: list[Said] = []
        previous: str | None = None
        has_run = False
        for source, target in moves:
            ran_before, has_run = has_run, has_run or target in HAS_RUN
            there = self.read(target, source, has_run)
            if source == START:
                told.append(Said(None, there))
            else:
                here = self.read(source, previous, ran_before)
                told += self._tell(source, target, here, there)
            previous = source
        return told

    def path(self, here: str, there: str) -> tuple[str, ...] | None:
        """The shortest way from one of the document's states to another, both ends included, if there is one."""
        if here == there:
            return (here,)
        ways: dict[str, tuple[str, ...]] = {here: (here,)}
        for _ in range(PATH_MAX):
            found: dict[str, tuple[str, ...]] = {}
            for state, way in ways.items():
                for target in self.moves.get(state, ()):
                    found.setdefault(target, (*way, target))
            if there in found:
                return found[there]
            ways = found
        return None

    def _tell(self, source: str, target: str, here: str, there: str) -> list[Said]:
        way = self.path(here, there)
        if way is None:
            return [Said(here, there, reconciled=self.reconciled[source, target])]
        last = len(way) - 2
        return [Said(way[step], way[step + 1], implied=step < last) for step in range(last + 1)]
