"""The states of a cell, and what the kernel itself puts among an actor's messages."""

from enum import StrEnum
from typing import Any, Final

import msgspec

NOTHING: Final[Any] = object()  # None is a message, and a snapshot, like any other


class State(StrEnum):
    """READY and STOPPING: queued for a turn, or in it. LEAVING: stopping too, but the next step is a child's."""

    IDLE = "idle"
    READY = "ready"
    QUARANTINED = "quarantined"
    STOPPING = "stopping"
    LEAVING = "leaving"
    STOPPED = "stopped"


# Bound for the hot path: a global is cheaper to load than a member of an enum.
IDLE, READY, QUARANTINED, STOPPING, LEAVING, STOPPED = State


class Order(msgspec.Struct, frozen=True):
    """Start, stop, or fail with an error: in this life only, where one is given."""

    word: str
    error: BaseException | None = None
    life: int | None = None


START: Final = Order("start")
STOP: Final = Order("stop")
