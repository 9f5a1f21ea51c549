"""What is promised of messages on their way: order, bounds, the control lane, dead letters."""

from typing import Any

import pytest

from tests.contract.kernel.world import Recorder, World
from understudy.actors.kernel import Actor, DeadReason, MailboxFull
from understudy.actors.kernel.cell import CONTROL_CAPACITY


class Small(Recorder):
    __slots__ = ()
    mailbox_capacity = 3


class Chatty(Actor[Any]):
    """Tells itself and signals itself from within a message."""

    __slots__ = ("seen",)

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def receive(self, message: Any) -> None:
        self.seen.append(message)
        if message == "go":
            self.context.tell("told")
            self.context.signal("signalled")


async def test_messages_of_one_sender_arrive_in_order(world: World) -> None:
    seen: list[int] = []
    ref = world.kernel.spawn(Recorder, seen)
    for number in range(200):
        ref.tell(number)
    await world.settle()
    assert seen == list(range(200))


async def test_none_is_a_message_like_any_other(world: World) -> None:
    seen: list[Any] = []
    ref = world.kernel.spawn(Recorder, seen)
    ref.tell(None)
    await world.settle()
    assert seen == [None]


async def test_full_mailbox_refuses_and_hands_the_message_back(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Small, seen, name="small")
    for text in "abc":
        ref.tell(text)
    with pytest.raises(MailboxFull, match="small did not take str: its mailbox is full") as refusal:
        ref.tell("d")
    assert refusal.value.message == "d"
    assert refusal.value.capacity == 3
    await world.settle()
    assert seen == ["a", "b", "c"]


async def test_mailbox_takes_messages_again_after_a_refusal(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Small, seen)
    for text in "abc":
        ref.tell(text)
    await world.settle()
    for text in "def":
        ref.tell(text)
    await world.settle()
    assert seen == list("abcdef")


async def test_depth_counts_what_waits_in_both_lanes(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    assert ref.depth == 0
    ref.tell("a")
    ref.tell("b")
    ref.signal("c")
    assert ref.depth == 3
    await world.settle()
    assert ref.depth == 0


async def test_control_overtakes_work_and_keeps_its_own_order(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Recorder, seen)
    for text in ("work 1", "work 2"):
        ref.tell(text)
    for text in ("control 1", "control 2"):
        ref.signal(text)
    await world.settle()
    assert seen == ["control 1", "control 2", "work 1", "work 2"]


async def test_control_overtakes_a_full_mailbox(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Small, seen)
    for text in "abc":
        ref.tell(text)
    ref.signal("cancel")
    await world.settle()
    assert seen == ["cancel", "a", "b", "c"]


async def test_control_lane_is_bounded_too(world: World) -> None:
    seen: list[int] = []
    ref = world.kernel.spawn(Recorder, seen)
    for number in range(CONTROL_CAPACITY):
        ref.signal(number)
    with pytest.raises(MailboxFull, match="control lane"):
        ref.signal(CONTROL_CAPACITY)
    await world.settle()
    assert seen == list(range(CONTROL_CAPACITY))


async def test_message_to_oneself_waits_for_the_message_in_hand(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Chatty, seen)
    ref.tell("go")
    ref.tell("queued before")
    await world.settle()
    assert seen == ["go", "signalled", "queued before", "told"]


async def test_message_to_a_stopped_actor_is_a_dead_letter(world: World) -> None:
    ref = world.kernel.spawn(Recorder, [])
    ref.stop()
    await world.settle()
    ref.tell("hello")
    ref.signal("hey")
    assert world.kernel.counts.dead_letters == 2
    assert [(letter.ref, letter.message) for letter in world.kernel.dead_letters] == [(ref, "hello"), (ref, "hey")]
    assert {letter.reason for letter in world.kernel.dead_letters} == {DeadReason.STOPPED}


async def test_mail_left_over_at_a_stop_becomes_dead_letters(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Recorder, seen)
    for text in "abc":
        ref.tell(text)
    ref.stop()
    await world.settle()
    assert seen == []
    assert [letter.message for letter in world.kernel.dead_letters] == ["a", "b", "c"]


async def test_stop_with_drain_handles_what_waits_first(world: World) -> None:
    seen: list[str] = []
    ref = world.kernel.spawn(Recorder, seen)
    ref.tell("a")
    ref.stop(drain=True)
    ref.tell("b")
    await world.settle()
    assert seen == ["a"]
    assert [letter.message for letter in world.kernel.dead_letters] == ["b"]


async def test_mailbox_of_one_takes_one_before_the_actor_has_started(world: World) -> None:
    class Starting(Recorder):
        __slots__ = ()
        mailbox_capacity = 1

        def started(self) -> None:
            self.seen.append("started")

    seen: list[str] = []
    ref = world.kernel.spawn(Starting, seen)
    ref.tell("first")
    with pytest.raises(MailboxFull):
        ref.tell("second")
    await world.settle()
    assert seen == ["started", "first"]
