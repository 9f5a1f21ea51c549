"""Circuit breakers: when they open, who finds out whether the tool works again, and how the others come back."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.engine.world import EPOCH_US, Refused, Takes, World, stream
from understudy.actors.definition import (
    BreakerPolicy,
    RetryPolicy,
    Task,
    Tool,
    WorkerDefinition,
    WorkerKind,
    Workstream,
)
from understudy.actors.engine.requests import Operation
from understudy.actors.lifecycle import Entity, InvalidTransition
from understudy.actors.ports.workplace import Order
from understudy.actors.records import BreakerRecord, Transition

POLICY = BreakerPolicy(failure_threshold=5, error_repeats=99, cooldown=60)
RETRY = RetryPolicy(max_attempts=9, base_delay=1, max_delay=4, jitter=0)


def guarded(count: int, policy: BreakerPolicy = POLICY, *, retry: RetryPolicy = RETRY, **fields: Any) -> Workstream:
    tasks = [Task(f"t{n}", tool="api") for n in range(count)]
    return stream(*tasks, **fields, tools={"api": Tool(call="shop:api", breaker=policy, retry=retry)})


class Api:
    """A tool that is down until it is mended; every call takes a second."""

    def __init__(self, error: Callable[[Order], str] = lambda order: f"down for {order.token}") -> None:
        self.down = True
        self.error = error

    def __call__(self, order: Order) -> Any:
        return Takes(1, Refused(self.error(order)) if self.down else "ok")


def breaker(world: World) -> BreakerRecord:
    record = world.wait(world.store.load(Entity.BREAKER, "api"))
    assert isinstance(record, BreakerRecord)
    return record


def second(at: int) -> float:
    return (at - EPOCH_US) / 1e6


def begun(world: World) -> list[Transition]:
    """The moves of tasks to running, in order."""
    return [each for each in world.store._moves.values() if each.to_state == "running"]


def spans(world: World, *states: str) -> list[tuple[float, float]]:
    """When the breaker was in one of these states."""
    moves = world.moves(Entity.BREAKER, "api")
    ends = [second(each.at) for each in moves[1:]] + [1e9]
    return [(second(each.at), end) for each, end in zip(moves, ends, strict=True) if each.to_state in states]


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    world = World(Api())
    world.submit(guarded(1))
    world.run(until=40)
    last = world.moves(Entity.BREAKER, "api")[-1]
    assert (last.to_state, last.trigger, last.reason) == ("open", "failure_threshold_exceeded", "5 failures in a row")
    assert world.task("t0").attempts == 5
    assert world.states() == {"t0": "circuit_open"}


def test_it_opens_when_the_same_error_comes_again() -> None:
    world = World(Api(lambda order: "the same"))
    world.submit(guarded(1, BreakerPolicy(failure_threshold=50, error_repeats=2, cooldown=60)))
    world.run(until=40)
    last = world.moves(Entity.BREAKER, "api")[-1]
    assert (last.trigger, last.reason) == ("error_repeated", "the same error 3 times in a row")


def test_a_success_in_between_starts_the_count_anew() -> None:
    def script(order: Order) -> Any:
        if order.attempt % 4:
            raise Refused("flaky")
        return "ok"

    world = World(script)
    world.submit(guarded(6, BreakerPolicy(failure_threshold=19, error_repeats=99), id="ws"))
    world.run()
    assert world.workstream().state == "completed"
    assert world.path(Entity.BREAKER, "api") == ["closed"]


@pytest.mark.parametrize("seed", range(20))
def test_one_probe_at_a_time_and_no_attempt_while_it_is_open(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=4),))
    world.submit(guarded(20))
    world.run(until=200)
    moves = begun(world)
    for opened, ends in spans(world, "open"):
        assert not [each for each in moves if opened < second(each.at) < ends], "nothing starts while it is open"
    probes = [each for each in moves if second(each.at) > spans(world, "open")[0][0]]
    assert len(probes) == len([each for each in spans(world, "half_open") if each[0] < 199]), "one for each cooldown"
    api.down = False
    world.run()
    assert world.workstream().state == "completed"
    assert set(world.states().values()) == {"completed"}
    assert breaker(world).state == "closed"
    most = max(world.task(key).attempts for key in world.states())
    assert most <= 9


@pytest.mark.parametrize("seed", range(10))
def test_waiting_tasks_come_back_at_different_moments(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=10),))
    world.submit(guarded(10))
    world.run(until=50)
    api.down = False
    world.run()
    closed = spans(world, "closed")[-1][0]
    back = [second(each.at) for each in begun(world) if second(each.at) >= closed]
    assert len(back) == 9
    assert len(set(back)) == 9, "each at its own"
    assert all(closed <= at <= closed + 2 for at in back)


def test_it_reopens_when_the_probe_fails() -> None:
    world = World(Api())
    world.submit(guarded(3))
    world.run(until=150)
    moves = world.moves(Entity.BREAKER, "api")
    assert [each.to_state for each in moves] == ["closed", "open", "half_open", "open", "half_open", "open"]
    assert moves[3].trigger == "probe_failed"
    cooldowns = [end - start for start, end in spans(world, "open")[:2]]
    assert cooldowns == pytest.approx([60, 60])


def test_it_closes_after_as_many_good_probes_as_it_asks_for() -> None:
    api = Api()
    world = World(api)
    world.submit(guarded(4, BreakerPolicy(failure_threshold=4, error_repeats=99, cooldown=60, success_threshold=2)))
    world.run(until=50)
    api.down = False
    world.run()
    assert world.workstream().state == "completed"
    start, end = spans(world, "half_open")[-1]
    probes = [each for each in begun(world) if start <= second(each.at) < end]
    assert len(probes) == 2
    assert second(probes[1].at) >= second(probes[0].at) + 1, "one after the other"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("operation", [Operation.CANCEL, Operation.RESOLVE])
def test_another_probe_is_made_when_the_probe_is_ended_by_hand(operation: Operation, seed: int) -> None:
    api = Api()
    world = World(api, seed=seed)
    world.submit(guarded(4))
    world.step_until(
        lambda: bool(world.store._records.get((Entity.BREAKER, "api"))) and bool(breaker(world).probe_task_id)
    )
    first = breaker(world).probe_task_id
    assert first is not None
    api.down = False
    world.do(operation, first)
    if operation is Operation.CANCEL:  # a task that is cancelled by hand fails its workstream
        world.run()
        assert world.workstream().state == "failed"
        return
    world.run()
    assert world.workstream().state == "completed"
    assert breaker(world).state == "closed"


@pytest.mark.parametrize("seed", range(10))
def test_another_probe_is_made_when_the_worker_of_the_probe_is_lost(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed, workers=(WorkerDefinition("w", kind=WorkerKind.PROCESS, max_concurrent_tasks=3),))
    world.submit(guarded(3))
    world.run(until=30)
    assert breaker(world).state == "open"
    before = len(world.runs)
    while len(world.runs) == before:
        world.pass_time(0.5)
    api.down = False
    hearing = world.places["w"].hearing
    assert hearing is not None
    hearing.died("was killed by SIGKILL")
    world.run()
    assert world.workstream().state == "completed"
    assert breaker(world).state == "closed"
    assert len(spans(world, "open")) == 1, "a lost worker says nothing of the tool"


@pytest.mark.parametrize("seed", range(20))
def test_tasks_that_never_failed_wait_in_the_queue(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed, workers=(WorkerDefinition("w"),))
    world.submit(guarded(8, BreakerPolicy(failure_threshold=2, error_repeats=99, cooldown=60)))
    world.run(until=40)
    untried = [key for key in world.states() if world.task(key).attempts == 0]
    assert len(untried) >= 5
    assert {world.states()[key] for key in untried} == {"queued"}
    failed = len(world.runs)
    assert failed <= 3, "those that were under way when it opened"
    api.down = False
    world.run()
    assert world.workstream().state == "completed"
    assert len(world.runs) == 8 + failed, "and every task once"


@pytest.mark.parametrize("seed", range(10))
def test_a_probe_comes_from_the_queue_when_nobody_else_waits(seed: int) -> None:
    api = Api()
    api.down = False
    world = World(api, seed=seed, workers=(WorkerDefinition("w"),))
    world.submit(guarded(1))
    world.run()
    world.do(Operation.TRIP, "api")
    world.submit(guarded(3, id="next"))
    world.run()
    assert world.workstream("next").state == "completed"
    assert world.path(Entity.BREAKER, "api") == ["closed", "open", "half_open", "closed"]


@pytest.mark.parametrize("seed", range(10))
def test_a_breaker_is_opened_and_closed_by_hand(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed)
    world.submit(guarded(4))
    world.step_until(lambda: len(world.runs) == 4)
    done = world.do(Operation.TRIP, "api", who="ann", why="the tool is being moved")
    assert done.state == "open"
    world.run(until=30)
    assert set(world.states().values()) == {"circuit_open"}
    api.down = False
    world.do(Operation.RESET_BREAKER, "api", who="bob", why="it is there again")
    world.run()
    assert world.workstream().state == "completed"
    _, opened, closed = world.moves(Entity.BREAKER, "api")
    assert (opened.trigger, opened.who, opened.reason) == ("forced_open", "ann", "the tool is being moved")
    assert (closed.trigger, closed.who, closed.reason) == ("reset", "bob", "it is there again")
    assert world.kernel.clock.now() < 60, "nobody waited for the cooldown"


def test_a_breaker_is_shared_between_workstreams() -> None:
    api = Api()
    world = World(api)
    world.submit(guarded(3, id="one"))
    world.submit(guarded(3, id="two"))
    world.run(until=30)
    assert breaker(world).state == "open"
    assert set(world.states("one").values()) == set(world.states("two").values()) == {"circuit_open"}
    api.down = False
    world.run()
    assert {world.workstream("one").state, world.workstream("two").state} == {"completed"}


@pytest.mark.parametrize("seed", range(5))
def test_a_cooldown_survives_a_crash(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed)
    policy = BreakerPolicy(failure_threshold=3, error_repeats=99, cooldown=600)
    world.submit(guarded(3, policy))
    world.run(until=100)
    due_at = breaker(world).due_at
    assert due_at is not None
    api.down = False
    again = world.crash()
    assert again.recovery.breakers == 1
    again.run()
    assert again.workstream().state == "completed"
    half_open = next(each for each in again.moves(Entity.BREAKER, "api") if each.to_state == "half_open")
    assert half_open.at == pytest.approx(due_at, abs=2e6), "neither earlier nor later"
    assert len(again.runs) == 3


@pytest.mark.parametrize("seed", range(5))
def test_a_half_open_breaker_probes_again_after_a_crash(seed: int) -> None:
    api = Api()
    world = World(api, seed=seed)
    policy = BreakerPolicy(failure_threshold=3, error_repeats=99, cooldown=20)
    world.submit(guarded(3, policy))
    world.step_until(lambda: len(world.runs) == 4)
    assert breaker(world).state == "half_open"
    again = world.crash()
    again.run(until=15)
    assert breaker(again).state == "open", "that probe failed as well"
    api.down = False
    again.run()
    assert again.workstream().state == "completed"
    after = [end - start for start, end in spans(again, "open")][-1]
    assert after == pytest.approx(20), "the policy of the definition holds after the crash"


def test_the_policy_of_a_newer_definition_counts() -> None:
    api = Api()
    api.down = False
    world = World(api)
    world.submit(guarded(1, BreakerPolicy(failure_threshold=50, error_repeats=50)))
    world.run()
    api.down = True
    world.submit(guarded(1, BreakerPolicy(failure_threshold=2, error_repeats=50, cooldown=10), id="next"))
    world.run(until=world.kernel.clock.now() + 9)
    assert breaker(world).state == "open"
    api.down = False
    world.run()
    assert world.workstream("next").state == "completed"


def test_a_breaker_that_is_switched_off_guards_nothing() -> None:
    world = World(Api())
    world.submit(guarded(2, BreakerPolicy(enabled=False)))
    world.run()
    assert world.workstream().state == "failed"
    assert (Entity.BREAKER, "api") not in world.store._records
    assert any(world.task(key).attempts == 9 for key in world.states())


def test_a_permanent_error_counts_for_the_breaker_and_fails_at_once() -> None:
    world = World(lambda order: Takes(1, Refused("gone", permanent=True)))
    tasks = [Task(f"t{n}", tool="api", optional=True) for n in range(3)]
    tool = Tool(call="shop:api", breaker=BreakerPolicy(failure_threshold=3, error_repeats=99))
    world.submit(stream(*tasks, tools={"api": tool}))
    world.run()
    assert {world.task(f"t{n}").trigger for n in range(3)} == {"permanent_error"}
    assert breaker(world).state == "open"
    assert world.workstream().state == "completed"


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_when_it_opens_again_while_others_come_back(seed: int) -> None:
    calls: list[int] = []

    def script(order: Order) -> Any:
        calls.append(1)
        return Takes(0.2, Refused(f"down {len(calls)}") if len(calls) % 3 else "ok")

    world = World(script, seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=2),))
    policy = BreakerPolicy(failure_threshold=2, error_repeats=99, cooldown=1)
    world.submit(guarded(12, policy, retry=RetryPolicy(max_attempts=50, base_delay=1, max_delay=2)))
    world.run(until=2_000)
    assert world.workstream().state == "completed"


@pytest.mark.parametrize("operation", [Operation.TRIP, Operation.RESET_BREAKER])
@pytest.mark.parametrize("state", ["closed", "open", "half_open"])
def test_an_operation_on_a_breaker_is_done_or_refused_without_a_trace(state: str, operation: Operation) -> None:
    api = Api()
    world = World(api)
    world.submit(guarded(3, BreakerPolicy(failure_threshold=2, error_repeats=99, cooldown=20)))
    world.step_until(lambda: (Entity.BREAKER, "api") in world.store._records and breaker(world).state == state)
    target = {Operation.TRIP: "open", Operation.RESET_BREAKER: "closed"}[operation]
    before = world.path(Entity.BREAKER, "api")
    if target == state:
        with pytest.raises(InvalidTransition):
            world.do(operation, "api")
        assert world.path(Entity.BREAKER, "api") == before
    else:
        assert world.do(operation, "api", who="ann", why="because").state == target
        made = world.moves(Entity.BREAKER, "api")[len(before)]
        assert (made.to_state, made.who, made.reason) == (target, "ann", "because")
    api.down = False
    world.run()
    assert world.workstream().state == "completed"
