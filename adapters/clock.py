"""Clocks: the time of day, for what is written down, and the time in which the loop was able to act.

Nothing waits by the time of day: it can jump. What waits does so by `ResponsiveClock`, which stands still while the
loop is blocked or the whole process is stopped: so nobody is found too late for a time in which nobody could act.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

BEAT_S: Final = 0.25  # between two signs of life of the loop
STALL_S: Final = 1.0  # without one, the loop counts as blocked


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


class ResponsiveClock:
    """Monotonic time without the stalls. Between `start` and `stop` the loop proves that it lives."""

    def __init__(self, on_stall: Callable[[float], None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self.lost_s = 0.0  # given back in all
        self.beat_at = monotonic()
        self._monotonic = monotonic
        self._on_stall = on_stall
        self._handle: asyncio.TimerHandle | None = None

    def now(self) -> float:
        now = self._monotonic()
        if now - self.beat_at > STALL_S and self._handle is not None:
            self._give_back(now)
        return now - self.lost_s

    def start(self) -> None:
        self.beat_at = self._monotonic()
        self._handle = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _beat(self) -> None:
        now = self._monotonic()
        if now - self.beat_at > STALL_S:
            self._give_back(now)
        self.beat_at = now
        self._handle = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _give_back(self, now: float) -> None:
        stalled_s = now - self.beat_at - BEAT_S
        self.beat_at = now
        self.lost_s += stalled_s
        self._on_stall(stalled_s)
