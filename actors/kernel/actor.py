"""What an actor is to its author: state of its own, and a plain `receive` that changes it."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from understudy.actors.kernel.contract import Context
from understudy.actors.kernel.supervision import Supervision

M = TypeVar("M")


class Actor(ABC, Generic[M]):
    """Subclass it, give it `__slots__`, and spawn it with its first snapshot, or with nothing.

    The constructor only builds: it gets the snapshot, and has no context yet. Effects begin in
    `started`. Whatever escapes from a hook or from `receive` is a crash, and `supervision` decides.
    """

    __slots__ = ("context",)

    context: Context[M]

    mailbox_capacity: ClassVar[int] = 1_000
    supervision: ClassVar[Supervision] = Supervision()

    def started(self) -> None:
        """Called before the first message, of the first life and of every life after a crash."""

    @abstractmethod
    def receive(self, message: M) -> None:
        """Handle one message to its end. It is never called twice at the same time."""

    def stopped(self) -> None:
        """Called once at an orderly end, after the children have ended. Not after a kill or a crash."""
