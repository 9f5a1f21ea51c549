"""A thread that watches the loop: it says what blocks it while it does, with the code that is to blame.

Giving the lost time back is the clock's; a thread would come too late for that.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from math import inf
from typing import Final

from understudy.adapters.clock import STALL_S, ResponsiveClock

LOOK_S: Final = 0.25
STACK_LINES: Final = 12


class Watchdog:
    """Start it on the loop's thread. `report` is called on the watchdog's own, once for each stall."""

    def __init__(self, clock: ResponsiveClock, report: Callable[[float, str], None]) -> None:
        self._clock = clock
        self._report = report
        self._loop_thread = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="understudy watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        reported_at, looked_at = -inf, time.monotonic()
        while not self._over.wait(LOOK_S):
            now, beat_at = time.monotonic(), self._clock.beat_at
            was_stopped = now - looked_at > STALL_S  # this thread too: the whole process was, and nobody is to blame
            looked_at = now
            if now - beat_at > STALL_S - LOOK_S and beat_at > reported_at and not was_stopped:
                reported_at = beat_at
                self._report(now - beat_at, self._stack())

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]  # it has no other name
        lines = [] if frame is None else traceback.format_stack(frame)
        return "".join(lines[-STACK_LINES:])
