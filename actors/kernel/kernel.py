"""The kernel: who exists, who is ready, what time it is, and what became of every message.

It decides nothing about when turns run: `loop.LoopKernel` runs them on an asyncio loop, and
`simulated.SimulatedKernel` by seed in virtual time. Everything else is the same code in both.
"""

import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Final, Never, TypeVar, overload

import msgspec

from understudy.actors.errors import InternalError, MisuseError
from understudy.actors.kernel import failures
from understudy.actors.kernel.actor import Actor
from understudy.actors.kernel.cell import Cell
from understudy.actors.kernel.clock import Clock
from understudy.actors.kernel.contract import EndReason, Promise, Ref
from understudy.actors.kernel.effects import ActorTimer, ActorWork
from understudy.actors.kernel.entropy import Entropy
from understudy.actors.kernel.errors import IntakeClosed
from understudy.actors.kernel.observer import DeadLetter, DeadReason, Observer, Observers, Poison
from understudy.actors.kernel.order import NOTHING, STOPPED
from understudy.actors.kernel.timers import Alarm, TimerQueue
from understudy.actors.kernel.work import AnyOutcome

M = TypeVar("M")
S = TypeVar("S")
T = TypeVar("T")

TURN_MESSAGES: Final = 32  # an actor's share before the next one's turn
POISON_KEPT: Final = 1_000  # the newest; every one is counted, and told to observers
DEAD_LETTERS_KEPT: Final = 100  # the newest; every one is counted, and told to observers


class Status(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"


class Health(msgspec.Struct, frozen=True):
    """Degraded while an actor is in quarantine. Each is named with the crash that was one too many."""

    status: Status
    quarantined: tuple[Poison, ...]

    def __str__(self) -> str:
        return "; ".join(
            [self.status.value, *(f"{poison.ref.name} crashed: {poison.error!r}" for poison in self.quarantined)]
        )


class Counts(msgspec.Struct):
    """How often things have happened since the kernel was made."""

    spawned: int = 0
    stopped: int = 0
    crashed: int = 0
    restarted: int = 0
    killed: int = 0
    dead_letters: int = 0


class StopReport(msgspec.Struct, frozen=True):
    """What was still under way when the kernel stopped."""

    drained: bool  # whether all mail and work was done before the grace ended
    undelivered: int  # messages, each a dead letter
    killed: int  # actors that had not stopped in time, and had no last word
    timers: int  # that were armed and will not fire
    works_cancelled: int
    works_abandoned: tuple[str, ...]  # those that ignored their cancellation, by name


class Kernel(ABC):
    def __init__(self, clock: Clock, entropy: Entropy, ready: Any) -> None:
        self.clock = clock
        self.entropy = entropy
        self.ready = ready  # cells whose turn it is to be; how they are picked is the subclass's
        self.asleep = False  # whether the subclass must be woken when something becomes ready
        self.closing = False  # whether messages from outside are refused
        self.running = False  # whether turns are being run at this moment
        self.timers = TimerQueue()
        self.works = 0  # async work under way
        self.observers = Observers()
        self.counts = Counts()
        self.dead_letters: deque[DeadLetter] = deque(maxlen=DEAD_LETTERS_KEPT)
        self.poison: deque[Poison] = deque(maxlen=POISON_KEPT)
        self.quarantine: dict[int, Poison] = {}
        self._serial = 0
        self.root: Cell[Never] = Cell(self, None, 0, _Root, NOTHING)

    # For code outside actors

    @overload
    def spawn(self, build: Callable[[], Actor[M]], *, name: str | None = None) -> Ref[M]: ...
    @overload
    def spawn(self, build: Callable[[S], Actor[M]], snapshot: S, *, name: str | None = None) -> Ref[M]: ...
    def spawn(self, build: Any, snapshot: Any = NOTHING, *, name: str | None = None) -> Ref[Any]:
        """Start an actor at the top of the tree. It is rebuilt with `build` from the last snapshot it saved."""
        if self.closing and self._is_outside():
            raise IntakeClosed(self.root.name, build)
        return self.spawn_under(self.root, build, snapshot, name)

    def revive(self, ref: Ref[Any]) -> None:
        """Release an actor from quarantine. It goes on from its last snapshot, with the mail it kept."""
        failures.revive(self.own(ref))

    def join(self, ref: Ref[Any]) -> Promise[EndReason]:
        """Await an actor's end."""
        promise: Promise[EndReason] = self.make_promise()
        cell = self.own(ref)
        if cell.ended is not None:
            promise.set_result(cell.ended)
        else:
            joins = cell.tie().joins
            joins[promise] = None
            promise.add_done_callback(lambda _: joins.pop(promise, None))
        return promise

    def health(self) -> Health:
        return Health(Status.DEGRADED if self.quarantine else Status.OK, tuple(self.quarantine.values()))

    def observe(self, observer: Observer) -> None:
        self.observers.add(observer)

    def unobserve(self, observer: Observer) -> None:
        self.observers.remove(observer)

    def report_stop(
        self, before: Counts, drained: bool, timers: int, works: int, abandoned: tuple[str, ...]
    ) -> StopReport:
        """What became of everything, given the counts from before the stop."""
        return StopReport(
            drained=drained,
            undelivered=self.counts.dead_letters - before.dead_letters,
            killed=self.counts.killed - before.killed,
            timers=timers,
            works_cancelled=works,
            works_abandoned=abandoned,
        )

    # For cells and their effects

    def spawn_under(self, parent: Cell[Any], build: Any, snapshot: Any, name: str | None) -> Cell[Any]:
        if not parent.alive:
            raise MisuseError(f"{parent.name} is {parent.state} and cannot start children")
        self._serial = serial = self._serial + 1
        cell: Cell[Any] = Cell(self, parent, serial, build, snapshot)
        cell.given_name = name
        parent.tie().children[serial] = cell
        self.counts.spawned += 1
        if self.observers.listening:
            self.observers.tell(lambda observer: observer.spawned(cell))
        return cell

    def check_intake(self, cell: Cell[Any], message: Any) -> None:
        """While the kernel stops, take messages only from those who are finishing their work."""
        if cell.state is not STOPPED and self._is_outside():
            raise IntakeClosed(cell.name, message)

    def own(self, ref: Ref[Any]) -> Cell[Any]:
        if isinstance(ref, Cell) and ref.kernel is self:
            return ref
        raise MisuseError(f"{ref!r} is not an actor of this kernel")

    def arm(self, delay_s: float, alarm: Alarm) -> None:
        if not 0 <= delay_s < float("inf"):
            raise MisuseError(f"a timer needs a delay of 0 seconds or more, not {delay_s}")
        self.timers.add(self.clock.now() + delay_s, alarm)
        if self.asleep:
            self.wake()

    def count_timers(self) -> int:
        """How many timers of actors are armed."""
        return sum(isinstance(alarm, ActorTimer) for alarm in self.timers.armed())

    def launch(self, work: ActorWork, run: Callable[[], Awaitable[Any]]) -> ActorWork:
        self.works += 1

        def done(outcome: AnyOutcome) -> None:
            self.works -= 1
            work.finish(outcome)

        work.run(self.run_work(work.name, run, done))
        return work

    def bury(self, cell: Cell[Any], message: Any, reason: DeadReason) -> None:
        letter = DeadLetter(cell, message, reason)
        self.counts.dead_letters += 1
        self.dead_letters.append(letter)
        self.tell_observers(lambda observer: observer.dead_letter(letter))

    def book(self, cell: Cell[Any], message: Any, error: BaseException) -> Poison:
        """Keep a crash with the message that caused it. Never raises."""
        poison = Poison(cell, message, error, _written_out(error), self.clock.now())
        _let_go_of_frames(error)
        self.counts.crashed += 1
        self.poison.append(poison)
        self.tell_observers(lambda observer: observer.crashed(poison))
        return poison

    def tell_observers(self, hook: Callable[[Observer], None]) -> None:
        if self.observers.listening:
            self.observers.tell(hook)

    def _is_outside(self) -> bool:
        return not self.running and not self.is_at_work()

    # What the two kernels do differently

    @abstractmethod
    def wake(self) -> None:
        """Called when something became ready while `asleep`."""

    @abstractmethod
    def make_promise(self) -> Promise[Any]: ...

    @abstractmethod
    def sleep(self, seconds: float) -> Awaitable[None]: ...

    @abstractmethod
    def run_work(
        self, name: str, run: Callable[[], Awaitable[Any]], done: Callable[[AnyOutcome], None]
    ) -> Callable[[], None]:
        """Start async work, call `done` exactly once with its outcome, and answer how to cancel it."""

    @abstractmethod
    def is_at_work(self) -> bool:
        """Whether the caller is async work that the kernel itself has started."""


def _written_out(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:  # an error can be so broken that it cannot even be shown
        return f"{type(error).__name__}, which cannot be shown"


def _let_go_of_frames(error: BaseException) -> None:
    """They would keep alive the actor that crashed, with everything it knew."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = None
        waiting += (each.__cause__, each.__context__)
        waiting += getattr(each, "exceptions", ())  # of a group


class _Root(Actor[Never]):
    """The parent of those who have no other. It receives nothing."""

    __slots__ = ()

    def receive(self, message: Never) -> None:
        raise InternalError(f"the root actor received {message!r}")
