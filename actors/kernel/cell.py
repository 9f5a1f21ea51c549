"""The kernel's side of an actor: its mailbox, its place in the tree, and its turns.

A cell outlives the actor object in it: after a crash a new one is built into the same cell, which keeps its
name, mail, children and watchers. An idle cell has no mailbox. The first message to wait sits in `head`;
only a second one makes `queue`, and both are gone when the cell is idle again.
Invariant: a cell is READY exactly while it is in the kernel's ready queue or in its own turn.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from understudy.actors.errors import MisuseError
from understudy.actors.kernel import failures, stopping
from understudy.actors.kernel.actor import Actor
from understudy.actors.kernel.contract import EndReason, Promise, Ref, Reply, Terminated
from understudy.actors.kernel.effects import ActorTimer, ActorWork
from understudy.actors.kernel.entropy import Entropy
from understudy.actors.kernel.errors import ActorCrashed, ActorStopped, MailboxFull
from understudy.actors.kernel.observer import DeadReason
from understudy.actors.kernel.order import IDLE, NOTHING, QUARANTINED, READY, START, STOP, STOPPING, Order
from understudy.actors.kernel.work import Outcome

if TYPE_CHECKING:
    from understudy.actors.kernel.kernel import Kernel

M = TypeVar("M")
T = TypeVar("T")

CONTROL_CAPACITY: Final = 1_000  # messages; control is rare, a flood of it is a fault in the sender
_HOOK_LEFT_EMPTY: Final[Any] = cast("Any", Actor).started


class Ties:
    """What most actors do not have, kept apart so that they do not pay for it."""

    __slots__ = ("asks", "children", "joins", "restarts", "watchers", "watching", "works")

    def __init__(self) -> None:
        self.children: dict[int, Cell[Any]] = {}
        self.watchers: dict[Cell[Any], None] = {}
        self.watching: dict[Cell[Any], None] = {}
        self.joins: dict[Promise[EndReason], None] = {}
        self.asks: dict[Reply[Any], Any] = {}
        self.works: dict[ActorWork, None] = {}
        self.restarts: list[float] = []


class Cell(Generic[M]):
    """One actor in the kernel. Others see it as a `Ref`, the actor itself as its `Context`."""

    __slots__ = (
        "actor",
        "build",
        "control",
        "ended",
        "given_name",
        "head",
        "kernel",
        "life",
        "parent",
        "queue",
        "room",
        "serial",
        "snapshot",
        "state",
        "ties",
    )

    def __init__(self, kernel: "Kernel", parent: "Cell[Any] | None", serial: int, build: Any, snapshot: Any) -> None:
        self.kernel = kernel
        self.parent = parent
        self.serial = serial
        self.build = build
        self.snapshot = snapshot
        self.given_name: str | None = None
        self.state = IDLE
        self.head: Any = NOTHING
        self.queue: deque[Any] | None = None
        self.control: deque[Any] | None = None
        self.ties: Ties | None = None
        self.ended: EndReason | None = None
        self.life = 0
        self.actor: Actor[M] | None = None
        self.incarnate()

    def __repr__(self) -> str:
        return f"<{self.name} {self.state.value}, {self.depth} waiting>"

    # What others may do

    @property
    def name(self) -> str:
        if self.given_name is not None:
            return self.given_name
        maker = getattr(self.build, "func", self.build)  # looks through functools.partial
        return f"{getattr(maker, '__name__', type(maker).__name__)}-{self.serial}"

    @property
    def alive(self) -> bool:
        return self.state is IDLE or self.state is READY

    @property
    def receives(self) -> bool:
        """Whether mail is taken in: also in quarantine, where it waits."""
        return self.state is IDLE or self.state is READY or self.state is QUARANTINED

    @property
    def depth(self) -> int:
        return (self.head is not NOTHING) + len(self.queue or ()) + len(self.control or ())

    def tell(self, message: M) -> None:
        kernel = self.kernel
        if kernel.closing:
            kernel.check_intake(self, message)
        if self.state is IDLE:
            self.head = message
            self.state = READY
            kernel.ready.append(self)
            if kernel.asleep:
                kernel.wake()
        elif self.state is READY or self.state is QUARANTINED:
            queue = self.queue
            if queue is None:
                queue = self.queue = deque()
            if len(queue) >= self.room and (len(queue) > self.room or self.head is not NOTHING):
                raise MailboxFull(self.name, message, self.room + 1)
            queue.append(message)
        else:
            kernel.bury(self, message, DeadReason.STOPPED)

    def signal(self, message: M) -> None:
        if self.kernel.closing:
            self.kernel.check_intake(self, message)
        if self.control is not None and len(self.control) >= CONTROL_CAPACITY:
            raise MailboxFull(f"{self.name} (control lane)", message, CONTROL_CAPACITY)
        self.put_control(message)

    def ask(self, make: Callable[[Reply[T]], M], *, urgent: bool = False) -> Promise[T]:
        promise: Promise[T] = self.kernel.make_promise()
        reply = Reply(promise)
        message = make(reply)
        if self.state is QUARANTINED:
            reply.fail(ActorCrashed(self.name))
            return promise
        if urgent:
            self.signal(message)
        else:
            self.tell(message)
        if not self.receives:
            reply.fail(ActorStopped(self.name))
        else:
            asks = self.tie().asks
            asks[reply] = message
            promise.add_done_callback(lambda _: asks.pop(reply, None))
        return promise

    def stop(self, *, drain: bool = False) -> None:
        if self.state is QUARANTINED:
            stopping.begin(self)
        elif self.state is READY and drain:
            if STOP not in (self.queue or ()):
                self.deliver(STOP)
        elif self.alive and STOP not in (self.control or ()):
            self.put_control(STOP)

    def kill(self) -> None:
        stopping.kill(self)

    # What the actor itself may ask for

    @property
    def now(self) -> float:
        return self.kernel.clock.now()

    @property
    def entropy(self) -> Entropy:
        return self.kernel.entropy

    @property
    def children(self) -> tuple[Ref[Any], ...]:
        return tuple(self.ties.children.values()) if self.ties else ()

    def save(self, snapshot: Any) -> None:
        self.snapshot = snapshot

    def spawn(self, build: Any, snapshot: Any = NOTHING, *, name: str | None = None) -> Ref[Any]:
        return self.kernel.spawn_under(self, build, snapshot, name)

    def watch(self, ref: Ref[Any]) -> None:
        other = self.kernel.own(ref)
        if other.ended is not None:
            self.put_control(Terminated(other, other.ended))
            return
        other.tie().watchers[self] = None
        self.tie().watching[other] = None

    def unwatch(self, ref: Ref[Any]) -> None:
        other = self.kernel.own(ref)
        if other.ties and self.ties:
            other.ties.watchers.pop(self, None)
            self.ties.watching.pop(other, None)

    def after(self, delay_s: float, message: M) -> ActorTimer:
        timer = ActorTimer(self, message)
        self.kernel.arm(delay_s, timer)
        return timer

    def start(self, work: Callable[[], Awaitable[T]], then: Callable[[Outcome[T]], M]) -> ActorWork:
        if not self.alive:
            raise MisuseError(f"{self.name} is {self.state} and cannot start work")
        return self.kernel.launch(ActorWork(self, then), work)

    def sleep(self, seconds: float) -> Awaitable[None]:
        return self.kernel.sleep(seconds)

    # What the kernel does with it

    def turn(self, limit: int) -> int:
        """Handle at most `limit` messages, control first. Answers how many, and at least one."""
        if self.state is not READY:  # killed while it was queued, or taking its children with it
            return stopping.resume(self, limit) if self.state is STOPPING else 1
        handled = 0
        message = self.head
        try:
            if self.queue is None and self.control is None and message is not NOTHING:
                self.head = NOTHING  # the common case: one message, and nothing else waits
                handled = 1
                self.actor.receive(message)  # type: ignore[union-attr]  # READY: there is an actor
            while handled < limit:
                if self.control is not None:
                    message = self._take_control()
                elif self.head is not NOTHING:
                    message, self.head = self.head, NOTHING
                elif self.queue:
                    message = self.queue.popleft()
                else:
                    break
                handled += 1
                if message.__class__ is not Order:
                    self.actor.receive(message)  # type: ignore[union-attr]  # READY: there is an actor
                elif not self._obey(message):
                    break
        except BaseException as error:
            failures.crashed(self, None if message.__class__ is Order else message, error)
            if isinstance(error, KeyboardInterrupt):
                raise  # the user's own Ctrl+C: booked as a crash, and passed on to the loop
        finally:
            if self.state is READY:
                if self.queue or self.control is not None or self.head is not NOTHING:
                    self.kernel.ready.append(self)
                else:
                    self.state = IDLE
                    self.queue = None
        return handled

    def deliver(self, message: Any) -> None:
        """Put a message into the mailbox that the actor itself has asked for: it is not bounded again."""
        if self.state is IDLE:
            self.head = message
            self.make_ready()
        elif self.receives:
            if self.queue is None:
                self.queue = deque()
            self.queue.append(message)
        else:
            self.kernel.bury(self, message, DeadReason.STOPPED)

    def put_control(self, message: Any) -> None:
        if not self.receives:
            self.kernel.bury(self, message, DeadReason.STOPPED)
            return
        if self.control is None:
            self.control = deque()
        self.control.append(message)
        if self.state is IDLE:
            self.make_ready()

    def make_ready(self) -> None:
        """An idle cell has something to do."""
        self.state = READY
        self.enqueue()

    def enqueue(self) -> None:
        """Wait for a turn. The caller knows that the cell is not waiting for one already."""
        self.kernel.ready.append(self)
        if self.kernel.asleep:
            self.kernel.wake()

    def incarnate(self) -> None:
        """Begin a life: build the actor from its snapshot, and have it started before anything else reaches it."""
        actor: Actor[M] = self.build() if self.snapshot is NOTHING else self.build(self.snapshot)
        self.end_life()
        actor.context = self
        self.actor = actor
        self.room = actor.mailbox_capacity - 1  # besides the one in `head`
        if type(actor).started is not _HOOK_LEFT_EMPTY:
            self.control = deque((START, *(self.control or ())))
            if self.state is IDLE:
                self.make_ready()

    def end_life(self) -> None:
        """What the actor object had begun is nobody's any more."""
        self.life += 1
        self.actor = None

    def tie(self) -> Ties:
        if self.ties is None:
            self.ties = Ties()
        return self.ties

    def _take_control(self) -> Any:
        control: deque[Any] = self.control  # type: ignore[assignment]  # the caller has looked
        message = control.popleft()
        if not control:
            self.control = None
        return message

    def _obey(self, order: Order) -> bool:
        """Do what the kernel wants. Answers whether the actor goes on."""
        if order.error is not None:
            if order.life is None or order.life == self.life:
                raise order.error
            return True
        if order is STOP:
            stopping.begin(self)
            return False
        self.actor.started()  # type: ignore[union-attr]  # READY: there is an actor
        return True
