"""What a workstream does when a task fails for good, when its time is over, and when all has ended."""

from itertools import pairwise
from typing import Any

import pytest

from tests.simulation.engine.world import QUICK, Refused, Takes, World, step, stream
from understudy.actors.definition import Check, OnFailure, RetryPolicy, When, WorkerDefinition
from understudy.actors.engine import messages as m
from understudy.actors.engine.requests import Operation
from understudy.actors.lifecycle import Entity, InvalidTransition
from understudy.actors.ports.workplace import Order


def broken(*keys: str) -> Any:
    """A script in which some tasks fail for good, in every generation."""

    def script(order: Order) -> Any:
        if order.key in keys:
            raise Refused(f"{order.key} is broken", permanent=True)
        return order.key

    return script


def why(world: World, key: str | None = None, workstream_id: str = "ws") -> Any:
    promise: Any = world.engine.house.workstreams[workstream_id].ask(lambda reply: m.Explain(key, reply))
    world.kernel.run(until=world.kernel.clock.now())
    return promise.result()


# fail


@pytest.mark.parametrize("seed", range(10))
def test_fail_cancels_the_rest_and_keeps_what_is_there(seed: int) -> None:
    def script(order: Order) -> Any:
        if order.key == "bad":
            return Takes(5, Refused("no", permanent=True))
        return Takes(60, "slow") if order.key == "slow" else "done"

    world = World(script, seed=seed)
    world.submit(stream(step("quick"), step("bad", "quick"), step("slow"), step("next", "slow"), step("after", "bad")))
    world.run()
    expected = {"quick": "completed", "bad": "failed", "slow": "cancelled", "next": "cancelled", "after": "skipped"}
    assert world.states() == expected
    assert world.task("quick").output == "done"
    assert (world.workstream().state, world.task("slow").trigger) == ("failed", "workstream_cancelled")
    assert world.workstream().last_error == "task bad did not succeed"
    last = world.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (last.trigger, last.reason) == ("critical_task_failed", "task bad did not succeed")


@pytest.mark.parametrize("seed", range(10))
def test_cleanup_runs_after_a_failure_and_is_not_cut_short_by_another(seed: int) -> None:
    def script(order: Order) -> Any:
        if order.key.startswith("bad"):
            return Takes(2 if order.key == "bad" else 12, Refused("no", permanent=True))
        return Takes(60 if order.key.startswith("cleanup") else 1, order.key)

    world = World(script, seed=seed)
    world.submit(
        stream(
            step("first"),
            step("bad"),
            step("bad2"),
            step("cleanup", "first", when=When.ALL_DONE),
            step("cleanup2", "bad", "bad2", when=When.ALL_DONE),
        )
    )
    world.run()
    states = world.states()
    assert (states["cleanup"], states["cleanup2"]) == ("completed", "completed")
    assert states["bad"] == "failed"
    assert world.workstream().state == "failed"


# block


def blocked(script: Any = None, **fields: Any) -> World:
    world = World(script or broken("b"))
    world.submit(stream(step("a"), step("b", "a"), step("c", "b"), on_failure=OnFailure.BLOCK, **fields))
    world.run(until=5)
    assert world.workstream().state == "blocked"
    return world


def test_block_holds_dependents_and_says_what_is_broken() -> None:
    world = blocked()
    assert world.states() == {"a": "completed", "b": "failed", "c": "pending"}
    assert world.workstream().last_error == "task b did not succeed"
    assert why(world).why == "task b did not succeed; reset, skip or resolve them, or give up"
    assert why(world, "c").why == "it is held until b is reset, skipped or resolved"
    assert why(world, "c").waits_for == ("b",)


@pytest.mark.parametrize(
    ("operation", "state"),
    [(Operation.RESET, "completed"), (Operation.SKIP, "skipped"), (Operation.RESOLVE, "resolved")],
)
def test_an_operator_brings_a_blocked_workstream_back(operation: Operation, state: str) -> None:
    mended: list[bool] = []

    def script(order: Order) -> Any:
        if order.key == "b" and not mended:
            raise Refused("broken", permanent=True)
        return order.key

    world = blocked(script)
    mended.append(True)
    world.do(operation, "ws/b", who="ann", why="it is mended")
    world.run()
    assert world.states() == {"a": "completed", "b": state, "c": "completed"}
    assert world.task("b").generation == 2
    assert world.workstream().state == "completed"
    assert [each.trigger for each in world.moves(Entity.WORKSTREAM, "ws")].count("task_fixed") == 1
    assert [order.key for order in world.runs].count("a") == 1


def test_what_is_mended_in_vain_blocks_again() -> None:
    world = blocked()
    world.do(Operation.RESET, "ws/b")
    world.run(until=10)
    assert world.workstream().state == "blocked"
    assert (world.task("b").generation, world.states()["c"]) == (2, "pending")


@pytest.mark.parametrize(
    ("operation", "state", "trigger"),
    [
        (Operation.GIVE_UP, "failed", "gave_up"),
        (Operation.RESOLVE, "resolved", "resolved_manually"),
        (Operation.CANCEL, "cancelled", "user_cancelled"),
    ],
)
def test_an_operator_ends_a_blocked_workstream(operation: Operation, state: str, trigger: str) -> None:
    world = blocked()
    done = world.do(operation, "ws", who="ann", why="enough")
    world.run()
    last = world.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (done.state, world.workstream().state) == (state, state)
    assert (last.trigger, last.who, last.reason) == (trigger, "ann", "enough")
    assert world.states() == {"a": "completed", "b": "failed", "c": "cancelled"}


@pytest.mark.parametrize("operation", [Operation.GIVE_UP, Operation.RESOLVE])
def test_only_a_blocked_workstream_is_given_up_or_resolved(operation: Operation) -> None:
    world = World(lambda order: Takes(10))
    world.submit(stream(step("a")))
    before = world.path(Entity.WORKSTREAM, "ws")
    with pytest.raises(InvalidTransition):
        world.do(operation, "ws")
    assert world.path(Entity.WORKSTREAM, "ws") == before
    world.run()
    assert world.workstream().state == "completed"


def test_a_deadline_ends_a_blocked_workstream() -> None:
    world = blocked(deadline=50)
    world.run()
    assert (world.workstream().state, world.moves(Entity.WORKSTREAM, "ws")[-1].trigger) == ("cancelled", "timed_out")


# retry


def test_retry_gives_broken_tasks_a_new_generation_after_a_delay() -> None:
    def script(order: Order) -> Any:
        if order.key == "b" and order.generation < 3:
            raise Refused("not yet", permanent=True)
        return order.key

    world = World(script)
    policy = RetryPolicy(max_attempts=3, base_delay=10, max_delay=60, jitter=0)
    world.submit(stream(step("a"), step("b", "a"), step("c", "b"), on_failure=OnFailure.RETRY, retry=policy))
    world.run()
    assert world.workstream().state == "completed"
    assert [(each.key, each.generation) for each in world.runs] == [("a", 1), ("b", 1), ("b", 2), ("b", 3), ("c", 1)]
    moves = world.moves(Entity.WORKSTREAM, "ws")
    waits = [(y.at - x.at) / 1e6 for x, y in pairwise(moves) if x.to_state == "retrying"]
    assert waits == pytest.approx([10, 20])
    assert world.workstream().retry_count == 2


def test_retry_ends_when_no_retry_is_left() -> None:
    world = World(broken("b"))
    policy = RetryPolicy(max_attempts=2, base_delay=1, jitter=0)
    world.submit(stream(step("a"), step("b", "a"), step("c", "b"), on_failure=OnFailure.RETRY, retry=policy))
    world.run()
    last = world.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (last.to_state, last.trigger) == ("failed", "retries_exhausted")
    assert world.states()["c"] in ("skipped", "cancelled")
    assert [order.key for order in world.runs] == ["a", "b", "b"]


def test_a_workstream_that_waits_for_its_retry_can_be_cancelled() -> None:
    world = World(broken("a"))
    world.submit(stream(step("a"), on_failure=OnFailure.RETRY, retry=RetryPolicy(max_attempts=2, base_delay=60)))
    world.run(until=5)
    assert world.workstream().state == "retrying"
    assert why(world).due_at is not None
    world.do(Operation.CANCEL, "ws")
    world.run()
    assert world.workstream().state == "cancelled"


# Deadlines, checks, and states on the way


@pytest.mark.parametrize("policy", list(OnFailure))
def test_a_deadline_cancels_what_is_not_done(policy: OnFailure) -> None:
    world = World(lambda order: Takes(100))
    world.submit(stream(step("a"), step("b", "a"), deadline=30, on_failure=policy))
    world.run()
    last = world.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (last.to_state, last.trigger, last.reason) == ("cancelled", "timed_out", "its deadline of 30 s is over")
    assert world.states() == {"a": "cancelled", "b": "cancelled"}
    assert (last.at - world.moves(Entity.WORKSTREAM, "ws")[0].at) / 1e6 == pytest.approx(30)


def test_a_deadline_that_is_kept_does_nothing() -> None:
    world = World()
    world.submit(stream(step("a"), deadline=30))
    world.run()
    world.pass_time(60)
    assert world.workstream().state == "completed"


@pytest.mark.parametrize("fault", [None, "the site is down"])
def test_the_checks_of_a_workstream_decide_at_its_end(fault: str | None) -> None:
    world = World()
    world.faults = lambda name, attempt: fault
    world.submit(stream(step("a"), checks=(Check(file_exists="x", name="site"),)))
    world.run()
    assert world.workstream().state == ("completed" if fault is None else "failed")
    assert world.path(Entity.WORKSTREAM, "ws")[-2] == "validating"
    assert world.states() == {"a": "completed"}
    assert [each.passed for each in world.wait(world.store.checks("ws"))] == [fault is None]
    if fault is not None:
        assert world.workstream().last_error == "check site failed: the site is down"


def test_a_deadline_comes_too_late_for_a_workstream_that_is_being_checked() -> None:
    world = World(lambda order: Takes(20))
    world.checks_take_s = 20
    world.submit(stream(step("a"), checks=(Check(file_exists="x", name="site"),), deadline=30))
    world.run(until=35)
    assert world.workstream().state == "validating"
    world.run()
    assert world.workstream().state == "completed"


def test_a_workstream_without_tasks_is_complete() -> None:
    world = World()
    world.submit(stream())
    world.run()
    last = world.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (last.from_state, last.to_state, last.trigger) == ("ready", "completed", "no_tasks_found")


def test_a_workstream_says_when_only_retries_are_left() -> None:
    world = World(lambda order: Takes(1, Refused("x") if order.token == "ws/a/1/1" else None))
    world.submit(stream(step("a", retry=RetryPolicy(base_delay=20, jitter=0)), step("b", "a")))
    world.run(until=5)
    assert world.workstream().state == "waiting_for_retry"
    assert "a is retrying" in why(world).why
    world.run()
    path = ["planned", "ready", "executing", "waiting_for_retry", "executing", "validating", "completed"]
    assert world.path(Entity.WORKSTREAM, "ws") == path


def test_a_workstream_says_when_it_waits_for_a_tool() -> None:
    from understudy.actors.definition import BreakerPolicy

    def script(order: Order) -> Any:
        if order.attempt < 3:
            raise Refused("down")

    world = World(script)
    policy = BreakerPolicy(failure_threshold=2, cooldown=30)
    world.submit(stream(step("a", retry=QUICK, breaker=policy)))
    world.run(until=10)
    assert world.workstream().state == "waiting_for_dependencies"
    assert "a is circuit_open" in why(world).why
    world.run()
    assert world.workstream().state == "completed"
    assert world.path(Entity.WORKSTREAM, "ws")[-3:] == ["executing", "validating", "completed"]


# Reserved workers


@pytest.mark.parametrize("seed", range(10))
def test_a_workstream_without_its_reserved_workers_stays_ready_and_says_so(seed: int) -> None:
    world = World(lambda order: Takes(10), seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=3),))
    tasks = [step(f"t{n}") for n in range(6)]
    world.submit(stream(*tasks, id="one", reserved_workers=3))
    world.submit(stream(*tasks, id="two", reserved_workers=3))
    world.run(until=5)
    assert (world.workstream("one").state, world.workstream("two").state) == ("executing", "ready")
    assert why(world, workstream_id="two").why == "no task has started: it waits for 3 free worker slots"
    assert why(world, "t0", "two").why == "its workstream waits for 3 reserved slots"
    world.run()
    assert {world.workstream("one").state, world.workstream("two").state} == {"completed"}
    order = [order.workstream_id for order in world.runs]
    assert order == ["one"] * 6 + ["two"] * 6


@pytest.mark.parametrize("seed", range(10))
def test_reserved_slots_are_not_blocked_by_others_that_came_first(seed: int) -> None:
    world = World(lambda order: Takes(10), seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=2),))
    world.submit(stream(*[step(f"t{n}") for n in range(8)], id="many"))
    world.submit(stream(*[step(f"t{n}") for n in range(4)], id="few", reserved_workers=2))
    world.run()
    assert {world.workstream("many").state, world.workstream("few").state} == {"completed"}
    started = [order.workstream_id for order in world.runs]
    assert started[:6] == ["many"] * 2 + ["few"] * 4, "what is reserved goes to those who reserved it"


def test_a_reservation_is_made_again_when_a_workstream_is_reset() -> None:
    world = World(broken("t0"), workers=(WorkerDefinition("w", max_concurrent_tasks=2),))
    world.submit(stream(step("t0"), reserved_workers=2))
    world.run()
    world.do(Operation.RESET, "ws")
    assert world.workstream().generation == 2
    world.run()
    assert (world.workstream().state, len(world.runs)) == ("failed", 2)


@pytest.mark.parametrize("seed", range(10))
def test_a_workstream_that_waits_for_its_reservation_holds_nobody_up(seed: int) -> None:
    world = World(lambda order: Takes(10), seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=3),))
    world.submit(stream(*[step(f"t{n}") for n in range(9)], id="one", reserved_workers=2))
    world.submit(stream(step("t", priority=9), id="two", reserved_workers=2))
    world.submit(stream(step("t0"), step("t1"), id="three"))
    world.run(until=35)
    assert world.workstream("two").state == "ready"
    assert world.workstream("three").state == "completed"
    world.run()
    assert {world.workstream(name).state for name in ("one", "two", "three")} == {"completed"}


@pytest.mark.parametrize("seed", range(10))
def test_a_cancellation_ends_a_workstream_whose_other_tasks_wait(seed: int) -> None:
    def script(order: Order) -> Any:
        return Takes(1, Refused("x")) if order.key == "r" else Takes(50, ignores_cancel=True)

    world = World(script, seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=2),))
    slow = RetryPolicy(base_delay=300, max_delay=300, jitter=0)
    world.submit(stream(step("r", retry=slow), *[step(f"t{n}") for n in range(4)]))
    world.run(until=5)
    world.ask(Operation.CANCEL, "ws/t0")
    world.ask(Operation.CANCEL, "ws")
    world.run()
    assert world.workstream().state in ("cancelled", "failed")
