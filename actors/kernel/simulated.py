"""The kernel in virtual time, without a loop: the same actors, run by seed.

Each step hands one message to an actor that the seed picks among those that are ready. When nothing can
run, time jumps to the next timer. The same seed and the same calls give the same steps, everywhere.
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final, Protocol, TypeGuard

import msgspec

from understudy.actors.kernel.cell import Cell
from understudy.actors.kernel.clock import VirtualClock
from understudy.actors.kernel.contract import Promise
from understudy.actors.kernel.entropy import SeededEntropy
from understudy.actors.kernel.fiber import Fiber, SimulatedPromise
from understudy.actors.kernel.kernel import Kernel, StopReport
from understudy.actors.kernel.work import AnyOutcome

GRACE_S: Final = 5.0
DRAIN_STEPS_MAX: Final = 1_000_000  # actors that chat for ever take no virtual time, so the grace alone would not end


class Steppable(Protocol):
    """What takes turns: an actor's cell, or a piece of async work."""

    def turn(self, limit: int, /) -> int: ...


class SimulatedKernel(Kernel):
    """Spawn and tell as on a loop, then `run`. `seed` decides the order of steps and what actors draw."""

    def __init__(self, seed: int = 0) -> None:
        self._virtual = VirtualClock()
        self._ready: list[Steppable] = []
        self.seed = seed
        entropy = SeededEntropy(seed)
        self._picks = entropy.fork("dispatcher")
        self._fibers: dict[Fiber, None] = {}
        super().__init__(self._virtual, entropy.fork("actors"), self._ready)

    def run(self, *, until: float = inf, steps_max: int | None = None) -> int:
        """Step until nothing can run, the time `until`, or the limit. Answers how many steps were taken."""
        ready, random = self._ready, self._picks.random
        turn = self._observed_turn if self.observers.listening else _turn
        steps = 0
        self.running = True
        try:
            while steps != steps_max:
                if ready:
                    index = int(random() * len(ready))
                    ready[index], ready[-1] = ready[-1], ready[index]
                    turn(ready.pop())
                    steps += 1
                elif not self._jump(until):
                    break
        finally:
            self.running = False
        return steps

    def close(self, grace_s: float = GRACE_S) -> StopReport:
        """Stop as on a loop: drain for at most the grace of virtual time, then end every actor."""
        self.closing = True
        before = msgspec.structs.replace(self.counts)
        deadline = self.clock.now() + grace_s
        for _ in range(DRAIN_STEPS_MAX):
            if not (self._ready or self.works) or not self.run(until=deadline, steps_max=1):
                break
        drained = not self._ready and not self.works
        timers, works = self.count_timers(), self.works
        self.root.stop()
        self._run_out()
        self.root.kill()
        self._run_out()
        return self.report_stop(before, drained, timers, works, tuple(fiber.name for fiber in self._fibers))

    def _run_out(self) -> None:
        """Let everything end that can end without time."""
        self.run(until=self.clock.now(), steps_max=DRAIN_STEPS_MAX + 2 * self.counts.spawned)

    # What the kernel asks for

    def wake(self) -> None:
        """Never asleep: it runs when it is told to."""

    def make_promise(self) -> Promise[Any]:
        return SimulatedPromise()

    def sleep(self, seconds: float) -> Awaitable[None]:
        promise: SimulatedPromise[None] = SimulatedPromise()
        self.arm(seconds, promise)
        return promise

    def run_work(
        self, name: str, run: Callable[[], Awaitable[Any]], done: Callable[[AnyOutcome], None]
    ) -> Callable[[], None]:
        def finish(fiber: Fiber, outcome: AnyOutcome) -> None:
            del self._fibers[fiber]
            done(outcome)

        fiber = Fiber(name, run, self._ready, finish)
        self._fibers[fiber] = None
        return fiber.cancel

    def is_at_work(self) -> bool:
        return False  # work runs in steps, and `running` covers them

    def _jump(self, until: float) -> bool:
        """Move time to the next timer and fire all that are due then. Answers whether there was one."""
        entry = self.timers.pop_due(until)
        if entry is None:
            if self._virtual.now() < until < inf:
                self._virtual.advance_to(until)
            return False
        due = entry[0]
        self._virtual.advance_to(due)
        while entry is not None:
            entry[1].fire()
            entry = self.timers.pop_due(due)
        return True

    def _observed_turn(self, item: Steppable) -> None:
        if not _is_cell(item):
            item.turn(1)
            return
        depth = item.depth
        handled = item.turn(1)
        self.observers.tell(lambda observer: observer.turn(item, depth, handled, 0.0))


def _is_cell(item: Steppable) -> TypeGuard[Cell[Any]]:
    return isinstance(item, Cell)


def _turn(item: Steppable) -> None:
    item.turn(1)
