"""One process, run from its start to its end, in a session and a group of its own. No shell.

Whatever happens, when this is over the process has been reaped and nothing of its group runs any more: who is left
gets TERM, and KILL after a grace. Output is handed on as it comes and not kept.
"""

import asyncio
import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from understudy.actors.errors import UnderstudyError
from understudy.actors.kernel.uncut import uncut
from understudy.adapters.tools.processes import is_group_alive, name_signal

Heard = Callable[[bytes, bool], None]  # a piece of output, and whether it is of stderr
READ_BYTES: Final = 2**16
DRAIN_BYTES_MAX: Final = 2**20  # as much as a pipe can hold
LINGER_S: Final = 0.2  # that what the process leaves behind has to end by itself: the last one in a pipeline needs it
LOOK_S: Final = 0.02
GIVE_UP_S: Final = 2.0  # after KILL: what is still there is beyond us
_FOR_A_WHILE: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY, errno.ENOSPC})


class NotStarted(UnderstudyError):
    """A process that did not come to be. It is `permanent` unless the system only lacked something for a while."""

    def __init__(self, why: str, *, permanent: bool = True) -> None:
        super().__init__(why)
        self.permanent = permanent


async def run_to_end(
    argv: Sequence[str],
    *,
    directory: Path,
    env: dict[str, str],
    stdin: str | None = None,
    grace_s: float,
    heard: Heard,
    began: Callable[[int], None] | None = None,
) -> int:
    """Run a program and answer its exit code, which is negative for a signal. Raises `NotStarted`.

    To cancel it ends the whole group. What `heard` or `began` raise does so as well, and is raised afterwards.
    """
    process = _start(argv, directory, env, has_input=stdin is not None)
    try:
        running = _Running(process, stdin, grace_s, heard)
    except BaseException:  # the system has no descriptor left for it
        os.killpg(process.pid, signal.SIGKILL)
        with process:
            raise
    if began is not None:
        try:
            began(process.pid)
        except Exception as error:  # the process is there, and has to be ended first
            running.fail(error)
    return await running.wait()


def describe_end(code: int) -> str:
    """How a process ended, by its exit code."""
    return f"exit code {code}" if code >= 0 else f"killed by {name_signal(-code)}"


class _Running:
    """A process that was started. All of this happens on the loop."""

    def __init__(self, process: "subprocess.Popen[bytes]", stdin: str | None, grace_s: float, heard: Heard) -> None:
        self._process = process
        self._grace_s = grace_s
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._error: Exception | None = None
        self._linger_until = 0.0
        self._kill_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watch = _open_watch(process.pid)
        self._loop.add_reader(self._watch, self._leader_ended)
        self._outputs = [
            _Output(self._loop, pipe, heard, is_stderr, self.fail)
            for pipe, is_stderr in ((process.stdout, False), (process.stderr, True))
            if pipe is not None
        ]
        self._input = None if process.stdin is None else _Input(self._loop, process.stdin, stdin or "")

    async def wait(self) -> int:
        await uncut(self._gone, self._tell_to_end)
        if self._error is not None:
            raise self._error
        return self._process.returncode

    def fail(self, error: Exception) -> None:
        """There is nobody any more whom its output could be handed to."""
        self._error = self._error or error
        self._tell_to_end()

    def _tell_to_end(self) -> None:
        """TERM now, KILL when the grace is over."""
        if self._kill_at is None and not self._gone.done():
            self._signal(signal.SIGTERM)
            self._kill_at = self._loop.time() + self._grace_s
            self._timer = self._loop.call_later(self._grace_s, self._signal, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # Until the leader is reaped the group's number is ours. Afterwards it is as long as somebody is left in it.
        if self._process.returncode is None or is_group_alive(self._process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _leader_ended(self) -> None:
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        self._process.wait()
        self._linger_until = self._loop.time() + LINGER_S
        self._look()

    def _look(self) -> None:
        """Whether somebody of the group is left, who is then told to end."""
        now = self._loop.time()
        is_given_up = self._kill_at is not None and now > self._kill_at + GIVE_UP_S
        if is_given_up or not is_group_alive(self._process.pid):
            self._finish()
            return
        if now >= self._linger_until:
            self._tell_to_end()
        self._loop.call_later(LOOK_S, self._look)

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._input is not None:
            self._input.close()
        for each in self._outputs:
            each.drain()
        self._gone.set_result(None)


class _Output:
    """The end of a pipe that is read here."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pipe: IO[bytes],
        heard: Heard,
        is_stderr: bool,
        fail: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._pipe = pipe
        self._heard = heard
        self._is_stderr = is_stderr
        self._fail = fail
        self._descriptor = pipe.fileno()
        os.set_blocking(self._descriptor, False)
        loop.add_reader(self._descriptor, self._read)

    def drain(self) -> None:
        """Read what is there and no more: somebody outside the group may hold the other end open."""
        left = DRAIN_BYTES_MAX
        while left > 0 and not self._pipe.closed:
            taken = self._read()
            if not taken:
                break
            left -= taken
        self._close()

    def _read(self) -> int:
        """Hand on the next piece. Answers its size."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._close()
            return 0
        try:
            self._heard(data, self._is_stderr)
        except Exception as error:  # it would be lost in the loop
            self._close()
            self._fail(error)
        return len(data)

    def _close(self) -> None:
        if not self._pipe.closed:
            self._loop.remove_reader(self._descriptor)
            self._pipe.close()


class _Input:
    """The end of a pipe that is written here, as fast as the process reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], text: str) -> None:
        self._loop = loop
        self._pipe = pipe
        self._left = memoryview(text.encode(errors="replace"))
        self._descriptor = pipe.fileno()
        os.set_blocking(self._descriptor, False)
        loop.add_writer(self._descriptor, self._write)
        self._write()

    def close(self) -> None:
        if not self._pipe.closed:
            self._loop.remove_writer(self._descriptor)
            self._pipe.close()

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._descriptor, self._left) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want to read
            self._left = self._left[:0]
        if not self._left:
            self.close()


def _start(argv: Sequence[str], directory: Path, env: dict[str, str], *, has_input: bool) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603 - to run what a definition names is what this is for
            argv,
            cwd=str(directory),
            env=env,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStarted(_why_not(argv[0], directory, error), permanent=error.errno not in _FOR_A_WHILE) from None
    except ValueError as error:  # what no system call can be given
        holds_nul = any("\0" in each for each in (*argv, *env, *env.values()))
        why = "an argument or a variable holds a NUL character, which ends a text there" if holds_nul else str(error)
        raise NotStarted(f"{argv[0]!r} cannot be started: {why}") from None


def _why_not(name: str, directory: Path, error: OSError) -> str:
    if error.filename == str(directory):
        if isinstance(error, FileNotFoundError):
            return f"there is no directory {directory} to run {name!r} in"
        return f"{name!r} cannot be run in {directory}: {error.strerror}"
    match error.errno:
        case errno.ENOENT if "/" in name:
            return f"there is no program {name!r} in {directory}, or the program that its first line names is missing"
        case errno.ENOENT:
            return f"there is no program {name!r} on PATH: install it, or write its whole path"
        case errno.EACCES:
            return f"{name!r} may not be executed: is it a program, and its x bit set?"
        case errno.ENOEXEC:
            return f"{name!r} is no program for this machine: a script needs a first line such as #!/bin/sh"
        case errno.E2BIG:
            return f"{name!r} cannot be started: arguments and environment are too long, so use stdin or a file"
        case _:
            return f"{name!r} cannot be started: {error.strerror}"


def _open_watch(pid: int) -> int:
    """A descriptor that can be read as soon as a process has ended. Does not reap it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # an old kernel, or one that is pretended
            return os.pidfd_open(pid)
    here, there = os.pipe()
    threading.Thread(target=_close_at_end, args=(pid, there), name=f"understudy-{pid}", daemon=True).start()
    return here


def _close_at_end(pid: int, descriptor: int) -> None:
    try:
        if sys.platform == "darwin":  # it has no waitid before Python 3.13
            ended = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            with contextlib.suppress(ProcessLookupError), select.kqueue() as queue:
                queue.control([ended], 1)
        else:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    finally:
        os.close(descriptor)
