"""What the samples share: a tally, two actors, and the mailboxes of the peers that live on asyncio."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from understudy.actors.kernel import Actor, LoopKernel, Ref

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


class Player(Actor[asyncio.Event]):
    """Plays a ball back to the other one of its pair, which is complete when it starts."""

    __slots__ = ("left", "other", "pair")

    def __init__(self, snapshot: tuple[int, list[Ref[asyncio.Event]]]) -> None:
        self.left, self.pair = snapshot
        self.other: Ref[asyncio.Event]

    def started(self) -> None:
        self.other = next(other for other in self.pair if other is not self.context)

    def receive(self, message: asyncio.Event) -> None:
        self.left -= 1
        if self.left:
            self.other.tell(message)
        else:
            message.set()


def spawn_pair(kernel: LoopKernel, rounds: int) -> Ref[asyncio.Event]:
    """Two players. Answers with the one to throw the ball to."""
    pair: list[Ref[asyncio.Event]] = []
    pair += (kernel.spawn(Player, (rounds, pair)), kernel.spawn(Player, (rounds, pair)))
    return pair[0]


def box_of(system: str) -> Box:
    if system == "asyncio.Queue":
        queue: asyncio.Queue[Any] = asyncio.Queue()
        return queue.put_nowait, queue.get
    sender, receiver = anyio.create_memory_object_stream[Any](math.inf)
    return sender.send_nowait, receiver.receive
