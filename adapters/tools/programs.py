"""The workplace of program workers: each attempt is a process of its own, which ends with it.

What a program is given are its arguments, its environment and its stdin; it never sees a shell that it did not ask
for. What it gives is an exit code and its output: a file that it wrote, or stdout. Secrets are hidden in all of it.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from understudy.actors.definition import Gives
from understudy.actors.errors import InternalError
from understudy.actors.ports.workplace import OUTPUT_BYTES_MAX, Audience, Hearing, Order, Program, Report
from understudy.actors.ports.workspaces import Place
from understudy.adapters.folders import Folders, make_private
from understudy.adapters.tools.attempt_log import AttemptLog
from understudy.adapters.tools.failures import cut, describe
from understudy.adapters.tools.in_process import WorkplaceDied
from understudy.adapters.tools.orphans import TOKEN_VARIABLE, ProcessLedger
from understudy.adapters.tools.running import NotStarted, describe_end, run_to_end
from understudy.adapters.tools.secrets import Secrets
from understudy.adapters.tools.sizes import too_large
from understudy.adapters.tools.storing import Unstorable, to_stored
from understudy.adapters.tools.streams import Stream

LINE_SHOWN_MAX: Final = 300  # characters of a program's last line in an error
SHELL: Final = ("/bin/sh", "-c")
OUTPUT_VARIABLE: Final = "UNDERSTUDY_OUTPUT"
_OF_ONE_ATTEMPT: Final = frozenset(
    {
        TOKEN_VARIABLE, OUTPUT_VARIABLE, "UNDERSTUDY_WORKSTREAM", "UNDERSTUDY_TASK", "UNDERSTUDY_ATTEMPT",
        "UNDERSTUDY_PREVIOUS_ERROR", "UNDERSTUDY_WORKSPACE",
    }
)  # fmt: skip
_numbers: Final = itertools.count()


class BadOutput(Exception):
    """A program that ended well gave what cannot be taken."""


class ProgramWorkplace:
    def __init__(self, audience: Audience, folders: Folders, ledger: ProcessLedger) -> None:
        self._audience = audience
        self._folders = folders
        self._ledger = ledger
        self._running: set[int] = set()  # leaders of groups
        self._is_furnished = False
        self._attempts = 0
        self._idle = asyncio.Event()
        self._is_killed = False

    async def open(self, hearing: Hearing) -> None:
        """Always ready: it lives and dies with the loop."""

    async def run(self, order: Order) -> Report:
        if self._is_killed:
            raise WorkplaceDied("was killed")
        self._attempts += 1
        self._idle.clear()
        try:
            report = await self._run(order)
        finally:
            self._attempts -= 1
            if not self._attempts:
                self._idle.set()
        if self._is_killed:
            raise WorkplaceDied("was killed")
        return report

    async def close(self) -> None:
        self.kill()
        if self._attempts:
            await self._idle.wait()

    def kill(self) -> None:
        self._is_killed = True
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    async def _run(self, order: Order) -> Report:
        if not self._is_furnished:  # only now: most runtimes run no programs, and leave nothing beside their database
            make_private(self._folders.root)
            make_private(self._folders.outputs)
            self._is_furnished = True
        attempt = _Attempt(order, self._audience, self._folders)
        started: list[int] = []

        def began(pid: int) -> None:
            started.append(pid)
            self._running.add(pid)
            self._ledger.note_start(pid, order.token)

        try:
            return await attempt.run(began)
        finally:
            for pid in started:
                self._running.discard(pid)
                with contextlib.suppress(OSError):  # it only costs a look at the next start
                    self._ledger.note_end(pid)


class _Attempt:
    """One program: how it is started, what is heard of it, and what becomes of that."""

    def __init__(self, order: Order, audience: Audience, folders: Folders) -> None:
        if order.program is None:
            raise InternalError(f"attempt {order.token} was given to a program worker without a program")
        self._order = order
        self._program = order.program
        self._secrets = Secrets(order.secrets) if order.secrets else None
        self._log = AttemptLog(folders.log(order.workstream_id, order.key, order.generation, order.attempt))
        tell = functools.partial(audience.output, order)
        self._stdout = Stream(self._secrets, self._log, tell)
        self._stderr = Stream(self._secrets, self._log, tell)
        self._json = bytearray()  # stdout as it is, where that is the result: it is refused or taken as a whole
        self._result = folders.outputs / f"{os.getpid()}-{next(_numbers)}"

    async def run(self, began: Callable[[int], None]) -> Report:
        try:
            return self._report(await self._run(began))
        except NotStarted as error:
            return self._refused(str(error), permanent=error.permanent)
        except OSError as error:  # its log cannot be written, or the like
            return describe(error, self._secrets.hide if self._secrets else None)
        finally:
            self._result.unlink(missing_ok=True)

    async def _run(self, began: Callable[[int], None]) -> int:
        program = self._program
        argv = (*SHELL, program.argv[0], "sh", *program.argv[1:]) if program.shell else program.argv
        directory = _directory(program, self._order.place)
        self._result.unlink(missing_ok=True)  # of another process that had this number
        try:
            code = await run_to_end(
                argv,
                directory=directory,
                env=self._environment(),
                stdin=program.stdin,
                grace_s=program.grace_s,
                heard=self._hear,
                began=began,
            )
        except BaseException:
            with contextlib.suppress(OSError):  # what is being raised says more
                self._end_streams()
            raise
        self._end_streams()
        return code

    def _environment(self) -> dict[str, str]:
        order = self._order
        withheld = _OF_ONE_ATTEMPT.union(order.secrets)
        given = {name: value for name, value in os.environ.items() if name not in withheld}
        given |= self._program.env
        given[TOKEN_VARIABLE] = order.token
        given[OUTPUT_VARIABLE] = str(self._result.absolute())
        given["UNDERSTUDY_WORKSTREAM"] = order.workstream_id
        given["UNDERSTUDY_TASK"] = order.key
        given["UNDERSTUDY_ATTEMPT"] = str(order.attempt)
        if order.previous_error is not None:
            given["UNDERSTUDY_PREVIOUS_ERROR"] = cut(order.previous_error).replace("\0", "")
        if order.place is not None:
            given["UNDERSTUDY_WORKSPACE"] = order.place.directory
        return given

    def _hear(self, data: bytes, is_stderr: bool) -> None:
        if is_stderr:
            self._stderr.feed(data)
            return
        if self._program.gives is Gives.JSON and len(self._json) <= OUTPUT_BYTES_MAX:
            self._json += data
        self._stdout.feed(data)

    def _end_streams(self) -> None:
        try:
            self._stdout.end()
            self._stderr.end()
        finally:
            self._log.close()

    def _report(self, code: int) -> Report:
        if code not in self._program.expected_exit_codes:
            return self._failed(code)
        try:
            output, size = self._output()
        except (BadOutput, Unstorable) as error:
            return self._refused(str(error), code)
        return Report(output, size, code)

    def _failed(self, code: int) -> Report:
        out, err = self._stdout.kept.text(), self._stderr.kept.text()
        ending, line = describe_end(code), _last_line(err) or _last_line(out)
        error = f"{ending}: {line}" if line else ending
        return Report(exit_code=code, error=error, text="\n".join(each for each in (error, out, err) if each))

    def _refused(self, why: str, code: int | None = None, *, permanent: bool = True) -> Report:
        shown = cut(self._secrets.hide(why) if self._secrets else why)
        shown = shown.encode(errors="backslashreplace").decode()
        return Report(exit_code=code, error=shown, text=shown, permanent=permanent)

    def _output(self) -> tuple[Any, int]:
        """What it gave, and its size. Raises `BadOutput` or `Unstorable`."""
        if (written := self._read_result()) is not None:
            return self._decode(written, f"what was written to ${OUTPUT_VARIABLE}")
        if self._program.gives is Gives.JSON:
            if len(self._json) > OUTPUT_BYTES_MAX:
                raise BadOutput(too_large(self._stdout.kept.size, OUTPUT_BYTES_MAX))
            return self._decode(bytes(self._json), "stdout")
        text = self._stdout.kept.text().rstrip("\n")
        return text, len(msgspec.json.encode(text))

    def _read_result(self) -> bytes | None:
        if not self._result.is_file() or not (size := self._result.stat().st_size):
            return None
        if size > OUTPUT_BYTES_MAX:
            raise BadOutput(too_large(size, OUTPUT_BYTES_MAX))
        return self._result.read_bytes()

    def _decode(self, data: bytes, source: str) -> tuple[Any, int]:
        try:
            value = msgspec.json.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            said = error if data.strip() else "there is nothing"
            raise BadOutput(f"{source} is not the JSON that was expected: {said}") from None
        stored, size = to_stored(value)
        if self._secrets:
            stored = self._secrets.hide_in(stored)
            size = len(msgspec.json.encode(stored))
        return stored, size


def _directory(program: Program, place: Place | None) -> Path:
    """Where a program is to run. Raises `NotStarted` where that is outside of a closed place."""
    start = Path.cwd() if place is None else Path(place.directory)
    if program.cwd is None:
        return start
    if place is None or not place.is_closed:
        return start / program.cwd
    try:
        found, inside = (start / program.cwd).resolve(), start.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a NUL character
        raise NotStarted(f"{program.cwd!r} is no directory in the workspace {start}: {error}") from None
    if not found.is_relative_to(inside):
        raise NotStarted(f"{program.cwd!r} leads out of the workspace {start}: name a directory in it")
    return found


def _last_line(text: str) -> str:
    """The last one with something in it, cut short."""
    for line in reversed(text.splitlines()):
        if found := line.strip():
            return found if len(found) <= LINE_SHOWN_MAX else f"{found[:LINE_SHOWN_MAX]}[...]"
    return ""
