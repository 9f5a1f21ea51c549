"""The audit trail as a file that other tools can follow: one line of JSON for each move.

The file follows the trail in the store: each line carries its sequence, so that after a crash it goes on behind the
last whole line, without a gap and without a double. A full file is put aside under the number of its first line.
"""

import os
from pathlib import Path
from typing import Any, Final

import msgspec

from understudy.actors.lifecycle.events import to_event
from understudy.actors.ports.store import Store, StoreRefused

ROTATE_BYTES: Final = 64 * 2**20
_TAIL_BYTES: Final = 1 * 2**20  # longer than any line
_encode: Final = msgspec.json.Encoder().encode


class TransitionLog:
    """Call `catch_up` whenever something was committed; it is cheap when nothing was."""

    def __init__(self, path: str | Path, store: Store, *, rotate_bytes: int = ROTATE_BYTES) -> None:
        self.path = Path(path)
        self._store = store
        self._rotate_bytes = rotate_bytes
        self._sequence: int | None = None

    async def catch_up(self) -> int:
        """Write the moves that the file does not have yet. Answers how many."""
        if self._sequence is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._sequence = self._resume()
        written = 0
        while moves := await self._store.trail(after=self._sequence):
            if self.path.exists() and self.path.stat().st_size >= self._rotate_bytes:
                self._put_aside()
            with self.path.open("ab") as file:
                file.writelines(_encode(to_event(move)) + b"\n" for move in moves)
            self._sequence = moves[-1].sequence
            written += len(moves)
        return written

    def _resume(self) -> int:
        """The sequence of the last whole line. A line that was cut is removed: it will be written again."""
        if self.path.exists():
            _drop_cut_line(self.path)
        for path in (self.path, *reversed(self._set_aside())):
            last = _last_line(path)
            if last:
                return _sequence_of(path, last)
        return 0

    def _put_aside(self) -> None:
        with self.path.open("rb") as file:
            first = _sequence_of(self.path, file.readline())
        self.path.rename(self.path.with_name(f"{self.path.stem}.{first:012}{self.path.suffix}"))

    def _set_aside(self) -> list[Path]:
        return sorted(self.path.parent.glob(f"{self.path.stem}.*{self.path.suffix}"))


def _drop_cut_line(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = max(0, size - _TAIL_BYTES)
        file.seek(start)
        tail = file.read()
    if tail and not tail.endswith(b"\n"):
        os.truncate(path, start + tail.rfind(b"\n") + 1)


def _last_line(path: Path) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = file.read().splitlines()
    return lines[-1] if lines else b""


def _sequence_of(path: Path, line: bytes) -> int:
    try:
        event: Any = msgspec.json.decode(line)
        return int(event["metadata"]["sequence"])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError):
        raise StoreRefused(f"{path} cannot be followed on: its last line is not ours; move the file away") from None
