"""Where the kernel reads the time: a scale of seconds that only moves forward.

Neither clock knows the time of day, so a jump of the wall clock moves nothing.
"""

import time
from typing import Protocol

from understudy.actors.errors import InternalError


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since an arbitrary start. Never less than the answer before."""
        ...


class MonotonicClock:
    """The machine's own clock."""

    __slots__ = ()

    now = staticmethod(time.monotonic)


class VirtualClock:
    """A clock that stands still until it is moved."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def advance_to(self, instant: float) -> None:
        if instant < self._now:
            raise InternalError(f"the virtual clock at {self._now} was asked to go back to {instant}")
        self._now = instant
