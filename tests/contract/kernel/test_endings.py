"""What is promised of the end of an actor: stop against kill, the order of ends, and who is told."""

from typing import Any

import pytest

from tests.contract.kernel.world import Recorder, World
from understudy.actors.errors import MisuseError
from understudy.actors.kernel import Actor, EndReason, Ref, SimulatedKernel, Terminated


class Parent(Actor[Any]):
    """Starts as many children as its snapshot says, and writes down who ends."""

    __slots__ = ("log", "names")

    def __init__(self, snapshot: tuple[str, list[str], tuple[str, ...]]) -> None:
        _, self.log, self.names = snapshot

    def started(self) -> None:
        for name in self.names:
            self.context.spawn(Parent, (name, self.log, ()), name=name)

    def receive(self, message: Any) -> None:
        if message == "stop yourself":
            self.context.stop()
        elif message == "kill yourself":
            self.context.kill()

    def stopped(self) -> None:
        self.log.append(self.context.name)


class Watcher(Actor[Any]):
    __slots__ = ("seen", "watched")

    def __init__(self, snapshot: tuple[list[Any], Ref[Any]]) -> None:
        self.seen, self.watched = snapshot

    def started(self) -> None:
        self.context.watch(self.watched)

    def receive(self, message: Any) -> None:
        if message == "unwatch":
            self.context.unwatch(self.watched)
        else:
            self.seen.append(message)


async def family(world: World, log: list[str]) -> Ref[Any]:
    ref = world.kernel.spawn(Parent, ("parent", log, ("first", "second", "third")), name="parent")
    await world.settle()
    return ref


async def test_children_end_before_their_parent_in_reverse_order_of_start(world: World) -> None:
    log: list[str] = []
    ref = await family(world, log)
    ref.stop()
    await world.settle()
    assert log == ["third", "second", "first", "parent"]
    assert not ref.alive


async def test_kill_ends_all_below_at_once_and_without_hooks(world: World) -> None:
    log: list[str] = []
    ref = await family(world, log)
    ended = world.kernel.join(ref)
    ref.kill()
    assert not ref.alive
    assert world.kernel.counts.stopped == 4
    assert log == []
    assert await world.answer(ended) is EndReason.KILLED


@pytest.mark.parametrize(("order", "hooks"), [("stop yourself", 4), ("kill yourself", 0)])
async def test_actor_can_end_itself(world: World, order: str, hooks: int) -> None:
    log: list[str] = []
    ref = await family(world, log)
    ref.tell(order)
    ref.tell("after")
    await world.settle()
    assert not ref.alive
    assert len(log) == hooks
    assert [letter.message for letter in world.kernel.dead_letters] == ["after"]


async def test_stop_overtakes_work_that_waits(world: World) -> None:
    seen: list[Any] = []
    ref = world.kernel.spawn(Recorder, seen)
    ref.tell("work")
    ref.stop()
    await world.settle()
    assert seen == []


async def test_stopping_twice_is_stopping_once(world: World) -> None:
    log: list[str] = []
    ref = await family(world, log)
    ref.stop()
    ref.stop()
    await world.settle()
    ref.stop()
    ref.kill()
    await world.settle()
    assert log == ["third", "second", "first", "parent"]
    assert world.kernel.counts.dead_letters == 0


async def test_watcher_is_told_when_the_watched_stops(world: World) -> None:
    seen: list[Any] = []
    watched = world.kernel.spawn(Recorder, [])
    world.kernel.spawn(Watcher, (seen, watched))
    await world.settle()
    watched.stop()
    await world.settle()
    assert seen == [Terminated(watched, EndReason.STOPPED)]


async def test_watcher_of_one_that_has_ended_is_told_at_once(world: World) -> None:
    seen: list[Any] = []
    watched = world.kernel.spawn(Recorder, [])
    watched.kill()
    world.kernel.spawn(Watcher, (seen, watched))
    await world.settle()
    assert seen == [Terminated(watched, EndReason.KILLED)]


async def test_one_that_no_longer_watches_is_not_told(world: World) -> None:
    seen: list[Any] = []
    watched = world.kernel.spawn(Recorder, [])
    watcher = world.kernel.spawn(Watcher, (seen, watched))
    watcher.tell("unwatch")
    await world.settle()
    watched.stop()
    await world.settle()
    assert seen == []


async def test_watcher_that_has_ended_is_not_told_and_leaves_no_dead_letter(world: World) -> None:
    watched = world.kernel.spawn(Recorder, [])
    watcher = world.kernel.spawn(Watcher, ([], watched))
    await world.settle()
    watcher.stop()
    await world.settle()
    watched.stop()
    await world.settle()
    assert world.kernel.counts.dead_letters == 0


async def test_join_tells_code_outside_of_the_end(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    before = world.kernel.join(ref)
    ref.stop()
    assert await world.answer(before) is EndReason.STOPPED
    assert await world.answer(world.kernel.join(ref)) is EndReason.STOPPED


async def test_hook_that_raises_does_not_keep_the_actor_alive(world: World) -> None:
    class Grumpy(Recorder):
        __slots__ = ()

        def stopped(self) -> None:
            raise SystemExit("I will not go")

    ref = world.kernel.spawn(Grumpy, [])
    ref.stop()
    await world.settle()
    assert not ref.alive
    assert [repr(poison.error) for poison in world.kernel.poison] == ["SystemExit('I will not go')"]


async def test_a_deep_tree_ends_without_recursion(world: World) -> None:
    class Link(Actor[int]):
        __slots__ = ("below",)

        def __init__(self, below: int) -> None:
            self.below = below

        def started(self) -> None:
            if self.below:
                self.context.spawn(Link, self.below - 1)

        def receive(self, message: int) -> None: ...

    for end in ("stop", "kill"):
        ref = world.kernel.spawn(Link, 3_000)
        await world.settle()
        getattr(ref, end)()
        await world.settle()
    assert world.kernel.counts.stopped == world.kernel.counts.spawned == 6_002


async def test_a_ref_of_another_kernel_is_misuse(world: World) -> None:
    stranger = SimulatedKernel().spawn(Recorder, [])
    with pytest.raises(MisuseError, match="not an actor of this kernel"):
        world.kernel.join(stranger)


class LastWord(Actor[Any]):
    """Does something when it ends."""

    __slots__ = ("do",)

    def __init__(self, do: Any) -> None:
        self.do = do

    def receive(self, message: Any) -> None: ...

    def stopped(self) -> None:
        self.do(self)


async def test_an_actor_that_ends_cannot_start_children_or_work(world: World) -> None:
    world.kernel.spawn(LastWord, lambda actor: actor.context.spawn(Recorder, []))
    world.kernel.spawn(LastWord, lambda actor: actor.context.start(actor.context.sleep, lambda outcome: outcome))
    await world.close(grace_s=1)
    assert [type(poison.error) for poison in world.kernel.poison] == [MisuseError, MisuseError]
    assert world.kernel.counts.spawned == 2
    assert world.kernel.works == 0


async def test_an_actor_that_kills_itself_with_its_last_word_ends_once(world: World) -> None:
    ref = world.kernel.spawn(LastWord, lambda actor: actor.context.kill())
    ended = world.kernel.join(ref)
    ref.stop()
    assert await world.answer(ended) is EndReason.KILLED
    assert world.kernel.counts.stopped == 1


async def test_a_child_that_kills_its_parent_with_its_last_word_ends_both_once(world: World) -> None:
    class Mother(Actor[Any]):
        __slots__ = ()

        def started(self) -> None:
            for _ in range(3):
                self.context.spawn(LastWord, lambda _: mother.kill())

        def receive(self, message: Any) -> None: ...

    mother = world.kernel.spawn(Mother)
    await world.settle()
    mother.stop()
    await world.settle()
    assert world.kernel.counts.stopped == world.kernel.counts.spawned == 4
    mother.tell("nobody there")
    assert world.kernel.counts.dead_letters == 1


async def test_an_actor_told_to_stop_ends_although_it_crashes_too_often_on_the_way(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    for number in range(4):
        ref.signal(ValueError(number))
    ref.stop()
    assert await world.answer(world.kernel.join(ref)) is EndReason.FAILED


async def test_a_parent_ends_although_a_child_crashes_on_the_way(world: World) -> None:
    seen: list[Any] = []
    log: list[str] = []
    parent = await family(world, log)
    watcher = world.kernel.spawn(Watcher, (seen, parent))
    child = world.kernel.spawn(Recorder, [])
    for number in range(4):
        child.signal(ValueError(number))
    report = await world.close(grace_s=0)
    assert report.killed == 0
    assert not watcher.alive
    assert log == ["third", "second", "first", "parent"]


async def test_joins_that_were_given_up_are_forgotten(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    for _ in range(10):
        world.kernel.join(ref).cancel()
    await world.settle()
    kept = world.kernel.join(ref)
    ref.stop()
    assert await world.answer(kept) is EndReason.STOPPED


async def test_stopping_a_busy_actor_again_and_again_fills_nothing(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    ref.tell("busy")
    for _ in range(100):
        ref.stop()
        ref.stop(drain=True)
    assert ref.depth <= 3


async def test_an_actor_that_has_not_started_yet_can_be_stopped(world: World) -> None:
    log: list[str] = []
    ref = world.kernel.spawn(Parent, ("parent", log, ("child",)), name="parent")
    ref.stop()
    assert await world.answer(world.kernel.join(ref)) is EndReason.STOPPED
    assert log == ["child", "parent"]
