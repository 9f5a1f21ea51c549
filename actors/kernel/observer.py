"""How the kernel is watched: an observer overrides the hooks it wants. Nobody listening costs nothing.

Hooks run in the middle of the kernel's work: they should be quick, and must not send messages.
One that raises is counted in `Observers.errors` and does not disturb the kernel.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from understudy.actors.kernel.contract import EndReason, Ref


class DeadReason(StrEnum):
    """Why a message found no reader."""

    STOPPED = "the actor has stopped"
    LATE = "the actor that started the work is gone"
    REFUSED = "it was refused, and cannot be handed back to another thread"


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that nobody will handle."""

    ref: Ref[Any]
    message: Any
    reason: DeadReason


class Poison(msgspec.Struct, frozen=True):
    """A message on which an actor crashed, with the crash. It is kept, and not delivered again.

    `message` is None when the actor crashed in a hook or while it was being rebuilt.
    """

    ref: Ref[Any]
    message: Any
    error: BaseException
    traceback: str
    at: float


class Observer:
    """Listens to the kernel. Every hook does nothing by default, and none may act upon the kernel."""

    __slots__ = ()

    def spawned(self, ref: Ref[Any]) -> None: ...
    def stopped(self, ref: Ref[Any], reason: EndReason) -> None: ...
    def crashed(self, poison: Poison) -> None: ...
    def restarted(self, ref: Ref[Any], error: BaseException) -> None: ...
    def quarantined(self, ref: Ref[Any], error: BaseException) -> None: ...
    def revived(self, ref: Ref[Any]) -> None: ...
    def dead_letter(self, letter: DeadLetter) -> None: ...
    def turn(self, ref: Ref[Any], depth: int, handled: int, seconds: float) -> None:
        """An actor had its turn: how many messages waited before it, how many it handled, how long it took."""


class Observers:
    """Several observers, told one after the other."""

    __slots__ = ("_observers", "errors", "listening")

    def __init__(self) -> None:
        self._observers: tuple[Observer, ...] = ()
        self.listening = False
        self.errors = 0

    def add(self, observer: Observer) -> None:
        self._observers = (*self._observers, observer)
        self.listening = True

    def remove(self, observer: Observer) -> None:
        self._observers = tuple(each for each in self._observers if each is not observer)
        self.listening = bool(self._observers)

    def tell(self, hook: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                hook(observer)
            except BaseException:  # the kernel is in the middle of its work: nothing may escape here
                self.errors += 1
