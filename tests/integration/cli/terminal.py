"""A real terminal for the tests: a shell in tmux that is typed into, and whose screen is looked at.

It waits for what the screen shows, and looks again whenever something was written to it. Every terminal has a tmux
server of its own, which ends with it.
"""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

HANG_S = 30  # no claim about speed: what has not happened by then will not happen
HISTORY_LINES = 5_000

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: apt-get install tmux")


class Terminal:
    """One window with a shell in it."""

    def __init__(self, socket: Path, changes: asyncio.StreamReader) -> None:
        self._socket = socket
        self._changes = changes
        self._commands = 0

    async def type(self, line: str) -> None:
        """Type a command, and press Enter."""
        self._commands += 1
        await self.tmux("send-keys", "-l", f"{line}; echo code {self._commands}: $?")
        await self.press("Enter")

    async def press(self, *keys: str) -> None:
        """Press keys as tmux names them: C-c, Enter."""
        await self.tmux("send-keys", *keys)

    async def resize(self, width: int, height: int) -> None:
        await self.tmux("resize-window", "-x", str(width), "-y", str(height))

    async def screen(self) -> str:
        return await self.tmux("capture-pane", "-p")

    async def everything(self) -> str:
        """What has left the screen at its top, and the screen."""
        return await self.tmux("capture-pane", "-p", "-S", "-")

    async def colours(self) -> str:
        """The screen with its escape codes."""
        return await self.tmux("capture-pane", "-p", "-e")

    async def shows(self, *parts: str, until: Callable[[str], bool] | None = None) -> str:
        """Wait until each part is on the screen, and until it is as asked for. Answers the screen."""
        seen = ""
        try:
            with anyio.fail_after(HANG_S):
                while True:
                    seen = await self.screen()
                    if all(part in seen for part in parts) and (until is None or until(seen)):
                        return seen
                    await self._changes.read(2**16)
        except TimeoutError:
            raise AssertionError(f"{parts} did not come; the screen shows:\n{seen}") from None

    async def exit_code(self) -> int:
        """Wait until the command that was typed last has ended."""
        ended = re.compile(rf"code {self._commands}: (\d+)$", re.MULTILINE)  # a shell may be slower than who types
        found = ended.search(await self.shows(until=lambda screen: ended.search(screen) is not None))
        return int(found[1]) if found else -1

    async def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return (await anyio.run_process(command)).stdout.decode()


@asynccontextmanager
async def terminal(folder: Path, width: int = 100, height: int = 30, **environment: str) -> AsyncIterator[Terminal]:
    """A shell in a folder, in a window of a size."""
    socket, pipe = folder / "tmux", folder / "changes"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # for writing too, so that it has no end
    with os.fdopen(descriptor, "rb") as file:
        transport, changes = await _read(file)
        opened = Terminal(socket, changes)
        commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        given = {"ENV": "", "LC_ALL": "C.UTF-8", "PATH": commands, **environment}
        shell = ["env", "-u", "COLUMNS", "-u", "LINES", *(f"{name}={value}" for name, value in given.items()), "sh"]
        try:
            await opened.tmux(
                "set-option", "-g", "history-limit", str(HISTORY_LINES), ";",
                "new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder), *shell,
            )  # fmt: skip
            await opened.tmux("pipe-pane", "-O", f"cat > '{pipe}'")
            await opened.type("PS1='$ '")
            await opened.exit_code()
            yield opened
        finally:
            await opened.tmux("kill-server")
            transport.close()


async def _read(file: Any) -> tuple[asyncio.BaseTransport, asyncio.StreamReader]:
    changes = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(changes), file
    )
    return transport, changes
