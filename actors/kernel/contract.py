"""The two faces of an actor: `Ref`, what everybody may do with it, and `Context`, what only it may ask for.

One object stands behind both (see `cell`), so that an actor costs little; the types keep them apart.
What is promised about order, refusal and stopping is in docs/kernel.md.
"""

from collections.abc import Awaitable, Callable, Generator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

import msgspec

from understudy.actors.kernel.entropy import Entropy
from understudy.actors.kernel.work import Outcome

if TYPE_CHECKING:
    from understudy.actors.kernel.actor import Actor

M_contra = TypeVar("M_contra", contravariant=True)
M = TypeVar("M")
S = TypeVar("S")
T = TypeVar("T")


class Promise(Protocol[T]):
    """An answer that comes later: an asyncio future on a loop, a plain object in simulation."""

    def __await__(self) -> Generator[Any, Any, T]: ...
    def done(self) -> bool: ...
    def result(self) -> T: ...
    def cancel(self) -> bool: ...
    def set_result(self, result: T, /) -> None: ...
    def set_exception(self, exception: BaseException, /) -> None: ...
    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...


class Reply(Generic[T]):
    """Where the answer to an ask goes. The first answer counts; one that nobody awaits any more is dropped."""

    __slots__ = ("_promise",)

    def __init__(self, promise: Promise[T]) -> None:
        self._promise = promise

    def send(self, value: T) -> None:
        if not self._promise.done():
            self._promise.set_result(value)

    def fail(self, error: BaseException) -> None:
        if not self._promise.done():
            self._promise.set_exception(error)


class Timer(Protocol):
    def cancel(self) -> None:
        """Disarm it. Nothing happens if it has fired, but its message may be in the mailbox already."""
        ...


class Work(Protocol):
    def cancel(self) -> None:
        """Ask it to end early. Its outcome still comes back as a message."""
        ...


class Ref(Protocol[M_contra]):
    """A handle to an actor. It stays valid when the actor restarts, and harmless when it has stopped."""

    @property
    def name(self) -> str: ...

    @property
    def alive(self) -> bool:
        """Whether it may still handle messages: not stopping, stopped or quarantined."""
        ...

    @property
    def depth(self) -> int:
        """How many messages wait, both lanes together."""
        ...

    def tell(self, message: M_contra) -> None:
        """Put a message at the end of the mailbox. Raises MailboxFull, which carries the message back."""
        ...

    def signal(self, message: M_contra) -> None:
        """Put a message at the end of the control lane, which overtakes the mailbox. Bounded as well."""
        ...

    def ask(self, make: Callable[[Reply[T]], M_contra], *, urgent: bool = False) -> Promise[T]:
        """Tell a message made around a fresh `Reply`, or signal it, and await the answer. For code outside actors."""
        ...

    def stop(self, *, drain: bool = False) -> None:
        """Stop it after the message in hand, or with `drain` after all that wait now. Its children stop first."""
        ...

    def kill(self) -> None:
        """End it and its children here and now, without their `stopped` hooks."""
        ...


class Context(Ref[M_contra], Protocol[M_contra]):
    """The effects that an actor may ask for, from its own `started`, `receive` and `stopped`."""

    @property
    def now(self) -> float:
        """The kernel's time in seconds, real or virtual."""
        ...

    @property
    def entropy(self) -> Entropy: ...

    @property
    def children(self) -> tuple[Ref[Any], ...]:
        """Living children, in order of start."""
        ...

    def save(self, snapshot: Any) -> None:
        """Keep what the actor is to be rebuilt from after a crash."""
        ...

    @overload
    def spawn(self, build: "Callable[[], Actor[M]]", *, name: str | None = None) -> Ref[M]: ...
    @overload
    def spawn(self, build: "Callable[[S], Actor[M]]", snapshot: S, *, name: str | None = None) -> Ref[M]: ...
    def spawn(self, build: Any, snapshot: Any = ..., *, name: str | None = None) -> Ref[Any]:
        """Start a child. It is stopped with this actor, and outlives this actor's restarts."""
        ...

    def watch(self, ref: Ref[Any]) -> None:
        """Be told of another's end by a `Terminated` in the control lane, at once if it has ended already."""
        ...

    def unwatch(self, ref: Ref[Any]) -> None: ...

    def after(self, delay_s: float, message: M_contra) -> Timer:
        """Tell oneself a message later. Lapses when the actor stops or restarts."""
        ...

    def start(self, work: Callable[[], Awaitable[T]], then: Callable[[Outcome[T]], M_contra]) -> Work:
        """Run async work outside; its outcome comes back as the message `then` makes of it."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """For async work: pass time, real or virtual."""
        ...


class EndReason(StrEnum):
    """Why an actor has ended."""

    STOPPED = "stopped"
    KILLED = "killed"
    FAILED = "failed"


class Terminated(msgspec.Struct, frozen=True):
    """Told to those who watch: the actor has ended and will not come back."""

    ref: Ref[Any]
    reason: EndReason


class Quarantined(msgspec.Struct, frozen=True):
    """Told to those who watch: the actor crashed too often. It keeps its mail and waits to be revived."""

    ref: Ref[Any]
    error: BaseException
