"""Which processes were started and not yet reaped, in a file, and the end of those that a crashed runtime has left.

A process is ended only where it is surely one of ours: by number, time and boot, or by its session and the
token in its environment. A number that the system has given to somebody else is left alone.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from understudy.adapters.folders import Folders
from understudy.adapters.tools.processes import Process, boot, everyone, has_in_environment, now
from understudy.adapters.tools.running import GIVE_UP_S, LOOK_S

TOKEN_VARIABLE: Final = "UNDERSTUDY_TOKEN"  # noqa: S105 - the name of one
LEDGER_BYTES_MAX: Final = 2**20
_STARTED, _ENDED = "+", "-"
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Orphan(msgspec.Struct, frozen=True):
    """A process that a runtime had started and did not live to reap."""

    pid: int
    noted_at: int  # as `processes.now` tells it
    boot: str
    token: str  # of the attempt


class ProcessLedger:
    """A line for each process that starts, and one for each that was reaped. One runtime writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._boot = boot()
        self._running: dict[int, str] = {}
        self._size = 0

    def note_start(self, pid: int, token: str) -> None:
        self._running[pid] = f"{_STARTED} {pid} {now()} {self._boot} {token}\n"
        self._append(self._running[pid])

    def note_end(self, pid: int) -> None:
        self._running.pop(pid, None)
        self._append(f"{_ENDED} {pid}\n")
        if self._size > LEDGER_BYTES_MAX:
            self._write_anew()

    def _append(self, line: str) -> None:
        # Opened for each line: it is as good as nothing beside starting a process, and nothing is held open.
        descriptor = os.open(self._path, _APPEND, 0o600)
        try:
            self._size += os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def _write_anew(self) -> None:
        text = "".join(self._running.values()).encode()
        fresh = self._path.with_suffix(".new")
        fresh.touch(0o600)
        fresh.write_bytes(text)
        fresh.replace(self._path)
        self._size = len(text)


async def end_orphans(folders: Folders, grace_s: float) -> list[Orphan]:
    """End what an earlier runtime has left, before anything is started: TERM, and KILL after the grace.

    Answers those of which something was still there.
    """
    try:
        text = folders.processes.read_text(errors="replace")
    except FileNotFoundError:
        return []
    left = list(_left(text))
    found = await _end(left, grace_s)
    folders.processes.unlink()
    shutil.rmtree(folders.outputs, ignore_errors=True)
    return found


def _left(text: str) -> Iterator[Orphan]:
    """Those without a line that tells their end, of this boot."""
    current = boot()
    running: dict[int, Orphan] = {}
    for line in text.splitlines():
        match line.split(" ", maxsplit=4):
            case [mark, pid, at, since, token] if mark == _STARTED and pid.isdigit() and at.isdigit():
                running[int(pid)] = Orphan(int(pid), int(at), since, token)
            case [mark, pid] if mark == _ENDED and pid.isdigit():
                running.pop(int(pid), None)
            case _:
                pass  # half a line: the system went down while it was written
    yield from (each for each in running.values() if each.boot == current)


async def _end(left: list[Orphan], grace_s: float) -> list[Orphan]:
    kill_at = time.monotonic() + grace_s
    found: dict[int, Orphan] = {}
    told: set[int] = set()
    while left and (members := _members(left)):
        is_over = time.monotonic() >= kill_at
        if is_over and time.monotonic() > kill_at + GIVE_UP_S:
            break
        for pid, orphan in members.items():
            found[orphan.pid] = orphan
            if is_over or pid not in told:
                told.add(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if is_over else signal.SIGTERM)
        await asyncio.sleep(LOOK_S)
    return list(found.values())


def _members(left: list[Orphan]) -> dict[int, Orphan]:
    """Who is alive of the sessions that were left."""
    by_session = {each.pid: each for each in left}
    there = [each for each in everyone() if each.session in by_session]
    # A leader that is still there, though dead, has the session's number: nobody else can have it.
    sure = {each.pid for each in there if each.pid in by_session and each.was_there(by_session[each.pid].noted_at)}
    return {
        each.pid: by_session[each.session]
        for each in there
        if each.is_alive and (each.session in sure or _is_by_token(each, by_session[each.session]))
    }


def _is_by_token(process: Process, orphan: Orphan) -> bool:
    return process.pid != orphan.pid and has_in_environment(process.pid, f"{TOKEN_VARIABLE}={orphan.token}")
