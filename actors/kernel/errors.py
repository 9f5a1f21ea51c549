"""What can go wrong between actors. A refused send hands back the message that was not delivered."""

from typing import Any

from understudy.actors.errors import UnderstudyError


class KernelError(UnderstudyError):
    """Every error of the kernel."""


class RefusedError(KernelError):
    """A message was not taken. It is in `message`, its addressee's name in `actor`."""

    def __init__(self, actor: str, message: Any, why: str) -> None:
        super().__init__(f"{actor} did not take {type(message).__name__}: {why}")
        self.actor = actor
        self.message = message


class MailboxFull(RefusedError):
    """The mailbox holds as much as it may: try again later, or slow down."""

    def __init__(self, actor: str, message: Any, capacity: int) -> None:
        super().__init__(actor, message, f"its mailbox is full ({capacity} messages); send again later")
        self.capacity = capacity


class IntakeClosed(RefusedError):
    """The kernel is stopping and takes nothing from outside any more."""

    def __init__(self, actor: str, message: Any) -> None:
        super().__init__(actor, message, "the kernel is stopping; send it to the next one")


class ActorStopped(KernelError):
    """An answer will never come: the actor has stopped."""

    def __init__(self, actor: str) -> None:
        super().__init__(f"{actor} has stopped and will not answer")
        self.actor = actor


class ActorCrashed(KernelError):
    """An answer will never come: the actor crashed on the way. The crash is the `__cause__`."""

    def __init__(self, actor: str) -> None:
        super().__init__(f"{actor} crashed before it answered")
        self.actor = actor


class ChildCrashed(KernelError):
    """A child escalated its crash: its parent fails with this. The crash is the `__cause__`."""

    def __init__(self, parent: str, child: str) -> None:
        super().__init__(f"{child} escalated its crash to {parent}")
        self.child = child
