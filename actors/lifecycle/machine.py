"""A lifecycle as one literal table, and everything that follows from it: what is legal, and why a move is not.

A machine knows nothing of records or stores. It answers one question, whether a record in this state may
move to that one for this reason, and says what would be allowed where it may not.
"""

from collections.abc import Iterable, Mapping
from enum import Flag, StrEnum, auto
from typing import Final

import msgspec

from understudy.actors.errors import UnderstudyError

START: Final = "*"  # where a record's life begins


class Word(StrEnum):
    """A state or a trigger. Hashes as the plain string that it is: an enum's own hash is a call into Python."""

    __hash__ = str.__hash__


class Entity(Word):
    """What has a lifecycle."""

    TASK = "task"
    WORKSTREAM = "workstream"
    WORKER = "worker"
    BREAKER = "breaker"


class Severity(Word):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Trait(Flag):
    """What is true of a record while it is in a state."""

    NONE = 0
    TERMINAL = auto()  # never changes again
    ACTIVE = auto()  # somebody works on it
    WAITING = auto()  # something has to happen first
    HOLDS_WORKER = auto()
    SATISFIES = auto()  # what depends on it may go on
    ERROR = auto()  # something has gone wrong


class Move(msgspec.Struct, frozen=True):
    """One row of the table. `guard` names the condition under which the move is made."""

    source: str
    target: str
    triggers: tuple[str, ...]
    guard: str | None = None
    severity: Severity = Severity.INFO


class InvalidTransition(UnderstudyError):
    """A record was asked to make a move that its lifecycle does not have. Nothing has changed."""

    def __init__(
        self, entity: str, record: str, source: str, trigger: str, target: str | None, allowed: tuple[Move, ...]
    ):
        self.entity, self.record, self.source, self.trigger, self.target = entity, record, source, trigger, target
        self.allowed = allowed
        tried = f"{trigger} -> {target}" if target else trigger
        choices = [f"{trigger} -> {move.target}" for move in allowed for trigger in move.triggers]
        what_next = (
            f"it allows {', '.join(choices)}" if choices else "it is terminal: reset it to start a new generation"
        )
        super().__init__(f"{entity} {record} in state {source} does not allow {tried}; {what_next}")


class Machine:
    """One entity's lifecycle."""

    def __init__(
        self,
        entity: Entity,
        states: Mapping[str, Trait],
        initial: str,
        moves: Iterable[Move],
    ) -> None:
        self.entity = entity
        self.states: dict[str, Trait] = dict(states)
        self.initial = initial
        self.moves = tuple(moves)
        self._legal = {(move.source, trigger, move.target): move for move in self.moves for trigger in move.triggers}
        self._by_trigger: dict[tuple[str, str], tuple[Move, ...]] = {}
        for source, trigger, target in self._legal:
            found = self._by_trigger.get((source, trigger), ())
            self._by_trigger[source, trigger] = (*found, self._legal[source, trigger, target])

    @property
    def triggers(self) -> tuple[str, ...]:
        """Every trigger, in the order of the table."""
        return tuple(dict.fromkeys(trigger for move in self.moves for trigger in move.triggers))

    def having(self, trait: Trait) -> frozenset[str]:
        """The states that have a trait."""
        return frozenset(state for state, traits in self.states.items() if trait in traits)

    def is_terminal(self, state: str) -> bool:
        return Trait.TERMINAL in self.states[state]

    def leaving(self, state: str) -> tuple[Move, ...]:
        """The moves out of a state."""
        return tuple(move for move in self.moves if move.source == state)

    def check(self, record: str, source: str, trigger: str, target: str | None = None) -> Move:
        """Find the move, or raise `InvalidTransition`. Where a trigger can lead to two states, the target decides."""
        if target is not None:
            move = self._legal.get((source, trigger, target))
            if move is not None:
                return move
        else:
            found = self._by_trigger.get((source, trigger), ())
            if len(found) == 1:
                return found[0]
        raise InvalidTransition(self.entity, record, source, trigger, target, self.leaving(source))
