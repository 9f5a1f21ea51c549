"""What the samples share: a tally, two actors, and the mailboxes of the peers that live on asyncio."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from understudy.actors.kernel import Actor, Ref

Box = tuple[Callable[[Any], None], Callable[[], Awaitable[Any]]]


class Tally:
    """Counts to a total, and says when it is reached."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.done = asyncio.Event()

    def count(self) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


class Player(Actor[Any]):
    __slots__ = ("left", "other")

    def __init__(self, rounds: int) -> None:
        self.left = rounds
        self.other: Ref[Any] | None = None

    def receive(self, message: Any) -> None:
        if self.other is None:
            self.other = message
        elif self.left:
            self.left -= 1
            self.other.tell(message)
        else:
            message.set()


def box_of(system: str) -> Box:
    if system == "asyncio.Queue":
        queue: asyncio.Queue[Any] = asyncio.Queue()
        return queue.put_nowait, queue.get
    sender, receiver = anyio.create_memory_object_stream[Any](math.inf)
    return sender.send_nowait, receiver.receive
