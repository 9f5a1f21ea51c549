"""What a kernel did, line by line: to compare two runs, and to read the last steps before a fault."""

import hashlib
from collections import deque
from typing import Any, Final

from understudy.actors.kernel.clock import Clock
from understudy.actors.kernel.contract import EndReason, Ref
from understudy.actors.kernel.observer import DeadLetter, Observer, Poison

LINES_KEPT: Final = 1_000


class Trace(Observer):
    """Keeps the last lines, and a digest of all. Two runs with the same digest took the same steps.

    Lines name types, not values: the text of a value may hold an address, which is another in every run.
    """

    __slots__ = ("_clock", "_hash", "count", "lines")

    def __init__(self, clock: Clock, lines_kept: int | None = LINES_KEPT) -> None:
        self._clock = clock
        self._hash = hashlib.blake2b(digest_size=16)
        self.lines: deque[str] = deque(maxlen=lines_kept)
        self.count = 0

    def digest(self) -> str:
        return self._hash.hexdigest()

    def spawned(self, ref: Ref[Any]) -> None:
        self._write("spawned", ref)

    def stopped(self, ref: Ref[Any], reason: EndReason) -> None:
        self._write("stopped", ref, reason.value)

    def crashed(self, poison: Poison) -> None:
        self._write("crashed", poison.ref, f"{type(poison.error).__name__} on {type(poison.message).__name__}")

    def restarted(self, ref: Ref[Any], error: BaseException) -> None:
        self._write("restarted", ref)

    def quarantined(self, ref: Ref[Any], error: BaseException) -> None:
        self._write("quarantined", ref)

    def revived(self, ref: Ref[Any]) -> None:
        self._write("revived", ref)

    def dead_letter(self, letter: DeadLetter) -> None:
        self._write("dead letter", letter.ref, f"{type(letter.message).__name__}: {letter.reason.value}")

    def turn(self, ref: Ref[Any], depth: int, handled: int, seconds: float) -> None:
        self._write("turn", ref, f"{handled} of {depth}")

    def _write(self, event: str, ref: Ref[Any], detail: str = "") -> None:
        line = f"{self._clock.now():.9f} {event} {ref.name} {detail}".rstrip()
        self.count += 1
        self.lines.append(line)
        self._hash.update(line.encode() + b"\n")
