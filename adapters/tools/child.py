"""The program that a worker process runs: `python -m understudy.adapters.tools.child FD`.

The main thread listens to the parent, others run the orders, one tells that all this is alive. Where the parent is
gone there is nobody to work for: it exits at once, whatever still runs.
"""

import asyncio
import concurrent.futures
import contextlib
import itertools
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, Final, assert_never

from understudy.actors.definition import Task, Workstream
from understudy.actors.errors import UnderstudyError
from understudy.actors.ports.workplace import Order, Report
from understudy.adapters.tools import pipe
from understudy.adapters.tools.attempts import attempt_async, attempt_plain, failed
from understudy.adapters.tools.calls import NoSuchFunction, find
from understudy.adapters.tools.context import TaskContext
from understudy.adapters.tools.threads import Threads

EXIT_PARENT_GONE: Final = 1
EXIT_BROKEN: Final = 70  # as sysexits.h has it: an internal error


class Refused(UnderstudyError):
    """What the engine answered where it did not do what was asked."""


class Connection:
    """The pipe to the parent. Every thread may send."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)  # a program started here must not hold it open
        self._file = self._socket.makefile("rb")
        self._lock = threading.Lock()

    def read(self) -> pipe.ToChild:
        """The next word. Does not return where the parent is gone."""
        head = self._read(pipe.LENGTH_BYTES)
        return pipe.to_child.decode(self._read(int.from_bytes(head)))

    def send(self, word: pipe.FromChild) -> None:
        data = pipe.frame(word)
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError:
            os._exit(EXIT_PARENT_GONE)

    def _read(self, length: int) -> bytes:
        try:
            data = self._file.read(length)
        except OSError:
            data = b""
        if len(data) < length:
            os._exit(EXIT_PARENT_GONE)
        return data


class Asking:
    """The services, as seen from one attempt: what is asked goes to the parent and the answer comes back."""

    _numbers: Final = itertools.count()

    def __init__(
        self, connection: Connection, number: int, waiting: dict[int, "concurrent.futures.Future[Any]"]
    ) -> None:
        self._connection = connection
        self._number = number
        self._waiting = waiting
        self._asked: set[int] = set()
        self._given_up = False

    def progress(self, order: Order, share: float | None, note: str | None) -> None:
        self._connection.send(pipe.Progress(self._number, share, note))

    async def spawn(self, order: Order, definition: Workstream, number: int) -> str:
        return str(await self._ask(lambda ask: pipe.Spawn(ask, self._number, definition, number)))

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        found: dict[str, Any] = await self._ask(lambda ask: pipe.ResultOf(ask, self._number, workstream_id))
        return found

    async def add(self, order: Order, tasks: Sequence[Task]) -> None:
        await self._ask(lambda ask: pipe.Add(ask, self._number, tuple(tasks)))

    def give_up(self) -> None:
        """Wait for no answer any more."""
        self._given_up = True
        for ask in tuple(self._asked):
            if answered := self._waiting.get(ask):
                answered.cancel()

    async def _ask(self, make: Callable[[int], pipe.Ask]) -> Any:
        number = next(self._numbers)
        answered: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._waiting[number] = answered
        self._asked.add(number)
        if self._given_up:  # looked at after it was added: one of the two sees the other
            answered.cancel()
        try:
            self._connection.send(make(number))
            return await asyncio.wrap_future(answered)
        finally:
            self._asked.discard(number)
            self._waiting.pop(number, None)


class Child:
    """What is running here."""

    def __init__(self, connection: Connection, threads: int) -> None:
        self._connection = connection
        self._threads = Threads("understudy", threads)
        self._waiting: dict[int, concurrent.futures.Future[Any]] = {}
        self._running: dict[int, tuple[TaskContext, Asking]] = {}

    def serve(self) -> None:
        """Until the parent says that it is over."""
        while True:
            word = self._connection.read()
            match word:
                case pipe.Run(number, order):
                    self._start(number, order)
                case pipe.Cancel(number):
                    self._cancel(number)
                case pipe.Answer():
                    self._answer(word)
                case pipe.End():
                    return
                case pipe.Start():
                    raise UnderstudyError("a worker process was started twice")
                case _:
                    assert_never(word)

    def _start(self, number: int, order: Order) -> None:
        asking = Asking(self._connection, number, self._waiting)
        context = TaskContext(order, asking, _wait)
        self._running[number] = context, asking
        try:
            self._threads.submit(partial(self._work, number, context))
        except RuntimeError as error:  # the system gives no more threads
            self._end(number, failed(context, error))

    def _work(self, number: int, context: TaskContext) -> None:
        try:
            report = _attempt(context)
        except BaseException as error:  # its cancellation
            report = failed(context, error)
        self._end(number, report)

    def _end(self, number: int, report: Report) -> None:
        del self._running[number]
        self._connection.send(pipe.Done(number, report))

    def _cancel(self, number: int) -> None:
        if found := self._running.get(number):
            context, asking = found
            context.cancel()
            asking.give_up()

    def _answer(self, answer: pipe.Answer) -> None:
        answered = self._waiting.get(answer.ask)
        if answered is None:
            return
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # it was given up just now
            if answer.error is None:
                answered.set_result(answer.value)
            else:
                answered.set_exception(Refused(answer.error))


def _attempt(context: TaskContext) -> Report:
    try:
        is_async = find(context.order.call).is_async
    except NoSuchFunction as error:
        return failed(context, error)
    return asyncio.run(attempt_async(context)) if is_async else attempt_plain(context)


def _wait(ask: Callable[[], Awaitable[Any]]) -> Any:
    async def answer() -> Any:
        return await ask()

    return asyncio.run(answer())


def _beat(connection: Connection, every_s: float) -> None:
    never = threading.Event()
    while True:
        connection.send(pipe.Beat())
        never.wait(every_s)


def _pass_over(_number: int, _frame: FrameType | None) -> None:
    """A signal that is not for this process."""


def main(descriptor: int) -> None:
    # Ctrl+C reaches every process of a terminal; the parent decides what it means. A handler, not SIG_IGN, which
    # programs started here would inherit.
    signal.signal(signal.SIGINT, _pass_over)
    connection = Connection(descriptor)
    start = connection.read()
    if not isinstance(start, pipe.Start):
        raise UnderstudyError("a worker process is started by its parent, not by hand")
    sys.path[:] = start.sys_path
    threading.Thread(target=_beat, args=(connection, start.beat_s), name="beat", daemon=True).start()
    child = Child(connection, start.threads)
    connection.send(pipe.Hello())
    child.serve()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(EXIT_BROKEN)
    os._exit(0)  # threads that are left must not keep it
