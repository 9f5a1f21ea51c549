"""What the system tells of processes: who is there, in which session, and since when.

A number alone names nobody, for the system gives it out again: a number and a time do. Where there is no /proc it is
`ps` that is asked, which tells the time in seconds.
"""

import datetime
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

_PROC: Final = Path("/proc")
_HAS_PROC: Final = (_PROC / "self" / "stat").exists()
_BOOT: Final = _PROC / "sys" / "kernel" / "random" / "boot_id"
_PS: Final = ("ps", "-A", "-o", "pid=,stat=,pgid=,lstart=")
_PS_SLACK_S: Final = 2  # by which the clock and what `ps` says may differ
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_DEAD: Final = "ZX"


class Process(msgspec.Struct, frozen=True, gc=False):
    """One process, as it was when it was looked at."""

    pid: int
    state: str  # one letter
    group: int
    session: int
    started: int  # in ticks since the system's start, or in seconds since 1970 where `ps` is asked

    @property
    def is_alive(self) -> bool:
        """Whether it can still do anything: one that only waits to be reaped cannot."""
        return self.state not in _DEAD

    def was_there(self, at: int) -> bool:
        """Whether it had started by then. If so it is who had its number then, for nobody has it twice."""
        return self.started <= (at if _HAS_PROC else at + _PS_SLACK_S)


def now() -> int:
    """The present, as the start of a process would tell it. No process is asked: that takes as long as to start one."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S) if _HAS_PROC else int(time.time())


def look_at(pid: int) -> Process | None:
    """A process, from /proc."""
    try:
        # The name of the program stands in brackets, and may hold anything.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return None
    return Process(pid, fields[0].decode(), int(fields[2]), int(fields[3]), int(fields[19]))


def everyone() -> Iterator[Process]:
    if not _HAS_PROC:
        yield from ask_ps()
        return
    for each in _PROC.iterdir():
        if each.name.isdigit() and (found := look_at(int(each.name))) is not None:
            yield found


def ask_ps() -> Iterator[Process]:
    """Everyone, where there is no /proc. It does not tell of sessions: their first group stands for them."""
    environment = {**os.environ, "LC_ALL": "C"}
    listed = subprocess.run(_PS, capture_output=True, text=True, env=environment, check=True).stdout  # noqa: S603
    for line in listed.splitlines():
        pid, state, group, began = line.split(maxsplit=3)
        at = datetime.datetime.strptime(began.strip(), "%a %b %d %H:%M:%S %Y").astimezone()
        yield Process(int(pid), state[0], int(group), int(group), int(at.timestamp()))


def is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
        is_there = True
    except ProcessLookupError:
        return False
    except PermissionError:  # it may not be signalled; on some systems so where all have died
        is_there = False
    # The dead are counted until somebody reaps them, which may be never.
    return any(each.group == group and each.is_alive for each in everyone()) if _HAS_PROC else is_there


def has_in_environment(pid: int, entry: str) -> bool:
    """Whether a process was started with this `NAME=value`. No, where nobody says so."""
    try:
        return entry.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def boot() -> str:
    """Stands for the time since the system's start."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "unknown"


def name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"
