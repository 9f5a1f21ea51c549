"""`understudy run` as a process of its own: what it says is waited for line by line, and it ends with its test."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

HANG_S = 30  # no claim about speed: what has not happened by then will not happen
COMMAND = Path(sys.executable).with_name("understudy")
LINE_BYTES_MAX = 2**20
LOOKS_MAX = 3_000  # of a program, which a test that fails may have left behind


class Run:
    """One that goes on."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self.said: list[str] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def says(self, part: str) -> str:
        """Wait for a line that has this in it."""
        with anyio.fail_after(HANG_S):
            while True:
                line = (await self._stdout.receive_until(b"\n", LINE_BYTES_MAX)).decode()
                self.said.append(line)
                if part in line:
                    return line

    async def end(self) -> int:
        """Wait until it has ended, and what it still said has been heard."""
        rest = b""
        with anyio.fail_after(HANG_S):
            try:
                while True:
                    rest += await self._stdout.receive()
            except anyio.EndOfStream:
                self.said += rest.decode().splitlines()
        return await self.exit_code()

    async def exit_code(self) -> int:
        with anyio.fail_after(HANG_S):
            return await self._process.wait()

    async def stop_listening(self) -> None:
        await self._stdout.aclose()

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What it said, where that is JSON."""
        return [json.loads(line) for line in self.said]


@asynccontextmanager
async def running(folder: Path, *words: str, **environment: str) -> AsyncIterator[Run]:
    """A run in a folder, on the database `state.db` there. It is killed in the end, if it still lives."""
    command = [str(COMMAND), "run", *words, "--db", "state.db"]
    given = {**os.environ, **environment}
    async with await anyio.open_process(command, cwd=folder, env=given, stdin=subprocess.DEVNULL) as process:
        try:
            yield Run(process)
        finally:
            if process.returncode is None:
                process.kill()


def ask(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Another command in the same folder, about the same database, to its end."""
    given = {**os.environ, "UNDERSTUDY_DB": "state.db"}
    return subprocess.run(
        [COMMAND, *words], cwd=folder, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=HANG_S,
    )  # fmt: skip


def state_of(folder: Path, target: str) -> dict[str, Any]:
    """A task or a workstream as it is stored."""
    shown = json.loads(ask(folder, "show", target, "--json").stdout)
    found: dict[str, Any] = shown["task" if "/" in target else "workstream"]
    return found


def write(folder: Path, *lines: str) -> Path:
    path = folder / "work.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def wait_for(name: str) -> str:
    """A line of shell that goes on when there is such a file, or when its test must be over."""
    return f"i=0; until [ -e {name} ] || [ $((i+=1)) -gt {LOOKS_MAX} ]; do sleep 0.02; done"


def shell(key: str, script: str, more: str = "") -> str:
    """A task that runs a script."""
    return f"  - {{id: {key}, argv: [sh, -c, {json.dumps(script)}]{more}}}"


def living(marker: str) -> Sequence[int]:
    """The processes that have this in their command line."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if marker.encode() in words:
                found.append(int(entry.name))
    return found


async def until(path: Path) -> str:
    """Wait until a file is there and has something in it."""
    with anyio.fail_after(HANG_S):
        while not path.exists() or not path.read_text():
            await anyio.lowlevel.checkpoint()
    return path.read_text()
