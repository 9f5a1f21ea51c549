"""Properties of the kernel over random interleavings: nothing lost or doubled, order, intensity, timers."""

from collections import Counter
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.kernel import (
    Actor,
    DeadLetter,
    DeadReason,
    MailboxFull,
    Observer,
    Poison,
    Ref,
    SimulatedKernel,
    Status,
    Supervision,
    Timer,
    Verdict,
    decide,
)

seeds = st.integers(min_value=0, max_value=2**32)


class Boom(Exception):
    pass


class Clerk(Observer):
    """Keeps every dead letter and every crash: the kernel itself keeps only the newest."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.poison: list[Poison] = []

    def dead_letter(self, letter: DeadLetter) -> None:
        self.letters.append(letter)

    def crashed(self, poison: Poison) -> None:
        self.poison.append(poison)


class Receiver(Actor[Any]):
    """Keeps what it handled in a list that outlives it, and crashes on what it is told to crash on."""

    __slots__ = ("log",)
    mailbox_capacity = 5
    supervision = Supervision(restarts_max=1_000)

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def receive(self, message: Any) -> None:
        sender, _, kind = message
        if kind == "crash":
            raise Boom
        self.log.append(message)
        if kind == "echo":
            self.context.tell((("self", sender), len(self.log), "tell"))
        elif kind == "stop":
            self.context.stop()


class Sender(Actor[int]):
    """Sends one part of its script with every message to itself, and keeps what was refused."""

    __slots__ = ("accepted", "name", "refused", "script", "targets")

    def __init__(self, snapshot: tuple[str, list[tuple[int, str]], list[Ref[Any]], list[Any], list[Any]]) -> None:
        self.name, self.script, self.targets, self.accepted, self.refused = snapshot

    def receive(self, message: int) -> None:
        if message == len(self.script):
            return
        index, kind = self.script[message]
        target = self.targets[index % len(self.targets)]
        letter = (self.name, message, kind)
        try:
            (target.signal if kind == "signal" else target.tell)(letter)
            self.accepted.append((target, letter))
        except MailboxFull as refusal:
            self.refused.append(refusal.message)
        self.context.tell(message + 1)


kinds = st.sampled_from(["tell", "tell", "tell", "signal", "crash", "echo", "stop"])
scripts = st.lists(st.lists(st.tuples(st.integers(0, 3), kinds), max_size=30), min_size=1, max_size=4)


@given(seed=seeds, scripts=scripts, receivers=st.integers(1, 4))
def test_every_accepted_message_is_handled_once_or_accounted_for(
    seed: int, scripts: list[list[tuple[int, str]]], receivers: int
) -> None:
    kernel = SimulatedKernel(seed)
    logs: list[list[Any]] = [[] for _ in range(receivers)]
    targets = [kernel.spawn(Receiver, log) for log in logs]
    clerk = Clerk()
    kernel.observe(clerk)
    accepted: list[Any] = []
    for number, script in enumerate(scripts):
        kernel.spawn(Sender, (f"sender {number}", script, targets, accepted, [])).tell(0)
    kernel.run()
    for target, log in zip(targets, logs, strict=True):
        sent = Counter(letter for ref, letter in accepted if ref is target)
        poison = Counter(each.message for each in clerk.poison if each.ref is target and isinstance(each.error, Boom))
        echoes = Counter(letter for letter in log if letter[0][0] == "self")
        refused_echoes = sum(isinstance(each.error, MailboxFull) for each in clerk.poison if each.ref is target)
        buried = Counter(each.message for each in clerk.letters if each.ref is target)
        buried_echoes = Counter({letter: count for letter, count in buried.items() if letter[0][0] == "self"})
        assert Counter(log) + poison + buried == sent + echoes + buried_echoes
        asked_for = sum(letter[2] == "echo" for letter in log)
        assert asked_for == echoes.total() + buried_echoes.total() + refused_echoes


@given(seed=seeds, scripts=scripts)
def test_each_sender_is_heard_in_its_own_order_in_each_lane(seed: int, scripts: list[list[tuple[int, str]]]) -> None:
    kernel = SimulatedKernel(seed)
    log: list[Any] = []
    target = kernel.spawn(Receiver, log)
    for number, script in enumerate(scripts):
        kernel.spawn(Sender, (f"sender {number}", script, [target], [], [])).tell(0)
    kernel.run()
    for number in range(len(scripts)):
        for lane in (True, False):
            heard = [each[1] for each in log if each[0] == f"sender {number}" and (each[2] == "signal") is lane]
            assert heard == sorted(heard)


@given(seed=seeds, waiting=st.lists(st.sampled_from(["tell", "signal"]), max_size=8))
def test_control_that_waits_is_handled_before_work_that_waits(seed: int, waiting: list[str]) -> None:
    kernel = SimulatedKernel(seed)
    log: list[Any] = []
    target = kernel.spawn(Receiver, log)
    for number, kind in enumerate(waiting):
        with suppress(MailboxFull):
            (target.signal if kind == "signal" else target.tell)(("outside", number, kind))
    kernel.run()
    assert [each[2] for each in log] == sorted((each[2] for each in log), key=["signal", "tell"].index)


class CrashingAt(Actor[float]):
    """Crashes at every instant that it was given, in virtual time."""

    __slots__ = ("instants",)
    supervision = Supervision(restarts_max=3, window_s=5.0)

    def __init__(self, instants: list[float]) -> None:
        self.instants = instants

    def started(self) -> None:
        if self.instants:
            self.context.after(max(0.0, self.instants[0] - self.context.now), self.instants[0])

    def receive(self, message: float) -> None:
        self.context.save(self.instants[1:])
        raise Boom


@given(seed=seeds, gaps=st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.6, 1.7, 2.5, 4.9, 5.0, 6.0]), max_size=20))
def test_quarantine_comes_with_the_fourth_crash_in_any_five_seconds(seed: int, gaps: list[float]) -> None:
    instants: list[float] = []
    for gap in gaps:
        instants.append((instants[-1] if instants else 0.0) + gap)
    fatal = next(
        (index for index in range(3, len(instants)) if instants[index] - instants[index - 3] < 5.0), len(instants)
    )
    kernel = SimulatedKernel(seed)
    kernel.spawn(CrashingAt, instants)
    kernel.run()
    assert kernel.counts.restarted == fatal
    assert (kernel.health().status is Status.DEGRADED) == (fatal < len(instants))


@given(
    restarts=st.lists(st.floats(0, 100), max_size=10),
    now=st.floats(0, 200),
    limit=st.integers(0, 5),
    window=st.floats(0.1, 10),
)
def test_decision_depends_on_recent_restarts_only(restarts: list[float], now: float, limit: int, window: float) -> None:
    policy = Supervision(restarts_max=limit, window_s=window)
    recent = sum(1 for at in restarts if now - at < window)
    expected = Verdict.RESTART if recent < limit else Verdict.QUARANTINE
    assert decide(policy, restarts, now) is expected


class Alarmed(Actor[Any]):
    __slots__ = ("fired", "timers")
    mailbox_capacity = 10_000

    def __init__(self, fired: list[tuple[float, int]]) -> None:
        self.fired = fired
        self.timers: dict[int, Timer] = {}

    def receive(self, message: Any) -> None:
        match message:
            case ("arm", int(number), float(delay)):
                self.timers[number] = self.context.after(delay, number)
            case ("cancel", int(number)):
                if number in self.timers:
                    self.timers[number].cancel()
            case number:
                self.fired.append((self.context.now, number))


delays = st.sampled_from([0.0, 0.1, 0.2, 1.0, 7.5])


@given(seed=seeds, armed=st.lists(delays, max_size=60), cancelled=st.sets(st.integers(0, 59)))
def test_timers_fire_once_when_due_in_order_unless_cancelled(
    seed: int, armed: list[float], cancelled: set[int]
) -> None:
    kernel = SimulatedKernel(seed)
    fired: list[tuple[float, int]] = []
    ref = kernel.spawn(Alarmed, fired)
    for number, delay in enumerate(armed):
        ref.tell(("arm", number, delay))
    for number in sorted(cancelled):
        ref.tell(("cancel", number))
    kernel.run()
    expected = [(delay, number) for number, delay in enumerate(armed) if number not in cancelled]
    assert fired == sorted(expected)


def test_different_seeds_explore_different_orders() -> None:
    def order(seed: int) -> tuple[int, ...]:
        kernel = SimulatedKernel(seed)
        log: list[int] = []

        class One(Actor[int]):
            __slots__ = ()

            def receive(self, message: int) -> None:
                log.append(message)

        for number in range(3):
            kernel.spawn(One).tell(number)
        kernel.run()
        return tuple(log)

    assert len({order(seed) for seed in range(100)}) == 6  # every order of three


def test_actor_that_stops_buries_what_it_had_not_handled() -> None:
    kernel = SimulatedKernel()
    target = kernel.spawn(Receiver, list[Any]())
    for number in range(4):
        target.tell(("outside", number, "stop"))
    kernel.run()
    assert [letter.reason for letter in kernel.dead_letters] == [DeadReason.STOPPED] * 3
