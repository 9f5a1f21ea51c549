"""What is promised of an actor that crashes: restart, poison, quarantine, escalation, and a kernel that goes on."""

import gc
import weakref
from typing import Any

import pytest

from tests.contract.kernel.world import Ask, Recorder, World
from understudy.actors.errors import MisuseError
from understudy.actors.kernel import (
    Actor,
    ActorCrashed,
    ChildCrashed,
    EndReason,
    MailboxFull,
    Observer,
    Poison,
    Quarantined,
    Ref,
    Reply,
    Status,
    Supervision,
    Terminated,
    Verdict,
)


class Counter(Actor[Any]):
    """Counts, and saves the count only when it is told to."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def receive(self, message: Any) -> None:
        if isinstance(message, Reply):
            message.send(self.count)
        elif message == "save":
            self.context.save(self.count)
        elif isinstance(message, BaseException):
            self.count = -1
            raise message
        else:
            self.count += message


class Fragile(Recorder):
    __slots__ = ()
    supervision = Supervision(on_crash=Verdict.STOP)


class Escalating(Recorder):
    __slots__ = ()
    supervision = Supervision(on_crash=Verdict.ESCALATE)


async def count_of(world: World, ref: Ref[Any]) -> int:
    return await world.answer(ref.ask(lambda reply: reply))


async def test_actor_restarts_from_its_own_last_snapshot(world: World) -> None:
    ref = world.kernel.spawn(Counter, 10)
    for message in (1, "save", 5, ValueError("boom"), 100):
        ref.tell(message)
    assert await count_of(world, ref) == 111
    assert world.kernel.counts.restarted == 1


async def test_actor_that_saved_nothing_restarts_from_its_first_snapshot(world: World) -> None:
    ref = world.kernel.spawn(Counter, 10)
    for message in (1, ValueError("boom")):
        ref.tell(message)
    assert await count_of(world, ref) == 10


async def test_poison_message_is_kept_with_its_error_and_not_delivered_again(world: World) -> None:
    seen: list[Any] = []
    ref = world.kernel.spawn(Recorder, seen)
    poison = ValueError("boom")
    for message in ("a", poison, "b"):
        ref.tell(message)
    await world.settle()
    assert seen == ["a", "b"]
    [kept] = world.kernel.poison
    assert (kept.ref, kept.message, kept.error) == (ref, poison, poison)
    assert "in receive" in kept.traceback


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), BaseException("own"), RecursionError()])
async def test_whatever_is_raised_is_a_crash_and_the_kernel_goes_on(world: World, error: BaseException) -> None:
    seen: list[Any] = []
    crashing = world.kernel.spawn(Recorder, seen)
    other = world.kernel.spawn(Recorder, seen)
    crashing.tell(error)
    crashing.tell("crashing goes on")
    other.tell("other goes on")
    await world.settle()
    assert sorted(seen) == ["crashing goes on", "other goes on"]
    assert [poison.error for poison in world.kernel.poison] == [error]


async def test_the_fourth_crash_in_five_seconds_means_quarantine(world: World) -> None:
    seen: list[Any] = []
    ref = world.kernel.spawn(Recorder, seen, name="flaky")
    for number in range(3):
        ref.tell(ValueError(number))
    ref.tell("still here")
    await world.settle()
    assert seen == ["still here"]
    assert world.kernel.health().status is Status.OK
    ref.tell(ValueError("last"))
    ref.tell("waits")
    await world.settle()
    assert seen == ["still here"]
    assert world.kernel.health().status is Status.DEGRADED
    assert str(world.kernel.health()) == "degraded; flaky crashed: ValueError('last')"


async def test_quarantined_actor_keeps_its_mail_within_bounds(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    for number in range(4):
        ref.tell(ValueError(number))
    await world.settle()
    for number in range(Recorder.mailbox_capacity):
        ref.tell(number)
    with pytest.raises(MailboxFull):
        ref.tell("one too many")
    assert ref.depth == Recorder.mailbox_capacity
    assert world.kernel.counts.dead_letters == 0


async def test_revived_actor_goes_on_with_its_mail_and_a_clean_record(world: World) -> None:
    ref = world.kernel.spawn(Counter, 0)
    for message in (7, "save", *(ValueError(number) for number in range(4)), 1):
        ref.tell(message)
    await world.settle()
    ref.tell(1)
    world.kernel.revive(ref)
    assert await count_of(world, ref) == 9
    assert world.kernel.health().status is Status.OK
    ref.tell(ValueError("once more"))
    assert await count_of(world, ref) == 7


async def test_only_a_quarantined_actor_can_be_revived(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [], name="healthy")
    with pytest.raises(MisuseError, match="healthy is idle, not quarantined"):
        world.kernel.revive(ref)


async def test_quarantined_actor_can_be_stopped(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    for number in range(4):
        ref.tell(ValueError(number))
    await world.settle()
    ref.stop()
    assert await world.answer(world.kernel.join(ref)) is EndReason.FAILED
    assert world.kernel.health().status is Status.OK


async def test_watcher_is_told_of_quarantine(world: World) -> None:
    seen: list[Any] = []
    error = ValueError("last")

    class Watcher(Recorder):
        __slots__ = ()

        def started(self) -> None:
            child = self.context.spawn(Recorder, [])
            self.context.watch(child)
            for number in range(3):
                child.tell(ValueError(number))
            child.tell(error)

    world.kernel.spawn(Watcher, seen)
    await world.settle()
    [told] = seen
    assert isinstance(told, Quarantined)
    assert told.error is error


async def test_policy_stop_ends_the_actor(world: World) -> None:
    ref = world.kernel.spawn(Fragile, [])
    ref.tell(ValueError("boom"))
    ref.tell("left over")
    await world.settle()
    assert await world.answer(world.kernel.join(ref)) is EndReason.FAILED
    assert [letter.message for letter in world.kernel.dead_letters] == ["left over"]


async def test_escalated_crash_restarts_the_parent(world: World) -> None:
    starts: list[Ref[Any]] = []

    class Parent(Actor[Any]):
        __slots__ = ()

        def started(self) -> None:
            starts.append(self.context.spawn(Escalating, []))

        def receive(self, message: Any) -> None: ...

    world.kernel.spawn(Parent, name="parent")
    await world.settle()
    starts[0].tell(ValueError("boom"))
    await world.settle()
    assert [ref.alive for ref in starts] == [False, True]
    escalated = world.kernel.poison[-1]
    assert isinstance(escalated.error, ChildCrashed)
    assert escalated.ref.name == "parent"
    assert isinstance(escalated.error.__cause__, ValueError)


async def test_crash_escalated_with_nobody_above_is_quarantined(world: World) -> None:
    ref = world.kernel.spawn(Escalating, [])
    ref.tell(ValueError("boom"))
    await world.settle()
    assert [poison.ref for poison in world.kernel.health().quarantined] == [ref]


async def test_children_and_watches_outlive_a_restart(world: World) -> None:
    seen: list[Any] = []

    class Parent(Recorder):
        __slots__ = ()

        def receive(self, message: Any) -> None:
            if message == "adopt":
                self.context.watch(self.context.spawn(Fragile, []))
            elif message == "hurt":
                self.context.children[0].tell(ValueError("hurt"))
            else:
                super().receive(message)

    ref = world.kernel.spawn(Parent, seen)
    for message in ("adopt", ValueError("boom"), "hurt"):
        ref.tell(message)
    await world.settle()
    [told] = seen
    assert isinstance(told, Terminated)
    assert told.reason is EndReason.FAILED


async def test_actor_that_cannot_be_rebuilt_is_quarantined_and_not_tried_for_ever(world: World) -> None:
    built: list[int] = []

    def build(fail: list[Any]) -> Recorder:
        built.append(1)
        if fail:
            raise OSError("cannot build")
        return Recorder(fail)

    class Breaking(Recorder):
        __slots__ = ()

        def receive(self, message: Any) -> None:
            self.context.save(["fail"])
            raise ValueError(message)

    ref = world.kernel.spawn(lambda snapshot: Breaking(snapshot) if not snapshot else build(snapshot), list[Any]())
    ref.tell("boom")
    await world.settle()
    assert len(built) == 3
    assert [repr(poison.error) for poison in world.kernel.health().quarantined] == ["OSError('cannot build')"]


async def test_crash_in_started_counts_and_has_no_message(world: World) -> None:
    class Stillborn(Recorder):
        __slots__ = ()

        def started(self) -> None:
            raise ValueError("never again")

    world.kernel.spawn(Stillborn, [])
    await world.settle()
    assert len(world.kernel.poison) == 4
    assert {poison.message for poison in world.kernel.poison} == {None}
    assert world.kernel.health().status is Status.DEGRADED


async def test_constructor_that_raises_is_the_spawners_error(world: World) -> None:
    class Unbuildable(Recorder):
        __slots__ = ()

        def __init__(self) -> None:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        world.kernel.spawn(Unbuildable)
    assert world.kernel.counts.spawned == 0


async def test_ask_fails_when_the_actor_crashes_on_it(world: World) -> None:
    class Crashing(Actor[Ask]):
        __slots__ = ()

        def receive(self, message: Ask) -> None:
            raise ValueError("boom")

    ref = world.kernel.spawn(Crashing, name="crashing")
    promise = ref.ask(Ask)
    with pytest.raises(ActorCrashed, match="crashing crashed before it answered") as failure:
        await world.answer(promise)
    assert isinstance(failure.value.__cause__, ValueError)


async def test_ask_that_still_waits_outlives_a_crash(world: World) -> None:
    ref = world.kernel.spawn(Counter, 5)
    ref.tell(ValueError("boom"))
    assert await count_of(world, ref) == 5


@pytest.mark.parametrize("policy", [Fragile, Escalating])
async def test_ask_fails_as_crashed_whatever_the_policy(world: World, policy: type[Recorder]) -> None:
    class Parent(Actor[Any]):
        __slots__ = ()

        def receive(self, message: Any) -> None:
            message.send(self.context.spawn(policy, []))

    parent: Ref[Any] = world.kernel.spawn(Parent)
    child = await world.answer(parent.ask(lambda reply: reply))
    promise = child.ask(lambda reply: ValueError("boom"))
    with pytest.raises(ActorCrashed):
        await world.answer(promise)


async def quarantined(world: World) -> Ref[Any]:
    ref = world.kernel.spawn(Counter, 0)
    for number in range(4):
        ref.tell(ValueError(number))
    await world.settle()
    return ref


async def test_ask_of_a_quarantined_actor_fails_at_once(world: World) -> None:
    promise = (await quarantined(world)).ask(lambda reply: reply)
    with pytest.raises(ActorCrashed):
        await world.answer(promise)


async def test_ask_that_waits_fails_when_the_actor_is_quarantined(world: World) -> None:
    ref = world.kernel.spawn(Counter, 0)
    for number in range(4):
        ref.tell(ValueError(number))
    promise = ref.ask(lambda reply: reply)
    with pytest.raises(ActorCrashed):
        await world.answer(promise)


async def test_quarantined_watcher_is_told_after_it_was_revived(world: World) -> None:
    seen: list[Any] = []
    watched = world.kernel.spawn(Recorder, [])

    class Watcher(Recorder):
        __slots__ = ()

        def receive(self, message: Any) -> None:
            if message == "watch":
                self.context.watch(watched)
            else:
                super().receive(message)

    watcher = world.kernel.spawn(Watcher, seen)
    for message in ("watch", *(ValueError(number) for number in range(4))):
        watcher.tell(message)
    await world.settle()
    watched.stop()
    await world.settle()
    world.kernel.revive(watcher)
    await world.settle()
    assert seen == [Terminated(watched, EndReason.STOPPED)]


class Unshowable(Exception):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        raise SystemExit("cannot be shown")


async def test_error_that_cannot_be_shown_is_a_crash_like_any_other(world: World) -> None:
    seen: list[Any] = []
    ref = world.kernel.spawn(Recorder, seen)
    ref.tell(Unshowable())
    ref.tell("goes on")
    await world.settle()
    assert seen == ["goes on"]
    assert world.kernel.poison[0].traceback == "Unshowable, which cannot be shown"


async def test_observer_may_raise_anything_at_a_crash(world: World) -> None:
    class Faulty(Observer):
        def crashed(self, poison: Poison) -> None:
            raise SystemExit("faulty")

    seen: list[Any] = []
    world.kernel.observe(Faulty())
    ref = world.kernel.spawn(Recorder, seen)
    ref.tell(ValueError("boom"))
    ref.tell("goes on")
    await world.settle()
    assert seen == ["goes on"]
    assert world.kernel.observers.errors == 1


async def test_poison_and_timers_do_not_keep_the_crashed_actor_in_memory(world: World) -> None:
    lives: list[weakref.ref[Actor[Any]]] = []

    class Heavy(Actor[Any]):
        def started(self) -> None:
            lives.append(weakref.ref(self))
            self.context.after(1e6, "lapses")

        def receive(self, message: Any) -> None:
            try:
                raise ValueError("inner")
            except ValueError as inner:
                raise RuntimeError("outer") from inner

    ref = world.kernel.spawn(Heavy)
    ref.tell("crash")
    ref.tell("crash")
    await world.settle()
    gc.collect()
    assert [life() is None for life in lives] == [True, True, False]
