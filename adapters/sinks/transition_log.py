"""The audit trail as a file that other tools can follow: one line of JSON for each move.

The file follows the trail in the store: each line carries its sequence, so that after a crash it goes on behind the
last whole line, without a gap and without a double. A full file is put aside under the number of its first line.
"""

import os
import re
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from understudy.actors.lifecycle.events import to_event
from understudy.actors.ports.store import Store, StoreRefused

ROTATE_BYTES: Final = 64 * 2**20
_BLOCK_BYTES: Final = 64 * 2**10
_encode: Final = msgspec.json.Encoder().encode


class TransitionLog:
    """Call `catch_up` whenever something was committed; it is cheap when nothing was."""

    def __init__(self, path: str | Path, store: Store, *, rotate_bytes: int = ROTATE_BYTES) -> None:
        self.path = Path(path)
        self._store = store
        self._rotate_bytes = rotate_bytes
        self._sequence: int | None = None
        self._lock = anyio.Lock()

    async def catch_up(self) -> int:
        """Write the moves that the file does not have yet. Answers how many."""
        async with self._lock:
            try:
                return await self._catch_up()
            except BaseException:
                self._sequence = None  # look at the file again: it may end in half a line
                raise

    async def _catch_up(self) -> int:
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
            os.truncate(self.path, _end_of_whole_lines(self.path))
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
        name = re.compile(rf"{re.escape(self.path.stem)}\.\d{{12}}{re.escape(self.path.suffix)}")
        return sorted(path for path in self.path.parent.iterdir() if name.fullmatch(path.name))


def _end_of_whole_lines(path: Path, before: int | None = None) -> int:
    """Where the last whole line ends: behind the last line break, looked for from the end."""
    end = path.stat().st_size if before is None else before
    with path.open("rb") as file:
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


def _last_line(path: Path) -> bytes:
    if not path.exists() or not (end := _end_of_whole_lines(path)):
        return b""
    start = _end_of_whole_lines(path, end - 1)
    with path.open("rb") as file:
        file.seek(start)
        return file.read(end - start)


def _sequence_of(path: Path, line: bytes) -> int:
    try:
        event: Any = msgspec.json.decode(line)
        return int(event["metadata"]["sequence"])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, RecursionError):
        raise StoreRefused(f"{path} cannot be followed on: its last line is not ours; move the file away") from None
