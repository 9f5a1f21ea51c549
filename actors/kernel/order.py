"""The states of a cell, and what the kernel itself puts among an actor's messages."""

from enum import StrEnum
from typing import Any, Final

import msgspec

NOTHING: Final[Any] = object()  # None is a message, and a snapshot, like any other


class State(StrEnum):
    IDLE = "idle"
    READY = "ready"
    STOPPING = "stopping"
    QUARANTINED = "quarantined"
    STOPPED = "stopped"


# Bound for the hot path: a global is cheaper to load than a member of an enum.
IDLE, READY, STOPPING, QUARANTINED, STOPPED = State


class Order(msgspec.Struct, frozen=True):
    """Start, stop, or fail with an error."""

    error: BaseException | None = None


START: Final = Order()
STOP: Final = Order()
