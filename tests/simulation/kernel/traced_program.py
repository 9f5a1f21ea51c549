"""A world with everything that could upset an order: crashes, stops, watches, timers, work, draws. Prints its trace."""

import sys
from typing import Any

from understudy.actors.kernel import Actor, Outcome, Ref, SimulatedKernel, Succeeded, Terminated, Trace


class Player(Actor[Any]):
    __slots__ = ("others", "rounds")

    def __init__(self, others: list[Ref[Any]]) -> None:
        self.others = others
        self.rounds = 0

    def started(self) -> None:
        for other in self.others:
            self.context.watch(other)
        self.context.after(self.context.entropy.random(), "tick")

    def receive(self, message: Any) -> None:
        self.rounds += 1
        match message:
            case "tick":
                self.pick().tell("ball")
                self.context.start(self.work, lambda outcome: outcome)
                self.context.after(self.context.entropy.random(), "tick")
            case "ball" if self.context.entropy.below(10) == 0:
                raise ValueError(message)
            case "ball" if self.context.entropy.below(40) == 0:
                self.context.stop()
            case Succeeded() | Terminated():
                self.pick().signal("cheer")
            case _:
                pass

    def pick(self) -> Ref[Any]:
        return self.others[self.context.entropy.below(len(self.others))]

    async def work(self) -> Outcome[Any] | None:
        await self.context.sleep(self.context.entropy.random())
        return None


def main(seed: int) -> None:
    kernel = SimulatedKernel(seed)
    trace = Trace(kernel.clock, lines_kept=None)
    kernel.observe(trace)
    players: list[Ref[Any]] = []
    for name in ("ada", "barbara", "edsger", "grace"):
        players.append(kernel.spawn(Player, players, name=name))
    kernel.spawn(Player, players, name="last")
    kernel.run(until=100, steps_max=2_000)
    kernel.close()
    sys.stdout.write("\n".join([*trace.lines, trace.digest()]) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
