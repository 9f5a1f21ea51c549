"""Timers in the order in which they are due: arming and firing O(log n), disarming O(1).

A disarmed timer stays in the heap until it is due or swept. The heap is swept when it has doubled
since the last sweep, so that what is dead never outweighs the most that was alive.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

_SWEEP_MIN = 1_024  # below this the dead cost less than looking for them


class Alarm(Protocol):
    """What a timer queue holds."""

    @property
    def armed(self) -> bool: ...

    def fire(self) -> None: ...


class TimerQueue:
    __slots__ = ("_heap", "_serial", "_sweep_at")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Alarm]] = []
        self._serial = 0
        self._sweep_at = _SWEEP_MIN

    def __len__(self) -> int:
        """How many entries are held, the dead that nobody has swept yet among them."""
        return len(self._heap)

    def add(self, due: float, alarm: Alarm) -> None:
        """Hold an alarm. Alarms due at the same instant fire in the order in which they were added."""
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        self._serial += 1
        heappush(self._heap, (due, self._serial, alarm))

    def next_due(self) -> float | None:
        """When the next living alarm is due."""
        heap = self._heap
        while heap:
            due, _, alarm = heap[0]
            if alarm.armed:
                return due
            heappop(heap)
        return None

    def pop_due(self, now: float) -> tuple[float, Alarm] | None:
        """Take the next living alarm out, if it is due, with the instant at which it was due."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, _, alarm = heappop(heap)
            if alarm.armed:
                return due, alarm
        return None

    def armed(self) -> Iterator[Alarm]:
        """The living, in no particular order."""
        return (alarm for _, _, alarm in self._heap if alarm.armed)

    def _sweep(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].armed]
        heapify(self._heap)
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._heap))
