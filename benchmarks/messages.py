"""Samples of messages between actors: `python -m benchmarks.messages WORK SYSTEM` prints one as JSON.

Each work is done in the same way by every system: sends come from one coroutine, round robin, which gives
way to the loop after every 1,000; an actor counts what it receives.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pykka

from benchmarks.figures import run_sample
from benchmarks.mailboxes import Tally, box_of, spawn_pair
from understudy.actors.kernel import Actor, LoopKernel

ACTORS = 100_000
SENDS_PER_YIELD = 1_000


class Counting(Actor[Any]):
    __slots__ = ("tally",)

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def receive(self, message: Any) -> None:
        self.tally.count()


async def send_to_all(tells: Sequence[Callable[[Any], None]], rounds: int, tally: Tally) -> float:
    began = time.perf_counter()
    for _ in range(rounds):
        for number, tell in enumerate(tells):
            tell(1)
            if not number % SENDS_PER_YIELD:
                await asyncio.sleep(0)
    await tally.done.wait()
    return rounds * len(tells) / (time.perf_counter() - began)


async def fan_out(system: str) -> dict[str, float]:
    if system == "pykka":
        return fan_out_pykka()
    rounds = 1 if system == "anyio stream" else 5
    tally = Tally(rounds * ACTORS)
    if system == "understudy":
        async with LoopKernel() as kernel:
            tells = [kernel.spawn(Counting, tally).tell for _ in range(ACTORS)]
            return {"per_second": await send_to_all(tells, rounds, tally)}
    boxes = [box_of(system) for _ in range(ACTORS)]

    async def actor(get: Callable[[], Awaitable[Any]]) -> None:
        while True:
            await get()
            tally.count()

    tasks = [asyncio.create_task(actor(get)) for _, get in boxes]
    await asyncio.sleep(0)
    answer = {"per_second": await send_to_all([put for put, _ in boxes], rounds, tally)}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return answer


def fan_out_pykka() -> dict[str, float]:
    """A thread per actor: 1,000 of them, where the others have 100,000."""
    total, lock, done = 50_000, threading.Lock(), threading.Event()

    class Threaded(pykka.ThreadingActor):
        def on_receive(self, message: Any) -> None:
            nonlocal total
            with lock:
                total -= 1
                if not total:
                    done.set()

    sent = total
    refs = [Threaded.start() for _ in range(1_000)]
    began = time.perf_counter()
    for number in range(sent):
        refs[number % len(refs)].tell(1)
    done.wait()
    seconds = time.perf_counter() - began
    pykka.ActorRegistry.stop_all()
    return {"per_second": sent / seconds}


async def ping_pong(system: str) -> dict[str, float]:
    if system == "pykka":
        return ping_pong_pykka()
    rounds = 200_000 if system == "understudy" else 50_000
    done = asyncio.Event()
    if system == "understudy":
        async with LoopKernel() as kernel:
            one = spawn_pair(kernel, rounds)
            await kernel.settled()
            began = time.perf_counter()
            one.tell(done)
            await done.wait()
            return {"per_second": rounds / (time.perf_counter() - began)}
    (put_one, get_one), (put_two, get_two) = box_of(system), box_of(system)

    async def player(get: Callable[[], Awaitable[Any]], put: Callable[[Any], None]) -> None:
        for _ in range(rounds):
            put(await get())
        done.set()

    tasks = [asyncio.create_task(player(get_one, put_two)), asyncio.create_task(player(get_two, put_one))]
    began = time.perf_counter()
    put_one(1)
    await done.wait()
    answer = {"per_second": rounds / (time.perf_counter() - began)}
    await asyncio.gather(*tasks)
    return answer


def ping_pong_pykka() -> dict[str, float]:
    done, rounds = threading.Event(), 5_000

    class Threaded(pykka.ThreadingActor):
        def __init__(self) -> None:
            super().__init__()
            self.left = rounds
            self.other: Any = None

        def on_receive(self, message: Any) -> None:
            if self.other is None:
                self.other = message
            elif self.left:
                self.left -= 1
                self.other.tell(message)
            else:
                done.set()

    one, two = Threaded.start(), Threaded.start()
    one.tell(two)
    two.tell(one)
    began = time.perf_counter()
    one.tell(1)
    done.wait()
    seconds = time.perf_counter() - began
    pykka.ActorRegistry.stop_all()
    return {"per_second": rounds / seconds}


if __name__ == "__main__":
    run_sample({"fan_out": fan_out, "ping_pong": ping_pong})
