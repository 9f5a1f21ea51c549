"""A tour of the kernel in a few seconds: `make demo`, or run this file.

It wakes 100,000 actors, lets one crash until it is quarantined, brings it back, stops everything in
order, and then lives through a day of retries in virtual time, twice, from one seed.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.rule import Rule

from understudy.actors.kernel import Actor, LoopKernel, MonotonicClock, Ref, Reply, SimulatedKernel, Trace

ACTORS = 100_000
DAY_S = 86_400.0
console = Console(highlight=False)


class Echo(Actor[Callable[[], None]]):
    """Calls what it is told."""

    __slots__ = ()

    def receive(self, message: Callable[[], None]) -> None:
        message()


class Counter(Actor[Any]):
    """Counts, saves what it counted, and crashes on what it cannot add."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def receive(self, message: Any) -> None:
        if isinstance(message, Reply):
            message.send(self.count)
            return
        self.count += message
        self.context.save(self.count)


class Scraper(Actor[str]):
    """Fails by chance, waits twice as long after each failure, and succeeds in the end."""

    __slots__ = ("attempt", "done")

    def __init__(self, done: list[float]) -> None:
        self.done = done
        self.attempt = 0

    def started(self) -> None:
        self.context.after(self.context.entropy.random() * DAY_S, "fetch")

    def receive(self, message: str) -> None:
        if self.context.entropy.random() < 0.6:
            self.attempt += 1
            self.context.after(min(2.0 * 2**self.attempt, 3_600.0), "fetch again")
        else:
            self.done.append(self.context.now)


async def wake_many(kernel: LoopKernel) -> None:
    clock, answered, all_answered = MonotonicClock(), 0, asyncio.Event()

    def answer() -> None:
        nonlocal answered
        answered += 1
        if answered == ACTORS:
            all_answered.set()

    actors = [kernel.spawn(Echo) for _ in range(ACTORS)]
    began = clock.now()
    for actor in actors:
        actor.tell(answer)
    await all_answered.wait()
    seconds = clock.now() - began
    console.print(f"{answered:,} actors were told something and answered: {answered / seconds:,.0f} messages a second")


async def crash_one(kernel: LoopKernel) -> None:
    counter: Ref[Any] = kernel.spawn(Counter, 0, name="counter")
    for message in (40, "not a number", 2):
        counter.tell(message)
    count = await counter.ask(lambda reply: reply)
    console.print(f"counter crashed once, went on from its snapshot, and says {count}")
    for _ in range(3):
        counter.tell("not a number")
    counter.tell(100)
    await kernel.settled()
    console.print(f"after the fourth crash in five seconds the kernel is [red]{kernel.health()}[/red]")
    console.print(f"its mail is kept: {counter.depth} message waits")
    kernel.revive(counter)
    console.print(f"revived by hand, it is {kernel.health()} and says {await counter.ask(lambda reply: reply)}")


def live_a_day(seed: int) -> tuple[str, str]:
    kernel = SimulatedKernel(seed)
    trace = Trace(kernel.clock)
    kernel.observe(trace)
    done: list[float] = []
    for _ in range(1_000):
        kernel.spawn(Scraper, done)
    steps = kernel.run()
    summary = f"{len(done):,} scrapers done after {kernel.clock.now() / 3_600:.1f} hours and {steps:,} steps"
    return summary, trace.digest()


async def main() -> int:
    console.print(Rule("real time, on an asyncio loop"))
    async with LoopKernel() as kernel:
        await wake_many(kernel)
        await crash_one(kernel)
        report = await kernel.close()
    console.print(f"stopped in order: drained={report.drained}, messages left over: {report.undelivered}")

    console.print(Rule("virtual time, by seed"))
    first, second, other = live_a_day(seed=7), live_a_day(seed=7), live_a_day(seed=8)
    console.print(f"seed 7: {first[0]}, trace {first[1][:12]}")
    console.print(f"seed 7: {second[0]}, trace {second[1][:12]} {'(the same)' if second == first else '(DIFFERENT)'}")
    console.print(f"seed 8: {other[0]}, trace {other[1][:12]}")
    return 0 if first == second != other else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
