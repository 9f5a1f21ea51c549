"""A desk: a socket beside a database, where other processes of the same user hand in a line and get one back.

Only its owner can open it: it lies in a folder that nobody else may enter. A line that is too long is not read.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Final, Self

from understudy.actors.errors import UnderstudyError
from understudy.adapters.folders import make_private

NAME: Final = "desk"
LINE_BYTES_MAX: Final = 2 * 2**20  # a result of the largest size, and what is said about it
PATH_BYTES_MAX: Final = 100  # of a socket, which the system limits


class DeskClosed(UnderstudyError):
    """Nobody is at the desk."""


class Desk:
    """Open while it is used with `async with`."""

    def __init__(self, folder: Path, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._folder = folder
        self._answer = answer
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        make_private(self._folder)
        (self._folder / NAME).unlink(missing_ok=True)  # of a process that was killed: the database is ours now
        with _reachable(self._folder) as path:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=LINE_BYTES_MAX)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            (self._folder / NAME).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, ValueError):  # who asked is gone, or asked too much
                line = await reader.readline()
                if line:
                    writer.write(await self._answer(line) + b"\n")
                    await writer.drain()
        finally:
            writer.close()


async def hand_in(folder: Path, line: bytes) -> bytes:
    """Hand in a line, and wait for the answer. Raises `DeskClosed`."""
    try:
        with _reachable(folder) as path:
            reader, writer = await asyncio.open_unix_connection(path, limit=LINE_BYTES_MAX)
    except OSError as error:
        raise DeskClosed(f"nobody answers at {folder / NAME}: {error.strerror}") from None
    try:
        writer.write(line + b"\n")
        answer = await reader.readline()
    except (OSError, ValueError) as error:
        raise DeskClosed(f"the answer was cut off: {error}") from None
    finally:
        writer.close()
    if not answer:
        raise DeskClosed("the process ended before it had answered")
    return answer


@contextlib.contextmanager
def _reachable(folder: Path) -> Generator[str]:
    """The desk's path, by another way where it is too long for a socket."""
    path = folder / NAME
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield str(path)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{NAME}"
    finally:
        os.close(descriptor)
