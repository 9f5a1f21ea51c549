"""What is promised of the kernel on a loop: other code keeps running, threads can post, and it opens once."""

from typing import Any

import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from understudy.actors.errors import MisuseError
from understudy.actors.kernel import Actor, DeadReason, IntakeClosed, LoopKernel, Ref
from understudy.actors.kernel.kernel import TURN_MESSAGES
from understudy.actors.kernel.loop import LOOK_MESSAGES, SLICE_S


class Endless(Actor[int]):
    """Two of these keep a kernel busy for ever."""

    __slots__ = ("log", "other")

    def __init__(self, log: list[int]) -> None:
        self.log = log
        self.other: Ref[int] | None = None

    def receive(self, message: int) -> None:
        self.log.append(message)
        (self.other or self.context).tell(message + 1)


class Recorder(Actor[Any]):
    __slots__ = ("seen",)

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def receive(self, message: Any) -> None:
        self.seen.append(message)


class SteppingClock:
    """Moves on by a fixed step whenever it is read, as if the messages between two looks took that long."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.time = 0.0

    def now(self) -> float:
        self.time += self.step
        return self.time


async def test_other_code_on_the_loop_keeps_running_beside_a_busy_kernel() -> None:
    log: list[int] = []
    async with LoopKernel(grace_s=0) as kernel:
        kernel.spawn(Endless, log).tell(0)
        lengths = []
        for _ in range(20):
            await checkpoint()
            lengths.append(len(log))
    assert lengths == sorted(set(lengths))  # both sides got on, every time


async def test_slice_ends_at_the_first_look_at_the_clock_after_its_time() -> None:
    log: list[int] = []
    looks = 4
    async with LoopKernel(grace_s=0, clock=SteppingClock(SLICE_S / looks)) as kernel:
        kernel.spawn(Endless, log).tell(0)
        for _ in range(5):
            before = len(log)
            await checkpoint()
            assert 0 < len(log) - before <= looks * LOOK_MESSAGES + TURN_MESSAGES


async def test_actor_with_much_mail_lets_others_have_their_turn() -> None:
    seen: list[str] = []
    async with LoopKernel() as kernel:
        flooded, other = kernel.spawn(Recorder, seen), kernel.spawn(Recorder, seen)
        for _ in range(900):
            flooded.tell("flood")
        other.tell("other")
        await kernel.settled()
    assert seen.index("other") == TURN_MESSAGES


async def test_burst_of_timers_does_not_starve_actors() -> None:
    order: list[Any] = []

    class Bursting(Recorder):
        __slots__ = ()
        mailbox_capacity = 10_000

        def started(self) -> None:
            for number in range(5_000):
                self.context.after(0, number)

    async with LoopKernel(clock=SteppingClock(SLICE_S)) as kernel:
        kernel.spawn(Bursting, order)
        worker = kernel.spawn(Recorder, order)
        await checkpoint()
        worker.tell("work")
        await kernel.settled()
    assert order.index("work") < 5_000
    assert [each for each in order if each != "work"] == list(range(5_000))


async def test_message_posted_from_a_thread_arrives() -> None:
    seen: list[str] = []
    async with LoopKernel() as kernel:
        ref = kernel.spawn(Recorder, seen)
        await to_thread.run_sync(kernel.post, ref, "from a thread")
        await checkpoint()
        await kernel.settled()
    assert seen == ["from a thread"]


async def test_refused_post_is_a_dead_letter() -> None:
    class Tiny(Recorder):
        __slots__ = ()
        mailbox_capacity = 1

    async with LoopKernel() as kernel:
        ref = kernel.spawn(Tiny, [])

        def post_three() -> None:
            for text in "abc":
                kernel.post(ref, text)

        await to_thread.run_sync(post_three)
        await checkpoint()
        await kernel.settled()
        assert {letter.reason for letter in kernel.dead_letters} == {DeadReason.REFUSED}


async def test_actors_spawned_before_the_kernel_opens_run_when_it_does() -> None:
    seen: list[str] = []
    kernel = LoopKernel()
    kernel.spawn(Recorder, seen).tell("early")
    async with kernel:
        await kernel.settled()
        assert seen == ["early"]


async def test_kernel_opens_once() -> None:
    kernel = LoopKernel()
    with pytest.raises(MisuseError, match="not open"):
        kernel.spawn(Recorder, []).ask(lambda reply: reply)
    async with kernel:
        pass
    with pytest.raises(MisuseError, match="opened once"):
        await kernel.__aenter__()


async def test_closing_twice_gives_the_same_report() -> None:
    async with LoopKernel() as kernel:
        kernel.spawn(Endless, []).tell(0)
        first = await kernel.close(0)
        assert await kernel.close() is first


async def test_settled_answers_no_when_it_takes_too_long() -> None:
    async with LoopKernel(grace_s=0) as kernel:
        kernel.spawn(Endless, []).tell(0)
        assert not await kernel.settled(0.01)


async def test_post_after_the_loop_has_closed_is_refused() -> None:
    def run() -> tuple[LoopKernel, Ref[Any]]:
        import asyncio

        async def main() -> tuple[LoopKernel, Ref[Any]]:
            async with LoopKernel() as kernel:
                return kernel, kernel.spawn(Recorder, [])

        return asyncio.run(main())

    kernel, ref = await to_thread.run_sync(run)
    with pytest.raises(IntakeClosed):
        kernel.post(ref, "too late")
