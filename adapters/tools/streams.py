"""What a program says on stdout and stderr: cut into lines, rid of secrets, logged, and kept in part.

Of each stream its head and its tail are kept, so that memory stays bounded. Nothing is handed on before it is known
that no secret has begun in it: a line is, as it is whole, and a very long one but for its last bytes.
"""

from collections.abc import Callable
from typing import Final

from understudy.adapters.tools.attempt_log import AttemptLog
from understudy.adapters.tools.secrets import Secrets
from understudy.adapters.tools.sizes import left_out

LINE_BYTES_MAX: Final = 2**16
KEPT_BYTES: Final = 2**15  # of the head of a stream, and of its tail
_CHARACTER_BYTES_MAX: Final = 4


class Excerpt:
    """The head and the tail of a stream."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if (room := KEPT_BYTES - len(self._head)) > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 4 * KEPT_BYTES:
            del self._tail[:-KEPT_BYTES]

    def text(self) -> str:
        missing = self.size - 2 * KEPT_BYTES
        if missing <= 0:
            return (self._head + self._tail).decode(errors="replace")
        tail = self._tail[-KEPT_BYTES:]
        return f"{self._head.decode(errors='replace')}\n{left_out(missing)}\n{tail.decode(errors='replace')}"


class Stream:
    """One of the two."""

    def __init__(self, secrets: Secrets | None, log: AttemptLog, tell: Callable[[str], None]) -> None:
        self.kept = Excerpt()
        self._secrets = secrets
        self._log = log
        self._tell = tell
        self._rest = bytearray()  # a line that has not ended
        self._held_bytes = LINE_BYTES_MAX + (secrets.bytes_max if secrets else 0)

    def feed(self, data: bytes) -> None:
        begun = len(self._rest)
        self._rest += data
        if end := self._rest.rfind(b"\n", begun) + 1:
            self._hand_on(end)
        if len(self._rest) > self._held_bytes and (place := self._place_to_cut()):
            self._hand_on(place)

    def end(self) -> None:
        if self._rest:
            self._hand_on(len(self._rest))

    def _place_to_cut(self) -> int:
        place = len(self._rest) - _CHARACTER_BYTES_MAX
        if self._secrets:
            place = min(place, self._secrets.place_to_cut(self._rest))
        for start in range(place, max(0, place - _CHARACTER_BYTES_MAX), -1):
            if self._rest[start] & 0xC0 != 0x80:  # here a character begins
                return start
        return place

    def _hand_on(self, end: int) -> None:
        data = bytes(self._rest[:end])
        del self._rest[:end]
        if self._secrets:
            data = self._secrets.hide_bytes(data)
        self.kept.add(data)
        lines = data.removesuffix(b"\n").decode(errors="replace").split("\n")
        if len(data) > LINE_BYTES_MAX and max(map(len, lines)) > LINE_BYTES_MAX // _CHARACTER_BYTES_MAX:
            lines = [piece for line in lines for piece in _pieces(line)]
            data = "\n".join(lines).encode()
        if data:
            self._log.write(data if data.endswith(b"\n") else data + b"\n")
        for line in lines:
            self._tell(line)


def _pieces(line: str) -> list[str]:
    """A line of a bounded size, or more of them. It holds no secrets, so that it may be cut anywhere."""
    length = LINE_BYTES_MAX if line.isascii() else LINE_BYTES_MAX // _CHARACTER_BYTES_MAX
    return [line[start : start + length] for start in range(0, len(line), length)] or [""]
