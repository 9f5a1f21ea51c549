"""The kernel on a running asyncio loop, beside other code.

It runs turns in slices. A slice holds the loop for 2 ms; the clock is read at least every 64 messages, so the
most that a slice can overrun is the time of 64 calls of `receive`. Then everybody else on the loop runs.

Async work runs in plain asyncio tasks and not in a task group: a group waits for ever for a member that
ignores its cancellation, and the kernel has promised to stop (docs/decisions/0002).
"""

import asyncio
from asyncio import AbstractEventLoop, CancelledError, TimerHandle
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from types import TracebackType
from typing import Any, Final, Self, cast

import msgspec

from understudy.actors.errors import MisuseError
from understudy.actors.kernel.cell import Cell
from understudy.actors.kernel.clock import Clock, MonotonicClock
from understudy.actors.kernel.contract import EndReason, Promise, Ref
from understudy.actors.kernel.entropy import Entropy, SystemEntropy
from understudy.actors.kernel.errors import IntakeClosed, RefusedError
from understudy.actors.kernel.kernel import TURN_MESSAGES, Kernel, StopReport
from understudy.actors.kernel.observer import DeadReason
from understudy.actors.kernel.uncut import uncut
from understudy.actors.kernel.work import AnyOutcome, Cancelled, Failed, Succeeded

SLICE_S: Final = 0.002
LOOK_MESSAGES: Final = 32  # messages between two looks at the clock; the last turn may add TURN_MESSAGES
GRACE_S: Final = 5.0
STOP_S: Final = 1.0  # what orderly ends may take after the grace, before the rest is killed
CANCEL_S: Final = 0.5  # what cancelled work may take to end, before it is abandoned

_turn: Final = cast("Callable[[Cell[Any], int], int]", Cell[Any].turn)
# The kernels in whose work this code runs: one, or several where a kernel lives inside another's work.
_at_work: ContextVar[tuple["LoopKernel", ...]] = ContextVar("understudy_at_work", default=())


class LoopKernel(Kernel):
    """Open it with `async with`. On the way out it stops: intake closed, drained or cut off after the grace."""

    def __init__(self, *, grace_s: float = GRACE_S, clock: Clock | None = None, entropy: Entropy | None = None) -> None:
        self._queue: deque[Cell[Any]] = deque()
        super().__init__(clock or MonotonicClock(), entropy or SystemEntropy(), self._queue)
        self._grace_s = grace_s
        self._now = self.clock.now
        self._loop: AbstractEventLoop | None = None
        self._alarm: TimerHandle | None = None
        self._tasks: set[asyncio.Task[AnyOutcome]] = set()
        self._idle: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[StopReport] | None = None
        self._hurry: asyncio.Future[None]  # made when it closes: kept when there is no time to drain

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise MisuseError("a kernel is opened once; make a new one")
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._work_context = copy_context()
        self._work_context.run(_at_work.set, (*_at_work.get(), self))
        self._rest()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, grace_s: float | None = None) -> StopReport:
        """Stop intake, drain for at most the grace, end every actor, and say what was left over.

        To cancel it cuts the drain short, and no more: it still returns only when everything has ended.
        """
        if self.is_at_work():
            raise MisuseError(
                "work cannot close its own kernel, which waits for work to end: leave that to code outside"
            )
        if self._closing is None:
            loop = self._opened()
            self.closing = True
            self._hurry = loop.create_future()
            self._closing = loop.create_task(self._close(self._grace_s if grace_s is None else grace_s))
        return await uncut(self._closing, self._hurry_up)

    async def settled(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is ready and no work is under way; timers are not waited for. Answers whether it is so."""
        if self._idle is None or self._idle.done():
            self._idle = self._opened().create_future()
        if self.asleep:
            self._note_idle()
        idle = self._idle
        await asyncio.wait([idle], timeout=timeout_s)
        return idle.done()

    def post(self, ref: Ref[Any], message: Any) -> None:
        """Tell from another thread. What is refused cannot be handed back there: it becomes a dead letter."""
        cell = self.own(ref)
        try:
            self._opened().call_soon_threadsafe(self._take_post, cell, message)
        except RuntimeError as error:  # the loop is closed
            raise IntakeClosed(cell.name, message) from error

    # What the kernel asks for

    def wake(self) -> None:
        if self._loop is None:
            return  # not open yet: opening looks for what is ready
        self.asleep = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._loop.call_soon(self._slice, context=self._context)

    def make_promise(self) -> Promise[Any]:
        return self._opened().create_future()

    def sleep(self, seconds: float) -> Awaitable[None]:
        return asyncio.sleep(seconds)  # noqa: TID251 - this is where real time passes

    def run_work(
        self, name: str, run: Callable[[], Awaitable[Any]], done: Callable[[AnyOutcome], None]
    ) -> Callable[[], None]:
        task = self._opened().create_task(_outcome_of(run), name=name, context=self._work_context.copy())
        self._tasks.add(task)

        def finish(task: asyncio.Task[AnyOutcome]) -> None:
            self._tasks.discard(task)
            done(Cancelled() if task.cancelled() else task.result())
            if self.asleep:
                self._note_idle()

        task.add_done_callback(finish)

        def cancel() -> None:
            task.cancel()

        return cancel

    def is_at_work(self) -> bool:
        return self in _at_work.get()

    # How turns run

    def _slice(self) -> None:
        now, ready = self._now, self._queue
        turn: Callable[[Cell[Any], int], int] = self._observed_turn if self.observers.listening else _turn
        began = now()
        deadline = began + SLICE_S
        self.asleep, self.running = False, True
        try:
            self._fire_due(began, began + SLICE_S / 2)
            fuel = LOOK_MESSAGES
            while ready:
                fuel -= turn(ready.popleft(), TURN_MESSAGES)
                if fuel <= 0:
                    if now() >= deadline:
                        break
                    fuel = LOOK_MESSAGES
        finally:
            self.running = False
            self._rest()

    def _rest(self) -> None:
        """Give the loop back, and arrange for the next slice."""
        if not self._queue:
            self._note_idle()
        due = self.timers.next_due()
        if self._queue or (due is not None and due <= self._now()):
            self.wake()
            return
        self.asleep = True
        if due is not None:
            self._alarm = self._opened().call_later(due - self._now(), self._slice, context=self._context)

    def _fire_due(self, now: float, deadline: float) -> None:
        """Fire what is due, for at most half a slice, so that a burst of timers does not starve the actors."""
        fuel = LOOK_MESSAGES
        while (entry := self.timers.pop_due(now)) is not None:
            entry[1].fire()
            fuel -= 1
            if fuel == 0:
                if self._now() >= deadline:
                    return
                fuel = LOOK_MESSAGES

    def _observed_turn(self, cell: Cell[Any], limit: int) -> int:
        depth, began = cell.depth, self._now()
        handled = cell.turn(limit)
        seconds = self._now() - began
        self.observers.tell(lambda observer: observer.turn(cell, depth, handled, seconds))
        return handled

    def _take_post(self, cell: Cell[Any], message: Any) -> None:
        try:
            cell.tell(message)
        except RefusedError:
            self.bury(cell, message, DeadReason.REFUSED)

    def _opened(self) -> AbstractEventLoop:
        if self._loop is None:
            raise MisuseError("the kernel is not open: use `async with LoopKernel() as kernel`")
        return self._loop

    # How it stops

    async def _close(self, grace_s: float) -> StopReport:
        before = msgspec.structs.replace(self.counts)
        drained = await self._drain(grace_s)
        timers, works = self.count_timers(), self.works
        ended = self.join(self.root)
        self.root.stop()
        await asyncio.wait([cast("asyncio.Future[EndReason]", ended)], timeout=STOP_S)
        self.root.kill()
        return self.report_stop(before, drained, timers, works, await self._end_work())

    async def _drain(self, grace_s: float) -> bool:
        idle = asyncio.ensure_future(self.settled())
        either: list[asyncio.Future[Any]] = [idle, self._hurry]
        await asyncio.wait(either, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        return idle.done() and not idle.cancelled()

    async def _end_work(self) -> tuple[str, ...]:
        for task in self._tasks:
            if not task.cancelling():
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CANCEL_S)
        abandoned = tuple(self._tasks)
        for task in abandoned:
            _disown(task)
        return tuple(task.get_name() for task in abandoned)

    def _hurry_up(self) -> None:
        if not self._hurry.done():
            self._hurry.set_result(None)

    def _note_idle(self) -> None:
        if self._idle is not None and not self._idle.done() and not self.works:
            self._idle.set_result(None)


async def _outcome_of(run: Callable[[], Awaitable[Any]]) -> AnyOutcome:
    """Run work to its end. A SystemExit or KeyboardInterrupt that left the task would stop the whole loop."""
    try:
        return Succeeded(await run())
    except CancelledError:
        raise
    except BaseException as error:
        return Failed(error)


def _disown(task: asyncio.Task[Any]) -> None:
    """Let the loop close without this task, which has ignored its cancellation: `asyncio.run` would wait for it."""
    asyncio.tasks._unregister_task(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # and say nothing more about it
