"""The kernel's own invariants, looked at after every step of random lives in which hooks, too, do what they should not."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.errors import MisuseError
from understudy.actors.kernel import Actor, Observer, Ref, SimulatedKernel
from understudy.actors.kernel.cell import Cell
from understudy.actors.kernel.errors import RefusedError
from understudy.actors.kernel.order import NOTHING, State

DEEDS = (
    "tell",
    "tell",
    "tell",
    "signal",
    "spawn",
    "stop",
    "drain",
    "kill",
    "crash",
    "crash",
    "watch",
    "work",
    "timer",
    "revive",
)


class Restless(Actor[Any]):
    """Does one of many things with every message, and at its end as well."""

    __slots__ = ("acquaintances",)

    def __init__(self, acquaintances: list[Ref[Any]]) -> None:
        self.acquaintances = acquaintances

    def started(self) -> None:
        self.acquaintances.append(self.context)

    def receive(self, message: Any) -> None:
        self.act(DEEDS[self.context.entropy.below(len(DEEDS))])

    def stopped(self) -> None:
        self.act(DEEDS[self.context.entropy.below(len(DEEDS))])

    def act(self, deed: str) -> None:
        other = self.acquaintances[self.context.entropy.below(len(self.acquaintances))]
        match deed:
            case "tell":
                other.tell("hello")
                self.context.tell("again")
            case "signal":
                other.signal("listen")
            case "spawn":
                if len(self.acquaintances) < 60:
                    self.context.spawn(Restless, self.acquaintances)
            case "stop":
                other.stop()
            case "drain":
                other.stop(drain=True)
            case "kill":
                other.kill()
            case "watch":
                self.context.watch(other)
            case "work":
                self.context.start(lambda: self.context.sleep(1), lambda outcome: outcome)
            case "timer":
                self.context.after(1, "tick")
            case _:
                raise ValueError(deed)


class Ends(Observer):
    def __init__(self) -> None:
        self.count: Counter[Ref[Any]] = Counter()

    def stopped(self, ref: Ref[Any], reason: Any) -> None:
        self.count[ref] += 1


def look(kernel: SimulatedKernel, cells: list[Any]) -> None:
    queued = Counter(item for item in kernel.ready if isinstance(item, Cell))
    for cell in cells:
        waits = cell.head is not NOTHING or bool(cell.queue) or cell.control is not None
        match cell.state:
            case State.READY | State.STOPPING:
                assert queued[cell] == 1, f"{cell} is queued {queued[cell]} times"
                assert waits or cell.state is State.STOPPING
            case State.IDLE:
                assert not waits
                assert queued[cell] == 0
                assert cell.actor is not None
            case State.QUARANTINED:
                assert cell.actor is None
                assert cell.serial in kernel.quarantine
            case State.STOPPED:
                assert not waits
                assert cell.actor is None
                assert cell.ties is None
                assert cell.ended is not None


@settings(max_examples=2_000)
@given(seed=st.integers(0, 2**32), actors=st.integers(1, 6), messages=st.integers(1, 12))
def test_invariants_hold_after_every_step(seed: int, actors: int, messages: int) -> None:
    kernel = SimulatedKernel(seed)
    ends = Ends()
    kernel.observe(ends)
    everyone: list[Ref[Any]] = []
    first = [kernel.spawn(Restless, everyone) for _ in range(actors)]
    for number in range(messages):
        first[number % actors].tell("go")
    for _ in range(400):
        if not kernel.run(steps_max=1):
            break
        look(kernel, everyone)
        if kernel.quarantine and kernel.entropy.below(4) == 0:
            poison = next(iter(kernel.quarantine.values()))
            kernel.revive(poison.ref)
    report = kernel.close()
    assert kernel.counts.stopped == kernel.counts.spawned + 1
    assert set(ends.count.values()) == {1}
    assert report.works_abandoned == ()
    assert kernel.works == 0
    assert all(isinstance(each.error, ValueError | MisuseError | RefusedError) for each in kernel.poison)
