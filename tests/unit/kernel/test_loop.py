"""What is promised of the kernel on a loop: other code keeps running, threads can post, and it opens once."""

from typing import Any, cast

import anyio
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
    all_fired = anyio.Event()

    class Bursting(Recorder):
        __slots__ = ()

        def started(self) -> None:
            for number in range(5_000):
                self.context.after(0, number)

        def receive(self, message: Any) -> None:
            super().receive(message)
            if message == 4_999:
                all_fired.set()

    async with LoopKernel(clock=SteppingClock(SLICE_S)) as kernel:
        kernel.spawn(Bursting, order)
        worker = kernel.spawn(Recorder, order)
        await checkpoint()
        worker.tell("work")
        await all_fired.wait()
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


class Working(Actor[Any]):
    """Starts the work that it is told, and passes on how it ended."""

    __slots__ = ("outcomes",)

    def __init__(self, outcomes: list[Any]) -> None:
        self.outcomes = outcomes

    def receive(self, message: Any) -> None:
        if callable(message):
            self.context.start(cast("Any", message), lambda outcome: outcome)
        else:
            self.outcomes.append(message)


async def test_cancelled_close_still_ends_everything_and_can_be_called_again() -> None:
    ended: list[str] = []

    async def slow_to_end() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
            ended.append("work")

    async with LoopKernel(grace_s=3_600) as kernel:
        kernel.spawn(Working, []).tell(slow_to_end)
        with anyio.move_on_after(0.01) as scope:
            await kernel.close()
        assert scope.cancelled_caught
        assert ended == ["work"]
        report = await kernel.close()
    assert (report.drained, report.works_cancelled, kernel.works) == (False, 1, 0)


async def test_cancel_around_the_kernel_leaves_nothing_running() -> None:
    kernel = LoopKernel(grace_s=3_600)
    with anyio.move_on_after(0.01):
        async with kernel:
            kernel.spawn(Working, []).tell(anyio.sleep_forever)
            await anyio.sleep_forever()
    assert kernel.works == 0


async def test_work_cannot_close_its_own_kernel() -> None:
    outcomes: list[Any] = []
    async with LoopKernel() as kernel:
        kernel.spawn(Working, outcomes).tell(kernel.close)
        await kernel.settled()
    assert isinstance(outcomes[0].error, MisuseError)


async def test_kernel_that_is_not_open_cannot_be_closed() -> None:
    with pytest.raises(MisuseError, match="not open"):
        await LoopKernel().close()


async def test_spawn_after_the_end_is_refused() -> None:
    async with LoopKernel() as kernel:
        pass
    with pytest.raises(IntakeClosed):
        kernel.spawn(Recorder, [])


async def test_work_of_an_inner_kernel_may_send_to_the_outer_one_while_that_drains() -> None:
    seen: list[str] = []
    outcomes: list[Any] = []
    inner_runs, outer_closes = anyio.Event(), anyio.Event()

    async with LoopKernel(grace_s=60) as outer:
        recorder = outer.spawn(Recorder, seen)

        async def send() -> None:
            inner_runs.set()
            await outer_closes.wait()
            recorder.tell("from the inner kernel's work")

        async def run_inner() -> None:
            async with LoopKernel(grace_s=60) as inner:
                inner.spawn(Working, outcomes).tell(send)
                await inner.settled()

        outer.spawn(Working, []).tell(run_inner)
        await inner_runs.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(outer.close)
            await checkpoint()
            assert outer.closing
            outer_closes.set()
    assert seen == ["from the inner kernel's work"]


async def test_a_thousand_actors_that_never_rest_have_their_last_word() -> None:
    said: list[str] = []

    class Talking(Endless):
        __slots__ = ()

        def stopped(self) -> None:
            said.append(self.context.name)

    async with LoopKernel(grace_s=0) as kernel:
        for _ in range(1_000):
            kernel.spawn(Talking, []).tell(0)
        await checkpoint()
        report = await kernel.close()
    assert len(said) == 1_000
    assert report.killed == 0


async def test_timer_that_is_always_due_does_not_keep_the_kernel_from_being_drained() -> None:
    class Ticking(Actor[str]):
        __slots__ = ()

        def started(self) -> None:
            self.context.after(0, "tick")

        def receive(self, message: str) -> None:
            self.context.after(0, "tick")

    async with LoopKernel(grace_s=3_600) as kernel:
        kernel.spawn(Ticking)
        report = await kernel.close()
    assert report.drained
