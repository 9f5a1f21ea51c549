"""Async work without a loop: a coroutine stepped by the simulated kernel, and what it may await.

A fiber may await a simulated promise: an answer, or the kernel's `sleep`. Anything else needs a real loop
and fails the work with a `MisuseError` that says so.
"""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeGuard, TypeVar

from understudy.actors.errors import MisuseError
from understudy.actors.kernel.order import NOTHING
from understudy.actors.kernel.work import AnyOutcome, Cancelled, Failed, Succeeded

T = TypeVar("T")


class SimulatedPromise(Generic[T]):
    """An answer that comes later in virtual time. Its callbacks run when it is set, in order."""

    __slots__ = ("_callbacks", "_error", "_value")

    def __init__(self) -> None:
        self._value: T = NOTHING
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], object]] = []

    def __await__(self) -> Generator[Any, Any, T]:
        if not self.done():
            yield self
        return self.result()

    def done(self) -> bool:
        return self._value is not NOTHING or self._error is not None

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        if self._value is NOTHING:
            raise MisuseError("there is no answer yet: run the simulation further")
        return self._value

    def set_result(self, result: T, /) -> None:
        self._value = result
        self._settle()

    def set_exception(self, exception: BaseException, /) -> None:
        self._error = exception
        self._settle()

    def cancel(self) -> bool:
        if self.done():
            return False
        self.set_exception(CancelledError())
        return True

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        if self.done():
            callback(self)
        else:
            self._callbacks.append(callback)

    # As an alarm: what `sleep` awaits

    @property
    def armed(self) -> bool:
        return not self.done()

    def fire(self) -> None:
        self.set_result(None)  # type: ignore[arg-type]  # only a promise of None is armed

    def _settle(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


class Fiber:
    """A coroutine that takes turns like an actor. `done` is called once with its outcome."""

    __slots__ = ("_awaited", "_coroutine", "_done", "_ready", "_throw", "name")

    def __init__(
        self,
        name: str,
        run: Callable[[], Awaitable[Any]],
        ready: list[Any],
        done: Callable[["Fiber", AnyOutcome], None],
    ) -> None:
        self.name = name
        self._coroutine = _coroutine(run)
        self._ready = ready
        self._done = done
        self._awaited: SimulatedPromise[Any] | None = None
        self._throw: BaseException | None = None  # what the coroutine is to find at its next turn
        ready.append(self)

    def turn(self, limit: int) -> int:
        """Run to the next await."""
        error, self._throw = self._throw, None
        try:
            awaited = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration as end:
            self._done(self, Succeeded(end.value))
        except CancelledError:
            self._done(self, Cancelled())
        except BaseException as failure:
            self._done(self, Failed(failure))
        else:
            self._wait_for(awaited)
        return 1

    def cancel(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()  # as a task does: whoever waits for it finds the cancellation there
        else:
            self._throw = CancelledError()

    def _wait_for(self, awaited: object) -> None:
        if self._throw is None and _is_promise(awaited):
            self._awaited = awaited
            awaited.add_done_callback(self._continue)
            return
        if self._throw is None:
            what = f"{self.name} awaited {awaited!r}: in simulation await answers and the kernel's sleep"
            self._throw = MisuseError(what)
        self._ready.append(self)

    def _continue(self, promise: SimulatedPromise[Any]) -> None:
        self._awaited = None
        self._ready.append(self)


def _is_promise(awaited: object) -> TypeGuard[SimulatedPromise[Any]]:
    return isinstance(awaited, SimulatedPromise)


async def _coroutine(run: Callable[[], Awaitable[Any]]) -> Any:
    return await run()
