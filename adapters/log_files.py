"""Reading the logs of attempts: their last lines, and what is added while somebody looks on.

A long log is replaced by a shorter one while it grows. Whoever follows it reads the old file to its end, and goes on
in the new one behind what was read last.
"""

import os
from pathlib import Path
from typing import Final

import anyio

POLL_S: Final = 0.2  # between two looks at files that may have grown
_REMEMBERED_BYTES: Final = 4_096  # of what was read last, to find the place in a new file
_BLOCK_BYTES: Final = 2**16


class LogTail:
    """One log, read line by line from its end or its beginning on. Close it."""

    def __init__(self, path: Path, lines: int | None = None) -> None:
        self._path = path
        self._file = path.open("rb")
        self._rest = b""
        self._last = b""
        if lines is not None:
            self._file.seek(_start_of_last(path, lines))

    def read_on(self) -> list[str]:
        """The whole lines that have come since."""
        found = self._read()
        if self._is_replaced():
            self._file.close()
            self._file = self._path.open("rb")
            self._file.seek(self._place_in_new())
            found += self._read()
        return found

    def close(self) -> None:
        self._file.close()

    def _read(self) -> list[str]:
        data = self._file.read()
        self._last = (self._last + data)[-_REMEMBERED_BYTES:]
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def _is_replaced(self) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def _place_in_new(self) -> int:
        text = self._path.read_bytes()
        found = text.rfind(self._last)
        return found + len(self._last) if found >= 0 else _start_of_last(self._path, 100)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; none where it is not there."""
    try:
        tail = LogTail(path, count)
    except OSError:
        return []
    try:
        return tail.read_on()
    finally:
        tail.close()


async def wait_for_more() -> None:
    await anyio.sleep(POLL_S)


def _start_of_last(path: Path, lines: int) -> int:
    """Where the last lines begin, looked for from the end."""
    start = end = path.stat().st_size
    text = b""
    with path.open("rb") as file:
        while start > 0 and text.count(b"\n") <= lines:
            start = max(0, start - _BLOCK_BYTES)
            file.seek(start)
            text = file.read(end - start)
    kept = text.split(b"\n")[-lines - 1 :] if lines else [b""]
    return end - len(b"\n".join(kept))
