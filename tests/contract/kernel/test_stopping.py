"""What is promised of an orderly stop: intake closed, drained or cut off, and everything left over reported."""

from typing import Any

import pytest

from tests.contract.kernel.world import Ask, Recorder, World
from understudy.actors.kernel import Actor, ActorStopped, IntakeClosed, Outcome, Ref


class Logging(Recorder):
    __slots__ = ()

    def stopped(self) -> None:
        self.seen.append(f"{self.context.name} stopped")


class Endless(Actor[Any]):
    """Tells itself one message after the other."""

    __slots__ = ()

    def receive(self, message: Any) -> None:
        self.context.tell(message)


class Passing(Actor[int]):
    """Passes a number on until it is 0, by way of async work."""

    __slots__ = ("target",)

    def __init__(self, target: Ref[Any]) -> None:
        self.target = target

    def receive(self, message: int) -> None:
        async def work() -> int:
            self.target.tell(message)
            return message - 1

        def then(outcome: Outcome[int]) -> int:
            return getattr(outcome, "value", 0)

        if message:
            self.context.start(work, then)


async def test_actors_end_in_reverse_order_of_start(world: World) -> None:
    seen: list[Any] = []
    for name in ("first", "second", "third"):
        world.kernel.spawn(Logging, seen, name=name)
    report = await world.close(grace_s=1)
    assert seen == ["third stopped", "second stopped", "first stopped"]
    assert report.drained


async def test_what_waits_is_handled_before_the_end(world: World) -> None:
    seen: list[Any] = []
    ref = world.kernel.spawn(Logging, seen, name="a")
    ref.tell("work")
    report = await world.close(grace_s=1)
    assert seen == ["work", "a stopped"]
    assert (report.drained, report.undelivered) == (True, 0)


async def test_work_under_way_may_finish_and_send_within_the_grace(world: World) -> None:
    seen: list[Any] = []
    recorder = world.kernel.spawn(Recorder, seen)
    world.kernel.spawn(Passing, recorder).tell(3)
    report = await world.close(grace_s=30)
    assert seen == [3, 2, 1]
    assert report.drained


async def test_intake_is_closed_to_the_outside_and_hands_back(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [], name="a")
    world.kernel.closing = True
    with pytest.raises(IntakeClosed, match="a did not take str: the kernel is stopping") as refusal:
        ref.tell("hello")
    assert refusal.value.message == "hello"
    for refused in (lambda: ref.signal("x"), lambda: ref.ask(lambda reply: reply), lambda: world.kernel.spawn(Endless)):
        with pytest.raises(IntakeClosed):
            refused()
    world.kernel.closing = False


async def test_actors_that_never_rest_are_cut_off_and_their_mail_is_reported(world: World) -> None:
    ref = world.kernel.spawn(Endless)
    ref.tell("round and round")
    report = await world.close(grace_s=0.01)
    assert (report.drained, report.undelivered) == (False, 1)
    assert [letter.message for letter in world.kernel.dead_letters] == ["round and round"]
    assert not ref.alive


async def test_timers_and_work_that_are_cut_off_are_reported(world: World) -> None:
    class Busy(Actor[Any]):
        __slots__ = ()

        def started(self) -> None:
            self.context.after(1e6, "never")
            self.context.start(lambda: self.context.sleep(1e6), lambda outcome: outcome)

        def receive(self, message: Any) -> None: ...

    world.kernel.spawn(Busy)
    report = await world.close(grace_s=0.01)
    assert (report.drained, report.timers, report.works_cancelled) == (False, 1, 1)
    assert report.works_abandoned == ()
    assert world.kernel.works == 0


async def test_ask_that_was_not_answered_fails_at_the_end(world: World) -> None:
    class Silent(Actor[Ask]):
        __slots__ = ()

        def receive(self, message: Ask) -> None: ...

    promise = world.kernel.spawn(Silent).ask(Ask)
    await world.close(grace_s=1)
    with pytest.raises(ActorStopped):
        await world.answer(promise)


async def test_message_after_the_end_is_a_dead_letter(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    await world.close(grace_s=1)
    ref.tell("late")
    assert [letter.message for letter in world.kernel.dead_letters] == ["late"]


async def test_ten_thousand_actors_end(world: World) -> None:
    seen: list[Any] = []
    for _ in range(10_000):
        world.kernel.spawn(Logging, seen)
    await world.close(grace_s=1)
    assert len(seen) == 10_000
    assert world.kernel.counts.stopped == 10_001  # the root among them
