"""The workplace of process workers: functions in a long-lived child, which can be killed and may die by itself.

Every attempt ends, in the child's report or in `WorkplaceDied`. The child is reaped by a watch of its own, however it
ends. It ends by itself when this process does.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
from typing import Any, Final, assert_never

import msgspec

from understudy.actors.definition import WorkerDefinition
from understudy.actors.errors import MisuseError, UnderstudyError
from understudy.actors.kernel.uncut import uncut
from understudy.actors.ports.workplace import Hearing, Order, Report, Services
from understudy.adapters.tools import pipe
from understudy.adapters.tools.failures import describe
from understudy.adapters.tools.processes import name_signal

CANCEL_GRACE_S: Final = 2.0
CLOSE_GRACE_S: Final = 2.0
START_S_MAX: Final = 30.0
PROGRAM: Final = "understudy.adapters.tools.child"
_READ_BYTES: Final = 2**18


class WorkplaceDied(UnderstudyError):
    """The process ended, and the attempt with it."""


class ProcessWorkplace:
    def __init__(
        self,
        worker_id: str,
        definition: WorkerDefinition,
        services: Services,
        *,
        cancel_grace_s: float = CANCEL_GRACE_S,
        close_grace_s: float = CLOSE_GRACE_S,
        start_s_max: float = START_S_MAX,
    ) -> None:
        self._worker_id = worker_id
        self._definition = definition
        self._services = services
        self._cancel_grace_s = cancel_grace_s
        self._close_grace_s = close_grace_s
        self._start_s_max = start_s_max
        self._child: _Child | None = None
        self._is_killed = False

    @property
    def pid(self) -> int:
        return self._opened.process.pid

    async def open(self, hearing: Hearing) -> None:
        child = self._child = await _Child.start(self._services, hearing, self._cancel_grace_s)
        start = pipe.Start(
            [str(each) for each in sys.path],
            self._definition.max_concurrent_tasks,
            self._definition.heartbeat / 2,
        )
        try:
            if self._is_killed:  # while it was on its way
                child.kill("was killed")
            child.send(start)
            await asyncio.wait([child.ready], timeout=self._start_s_max)
            if not child.ready.done():
                child.kill(f"did not start within {self._start_s_max:g} s")
                await child.ready
        except BaseException:
            child.kill("was not needed")
            await uncut(child.watching)
            raise
        if child.ended is not None:
            await uncut(child.watching)
            raise WorkplaceDied(f"the process of worker {self._worker_id} {child.ended} before it was ready")
        child.is_open = True

    async def run(self, order: Order) -> Report:
        return await self._opened.run(order)

    async def close(self) -> None:
        if self._child is None:
            return
        child = self._child
        child.is_leaving = True
        child.send(pipe.End())
        timer = asyncio.get_running_loop().call_later(self._close_grace_s, child.kill, "did not end when asked")
        try:
            await uncut(child.watching)
        finally:
            timer.cancel()

    def kill(self) -> None:
        self._is_killed = True
        if self._child is not None:
            self._child.is_leaving = True
            self._child.kill("was killed")

    @property
    def _opened(self) -> "_Child":
        if self._child is None:
            raise MisuseError(f"worker {self._worker_id} is not open: open its workplace first")
        return self._child


class _Running:
    """An attempt in the child, and what it has asked for."""

    def __init__(self, order: Order, ended: "asyncio.Future[Report | WorkplaceDied]") -> None:
        self.order = order
        self.ended = ended
        self.asks: set[asyncio.Task[None]] = set()
        self.timer: asyncio.TimerHandle | None = None

    def end(self, how: "Report | WorkplaceDied") -> None:
        if not self.ended.done():
            self.ended.set_result(how)


class _Child(asyncio.Protocol):
    """The process and the pipe to it."""

    process: asyncio.subprocess.Process
    watching: "asyncio.Task[None]"
    _transport: asyncio.Transport

    def __init__(self, here: socket.socket, services: Services, hearing: Hearing, cancel_grace_s: float) -> None:
        self._here = here
        self._services = services
        self._hearing = hearing
        self._cancel_grace_s = cancel_grace_s
        self._loop = asyncio.get_running_loop()
        self._frames = pipe.Frames()
        self._running: dict[int, _Running] = {}
        self._numbers = itertools.count()
        self._why: str | None = None
        self.ready: asyncio.Future[None] = self._loop.create_future()  # or ended: look at `ended`
        self.ended: str | None = None
        self.is_open = False  # whoever opens it is told otherwise
        self.is_leaving = False  # it was asked to go: its end is no news

    @classmethod
    async def start(cls, services: Services, hearing: Hearing, cancel_grace_s: float) -> "_Child":
        here, there = socket.socketpair()
        here.setblocking(False)
        child = cls(here, services, hearing, cancel_grace_s)
        with there:
            child._transport, _ = await child._loop.create_unix_connection(lambda: child, sock=here)
            try:
                child.process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", PROGRAM, str(there.fileno()),
                    stdin=asyncio.subprocess.DEVNULL, pass_fds=(there.fileno(),),
                )  # fmt: skip
            except BaseException:
                child._transport.abort()
                raise
        child.watching = child._loop.create_task(child._watch())
        return child

    async def run(self, order: Order) -> Report:
        if self.ended is not None:
            raise WorkplaceDied(self.ended)
        number = next(self._numbers)
        running = self._running[number] = _Running(order, self._loop.create_future())
        try:
            try:
                self.send(pipe.Run(number, order))
            except (TypeError, ValueError, OverflowError, RecursionError) as error:  # inputs that are no JSON
                return msgspec.structs.replace(describe(error), permanent=True)
            ended = await uncut(running.ended, lambda: self._cancel(number))
        finally:
            del self._running[number]
            if running.timer is not None:
                running.timer.cancel()
            for ask in running.asks:
                ask.cancel()
        if isinstance(ended, WorkplaceDied):
            raise ended
        return ended

    def send(self, word: pipe.ToChild) -> None:
        if not self._transport.is_closing():
            self._transport.write(pipe.frame(word))

    def kill(self, why: str) -> None:
        """End it at once, which works on a stopped process too. The first reason is kept."""
        if self.ended is None and self.process.returncode is None:
            self._why = self._why or why
            with contextlib.suppress(ProcessLookupError):
                # Not through asyncio: that looks for an exit code on its way, and takes it from the watch.
                os.kill(self.process.pid, signal.SIGKILL)

    def data_received(self, data: bytes) -> None:
        try:
            for each in self._frames.feed(data):
                self._receive(pipe.from_child.decode(each))
        except (msgspec.MsgspecError, pipe.BadFrame, UnicodeDecodeError) as error:
            self.kill(f"sent what is not ours ({error}) and was killed")
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._why is None and self.ended is None and not self.is_leaving:
            # As a rule its end, which the watch will tell more of. If it lives, it can be of no more use.
            self._loop.call_later(self._cancel_grace_s, self.kill, "closed its connection and was killed")

    def _receive(self, word: pipe.FromChild) -> None:
        match word:
            case pipe.Beat():
                self._hearing.beat()
            case pipe.Hello():
                if not self.ready.done():
                    self.ready.set_result(None)
            case pipe.Done(number, report):
                if running := self._running.get(number):
                    running.end(report)
            case pipe.Progress(number, share, note):
                if running := self._running.get(number):
                    self._services.progress(running.order, share, note)
            case pipe.Spawn() | pipe.ResultOf() | pipe.Add():
                if running := self._running.get(word.number):
                    task = self._loop.create_task(self._answer(running.order, word))
                    running.asks.add(task)
                    task.add_done_callback(running.asks.discard)
            case _:
                assert_never(word)

    async def _answer(self, order: Order, ask: pipe.Ask) -> None:
        try:
            answer = pipe.Answer(ask.ask, await self._ask(order, ask))
            self.send(answer)
        except Exception as error:  # it is the child's to raise
            self.send(pipe.Answer(ask.ask, error=describe(error).error))

    async def _ask(self, order: Order, ask: pipe.Ask) -> Any:
        match ask:
            case pipe.Spawn():
                return await self._services.spawn(order, ask.definition, ask.count)
            case pipe.ResultOf():
                return await self._services.result_of(ask.workstream_id)
            case pipe.Add():
                return await self._services.add(order, ask.tasks)

    def _cancel(self, number: int) -> None:
        running = self._running[number]
        if running.timer is None:
            why = "ignored its cancellation and was killed"
            running.timer = self._loop.call_later(self._cancel_grace_s, self.kill, why)
            self.send(pipe.Cancel(number))

    async def _watch(self) -> None:
        """Its end, however it comes: reap it, read what it had sent before, and tell."""
        code = await self._reap()
        self._read_rest()
        self._transport.abort()
        why = self._why or _ending(code)
        self.ended = why
        for running in self._running.values():
            running.end(WorkplaceDied(why))
        if not self.ready.done():
            self.ready.set_result(None)
        if self.is_open and not self.is_leaving:
            self._hearing.died(why)

    async def _reap(self) -> int:
        while True:
            try:
                return await self.process.wait()
            except asyncio.CancelledError:  # the loop ends, and nobody would be there to reap it
                self.is_leaving = True
                self.kill("was killed: the loop that it belongs to has ended")

    def _read_rest(self) -> None:
        """A process that it has started may hold the pipe open: so not until its end, but until it is empty."""
        if self._transport.is_closing():
            return
        self._transport.pause_reading()
        with contextlib.suppress(OSError):
            while data := self._here.recv(_READ_BYTES):
                self.data_received(data)


def _ending(code: int) -> str:
    return f"exited with code {code}" if code >= 0 else f"was killed by {name_signal(-code)}"
