"""Samples of memory, timers and time: `python -m benchmarks.footprint WORK SYSTEM` prints one as JSON."""

import asyncio
import gc
import heapq
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psutil

from benchmarks.figures import run_sample
from benchmarks.mailboxes import Tally, box_of, spawn_pair
from understudy.actors.kernel import Actor, LoopKernel, SimulatedKernel


class Idle(Actor[Any]):
    __slots__ = ()

    def receive(self, message: Any) -> None:
        message.count()


async def idle(system: str) -> dict[str, float]:
    """Bytes are resident memory per actor, the registration and the allocator's own waste included."""
    process = psutil.Process()
    count = 1_000_000 if system == "understudy" else 50_000
    gc.collect()
    before = process.memory_info().rss
    began = time.perf_counter()
    if system == "understudy":
        async with LoopKernel(grace_s=60) as kernel:
            for _ in range(count):
                kernel.spawn(Idle)
            seconds = time.perf_counter() - began
            gc.collect()
            size = (process.memory_info().rss - before) / count
            tally = Tally(count)
            for child in kernel.root.children:
                child.tell(tally)
            await tally.done.wait()
            return {"bytes": size, "per_second": count / seconds, "answered": count - tally.left}
    boxes = [box_of(system) for _ in range(count)]
    tasks = [asyncio.create_task(forever(get)) for _, get in boxes]
    await asyncio.sleep(0)
    seconds = time.perf_counter() - began
    gc.collect()
    size = (process.memory_info().rss - before) / count
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"bytes": size, "per_second": count / seconds, "answered": count}


async def forever(get: Callable[[], Awaitable[Any]]) -> None:
    while True:
        await get()


class Alarmed(Actor[int]):
    """Arms as many timers as it is told, and counts those that fire."""

    __slots__ = ("delays", "fired")

    def __init__(self, delays: list[float]) -> None:
        self.delays = delays
        self.fired = 0

    def started(self) -> None:
        for delay in self.delays:
            self.context.after(delay, 1)

    def receive(self, message: int) -> None:
        self.fired += message
        if self.fired == len(self.delays):
            self.context.save(self.fired)


async def timers(system: str) -> dict[str, float]:
    count = 1_000_000
    chance = random.Random(1)
    delays = [chance.random() * 86_400 for _ in range(count)]
    began = time.perf_counter()
    if system == "understudy":
        kernel = SimulatedKernel()
        kernel.spawn(Alarmed, delays)
        fired = kernel.run() - 1  # the first step is the start of the actor
    else:
        heap: list[tuple[float, int]] = []
        for number, delay in enumerate(delays):
            heapq.heappush(heap, (delay, number))
        fired = 0
        while heap:
            heapq.heappop(heap)
            fired += 1
    return {"per_second": count / (time.perf_counter() - began), "fired": fired}


async def loop_hold(system: str) -> dict[str, float]:
    """How long other code waits for its turn beside a kernel that is never idle."""
    gaps: list[float] = []
    ball = asyncio.Event()
    async with LoopKernel(grace_s=0) as kernel:
        for _ in range(1_000):
            spawn_pair(kernel, rounds=10**9).tell(ball)
        for _ in range(1_000):
            began = time.perf_counter()
            await asyncio.sleep(0)
            gaps.append((time.perf_counter() - began) * 1e3)
    return {"p99_ms": statistics.quantiles(gaps, n=100)[98], "max_ms": max(gaps)}


async def exit_times(system: str) -> dict[str, float]:
    """Seconds from the end of the grace to the end of the process."""
    return {"seconds": exit_time("stubborn"), "million_seconds": exit_time("million")}


def exit_time(scenario: str) -> float:
    command = [sys.executable, "-m", "benchmarks.footprint", "stop", scenario]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate()
    ended = time.monotonic()
    grace_ended: float = json.loads(output.splitlines()[-1])["grace_ended"]
    return ended - grace_ended


class Stubborn(Actor[Any]):
    __slots__ = ()

    def started(self) -> None:
        self.context.start(self.work, lambda outcome: outcome)

    def receive(self, message: Any) -> None: ...

    async def work(self) -> None:
        while True:
            try:
                await self.context.sleep(3_600)
            except asyncio.CancelledError:
                continue


async def stop(scenario: str) -> dict[str, float]:
    grace_s = 0.2
    async with LoopKernel(grace_s=grace_s) as kernel:
        if scenario == "million":
            for _ in range(1_000_000):
                kernel.spawn(Idle)
        kernel.spawn(Stubborn)
        await kernel.settled(0.01)
        grace_ended = time.monotonic() + grace_s
    return {"grace_ended": grace_ended}


if __name__ == "__main__":
    run_sample({"idle": idle, "timers": timers, "loop_hold": loop_hold, "exit": exit_times, "stop": stop})
