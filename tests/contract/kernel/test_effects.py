"""What is promised of timers, async work, asks and observers."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.contract.kernel.world import Answering, Ask, Recorder, World
from understudy.actors.errors import MisuseError
from understudy.actors.kernel import (
    Actor,
    ActorStopped,
    Cancelled,
    DeadLetter,
    DeadReason,
    EndReason,
    Failed,
    Observer,
    Outcome,
    Poison,
    Ref,
    Reply,
    Succeeded,
    Timer,
    Work,
)


class Delayed(Actor[Any]):
    """Arms a timer for every (delay, text) it is told, and answers once as many have come as it was asked to await."""

    __slots__ = ("awaited", "reply", "seen", "timers")

    def __init__(self, seen: list[str]) -> None:
        self.seen = seen
        self.timers: list[Timer] = []
        self.awaited = 0
        self.reply: Reply[list[str]] | None = None

    def receive(self, message: Any) -> None:
        match message:
            case (float(delay), str(text)):
                self.timers.append(self.context.after(delay, text))
            case (int(count), Reply() as reply):
                self.awaited, self.reply = count, reply
            case "cancel":
                self.timers.pop().cancel()
            case BaseException():
                raise message
            case text:
                self.seen.append(text)
        if self.reply is not None and len(self.seen) >= self.awaited:
            self.reply.send(self.seen)


class Working(Actor[Any]):
    """Starts the work that it is told, and keeps how it ended."""

    __slots__ = ("outcomes", "works")

    def __init__(self, outcomes: list[Outcome[Any]]) -> None:
        self.outcomes = outcomes
        self.works: list[Work] = []

    def receive(self, message: Any) -> None:
        if isinstance(message, Succeeded | Failed | Cancelled):
            self.outcomes.append(message)
        elif message == "cancel":
            self.works.pop().cancel()
        elif isinstance(message, BaseException):
            raise message
        else:
            sleep = self.context.sleep
            self.works.append(self.context.start(lambda: message(sleep), lambda outcome: outcome))


Sleep = Callable[[float], Awaitable[None]]


async def return_seven(sleep: Sleep) -> int:
    await sleep(0.001)
    return 7


async def never_end(sleep: Sleep) -> None:
    await sleep(1e6)


def raising(error: BaseException) -> Callable[[Sleep], Awaitable[None]]:
    async def work(sleep: Sleep) -> None:
        await sleep(0)
        raise error

    return work


async def until_work_is_done(world: World) -> None:
    """Work takes time: let it pass."""
    ticker = world.kernel.spawn(Delayed, [])
    while world.kernel.works:
        ticker.tell((0.001, "tick"))
        await world.answer(ticker.ask(lambda reply: (1, reply)))
    await world.settle()


async def test_timers_fire_in_the_order_in_which_they_are_due(world: World) -> None:
    ref = world.kernel.spawn(Delayed, [])
    for timer in ((0.003, "third"), (0.001, "first"), (0.002, "second"), (0.003, "fourth")):
        ref.tell(timer)
    answer = await world.answer(ref.ask(lambda reply: (4, reply)))
    assert answer == ["first", "second", "third", "fourth"]


async def test_cancelled_timer_does_not_fire(world: World) -> None:
    ref = world.kernel.spawn(Delayed, [])
    for message in ((0.001, "cancelled"), "cancel", (0.002, "after")):
        ref.tell(message)
    assert await world.answer(ref.ask(lambda reply: (1, reply))) == ["after"]


async def test_timer_to_a_stopped_actor_does_nothing(world: World) -> None:
    other = world.kernel.spawn(Delayed, [])
    ref = world.kernel.spawn(Delayed, [])
    ref.tell((0.001, "lapsed"))
    ref.stop(drain=True)
    other.tell((0.002, "after"))
    assert await world.answer(other.ask(lambda reply: (1, reply))) == ["after"]
    assert world.kernel.counts.dead_letters == 0


async def test_timer_lapses_when_its_actor_restarts(world: World) -> None:
    ref = world.kernel.spawn(Delayed, [])
    for message in ((0.001, "lapsed"), ValueError("boom"), (0.002, "armed anew")):
        ref.tell(message)
    assert await world.answer(ref.ask(lambda reply: (1, reply))) == ["armed anew"]


@pytest.mark.parametrize("delay", [-1.0, float("nan"), float("inf")])
async def test_timer_needs_a_real_delay(world: World, delay: float) -> None:
    ref = world.kernel.spawn(Delayed, [])
    ref.tell((delay, "never"))
    await world.settle()
    assert isinstance(world.kernel.poison[0].error, MisuseError)


async def test_timer_is_delivered_to_a_full_mailbox(world: World) -> None:
    class Small(Delayed):
        __slots__ = ()
        mailbox_capacity = 1

    ref = world.kernel.spawn(Small, [])
    ref.tell((0.0, "due"))
    await world.settle()
    assert await world.answer(ref.ask(lambda reply: (1, reply))) == ["due"]


async def test_work_comes_back_as_a_message(world: World) -> None:
    outcomes: list[Any] = []
    world.kernel.spawn(Working, outcomes).tell(return_seven)
    await world.settle()
    await until_work_is_done(world)
    assert outcomes == [Succeeded(7)]


@pytest.mark.parametrize(
    "error", [ValueError("boom"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("own")]
)
async def test_whatever_work_raises_is_its_outcome(world: World, error: BaseException) -> None:
    outcomes: list[Any] = []
    world.kernel.spawn(Working, outcomes).tell(raising(error))
    await world.settle()
    await until_work_is_done(world)
    assert outcomes == [Failed(error)]


async def test_cancelled_work_says_so(world: World) -> None:
    outcomes: list[Any] = []
    ref = world.kernel.spawn(Working, outcomes)
    ref.tell(never_end)
    ref.tell("cancel")
    await until_work_is_done(world)
    assert outcomes == [Cancelled()]


async def test_work_ends_with_the_actor_that_started_it(world: World) -> None:
    outcomes: list[Any] = []
    ref = world.kernel.spawn(Working, outcomes)
    ref.tell(never_end)
    ref.stop(drain=True)
    await until_work_is_done(world)
    assert outcomes == []
    assert world.kernel.counts.dead_letters == 0


async def test_result_of_work_that_outlived_its_actor_is_a_dead_letter(world: World) -> None:
    ref = world.kernel.spawn(Working, [])

    async def stubborn(sleep: Sleep) -> str:
        ref.tell(ValueError("boom"))
        try:
            await sleep(1e6)
        except BaseException:
            return "too late"
        return "in time"

    ref.tell(stubborn)
    await world.settle()
    await until_work_is_done(world)
    assert [letter.message for letter in world.kernel.dead_letters] == [Succeeded("too late")]
    assert [letter.reason for letter in world.kernel.dead_letters] == [DeadReason.LATE]


async def test_ask_of_a_stopped_actor_fails_at_once(world: World) -> None:
    ref = world.kernel.spawn(Answering, 0, name="gone")
    ref.kill()
    promise = ref.ask(Ask)
    with pytest.raises(ActorStopped, match="gone has stopped and will not answer"):
        await world.answer(promise)


async def test_ask_fails_when_the_actor_stops_before_it_answers(world: World) -> None:
    ref = world.kernel.spawn(Answering, 0)
    promise = ref.ask(Ask)
    ref.stop()
    with pytest.raises(ActorStopped):
        await world.answer(promise)


async def test_ask_is_answered(world: World) -> None:
    ref = world.kernel.spawn(Answering, 41)
    assert await world.answer(ref.ask(Ask)) == 42


async def test_answer_that_nobody_awaits_any_more_is_dropped(world: World) -> None:
    ref = world.kernel.spawn(Answering, 0)
    ref.ask(Ask).cancel()
    assert await world.answer(ref.ask(Ask)) == 2
    assert not world.kernel.poison


class Log(Observer):
    def __init__(self) -> None:
        self.events: list[str] = []

    def spawned(self, ref: Ref[Any]) -> None:
        self.events.append(f"spawned {ref.name}")

    def stopped(self, ref: Ref[Any], reason: EndReason) -> None:
        self.events.append(f"{reason.value} {ref.name}")

    def crashed(self, poison: Poison) -> None:
        self.events.append(f"crashed {poison.ref.name} on {poison.message}")

    def restarted(self, ref: Ref[Any], error: BaseException) -> None:
        self.events.append(f"restarted {ref.name}")

    def quarantined(self, ref: Ref[Any], error: BaseException) -> None:
        self.events.append(f"quarantined {ref.name}")

    def dead_letter(self, letter: DeadLetter) -> None:
        self.events.append(f"dead letter {letter.message}")

    def turn(self, ref: Ref[Any], depth: int, handled: int, seconds: float) -> None:
        self.events.append(f"turn of {ref.name}: {handled} of {depth} in {seconds >= 0}")


async def test_observer_sees_the_life_of_an_actor(world: World) -> None:
    log = Log()
    world.kernel.observe(log)
    ref = world.kernel.spawn(Recorder, [], name="a")
    ref.tell("hello")
    await world.settle()
    ref.tell(ValueError("boom"))
    await world.settle()
    ref.stop()
    await world.settle()
    ref.tell("late")
    assert log.events == [
        "spawned a",
        "turn of a: 1 of 1 in True",
        "crashed a on boom",
        "restarted a",
        "turn of a: 1 of 1 in True",
        "stopped a",
        "turn of a: 1 of 1 in True",
        "dead letter late",
    ]


async def test_observer_that_left_hears_nothing_more(world: World) -> None:
    log = Log()
    world.kernel.observe(log)
    world.kernel.unobserve(log)
    world.kernel.spawn(Recorder, []).tell("hello")
    await world.settle()
    assert log.events == []


async def test_observer_that_raises_is_counted_and_disturbs_nothing(world: World) -> None:
    class Faulty(Observer):
        def spawned(self, ref: Ref[Any]) -> None:
            raise ValueError("faulty")

    seen: list[str] = []
    world.kernel.observe(Faulty())
    world.kernel.spawn(Recorder, seen).tell("hello")
    await world.settle()
    assert seen == ["hello"]
    assert world.kernel.observers.errors == 1
