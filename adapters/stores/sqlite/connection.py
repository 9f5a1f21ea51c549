"""A SQLite connection on aiosqlite's thread, where a whole transaction is one call that is never cut in half.

aiosqlite has no public way to run one function on its thread; its `_execute` is used here and nowhere else. A
cancelled caller waits for the call to end before it is cancelled, so that it knows what became of it.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite

from understudy.actors.kernel.uncut import uncut
from understudy.actors.ports.store import StoreRefused

T = TypeVar("T")


class Connection:
    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._path = path
        self._read_only = read_only
        self._connection: aiosqlite.Connection | None = None
        self._pid = os.getpid()

    async def open(self, *pragmas: str) -> None:
        where = uri_of(self._path, "ro" if self._read_only else "rwc")
        self._connection = await aiosqlite.connect(where, uri=True, isolation_level=None, cached_statements=256)

        def prepare(connection: sqlite3.Connection) -> None:
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")

        await self.run(prepare)

    async def close(self) -> None:
        """Close and join the thread: one that is left open keeps the process from exiting."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with the connection, on its thread."""
        if self._connection is None:
            raise StoreRefused(f"{self._path} is not open")
        if self._pid != os.getpid():
            raise StoreRefused(f"{self._path} was opened by pid {self._pid}; open it again after a fork")
        connection = cast("Any", self._connection)
        call: asyncio.Future[T] = asyncio.ensure_future(connection._execute(function, connection._conn))
        return await uncut(call)


def uri_of(path: Path, mode: str) -> str:
    """How SQLite is told to open a file: `ro` cannot change it, `rwc` makes it."""
    return f"{path.absolute().as_uri()}?mode={mode}"
