"""The log of one attempt: a file of lines that others may follow while it grows, and that never grows without end.

Of a long one the head and the newest tail are kept, with a line between them that says how much is missing. Where
nothing was written there is no file. What comes here holds no secrets.
"""

import os
from pathlib import Path
from typing import Final

from understudy.adapters.folders import make_private
from understudy.adapters.tools.sizes import left_out

HEAD_BYTES: Final = 2**19
TAIL_BYTES: Final = 2**19


class AttemptLog:
    def __init__(self, path: Path, *, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._path = path
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._descriptor: int | None = None
        self._size = 0
        self._head: bytes | None = None  # once the log has been shortened
        self._missing = 0

    def write(self, lines: bytes) -> None:
        """Add lines, each with its end. They are in the file when this returns."""
        if self._descriptor is None:
            self._descriptor = _create(self._path)
        _write_all(self._descriptor, lines)
        self._size += len(lines)
        if self._size > self._head_bytes + 2 * self._tail_bytes:  # it is written anew only once in a tail's length
            self._shorten(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            try:
                if self._size > self._head_bytes + self._tail_bytes:
                    self._shorten(self._descriptor)
            finally:
                os.close(self._descriptor)
                self._descriptor = None

    def _shorten(self, descriptor: int) -> None:
        marker_bytes = 0 if self._head is None else len(self._marker())
        if self._head is None:
            head = os.pread(descriptor, self._head_bytes, 0)
            self._head = head[: head.rfind(b"\n") + 1]
        tail = os.pread(descriptor, self._tail_bytes, self._size - self._tail_bytes)
        tail = tail[tail.find(b"\n") + 1 :]
        self._missing += self._size - marker_bytes - len(self._head) - len(tail)
        self._replace(self._head + self._marker() + tail)

    def _marker(self) -> bytes:
        return f"{left_out(self._missing)}\n".encode()

    def _replace(self, text: bytes) -> None:
        """Whoever reads it finds the old file or the new one."""
        fresh = self._path.with_suffix(".new")
        descriptor = _create(fresh)
        try:
            _write_all(descriptor, text)
            fresh.replace(self._path)
        except BaseException:
            os.close(descriptor)
            raise
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._size = descriptor, len(text)


def _create(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_private(path.parent)
        return os.open(path, flags, 0o600)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
