"""Standard output, which may go away while work goes on: a pipe that nobody reads any more, a terminal that was closed.

From then on what is said goes nowhere, and nobody who says something hears of an error.
"""

import os
from typing import TextIO


class Outlet:
    """As much of a file as is needed to write to."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def say(self, line: str) -> None:
        self.write(f"{line}\n")
        self.flush()

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:  # a terminal with few characters
            return self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
        except OSError:
            self._let_go()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._let_go()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def _let_go(self) -> None:
        # Not closed but led elsewhere: what is in its buffer would raise again when the interpreter ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
