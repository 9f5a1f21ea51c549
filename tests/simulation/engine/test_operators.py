"""What operators may do to tasks and workstreams, in every state: done and written down, or refused without a trace."""

from typing import Any

import pytest

from tests.simulation.engine.world import QUICK, Refused, Takes, World, step, stream
from understudy.actors.definition import BreakerPolicy, Check, OnFailure, RetryPolicy, Task, WorkerDefinition
from understudy.actors.engine.requests import Conflict, Done, NotFound, Operation, Request
from understudy.actors.idempotency import RequestConflict
from understudy.actors.lifecycle import TASK, WORKSTREAM, Entity, InvalidTransition
from understudy.actors.ports.workplace import Order

O = Operation  # noqa: E741
CHECKS = (Check(file_exists="x", name="there"),)
SLOW = RetryPolicy(max_attempts=2, base_delay=50, jitter=0)
GUARD = BreakerPolicy(failure_threshold=1, cooldown=500)
TASKS: dict[str, tuple[Task, ...]] = {
    "pending": (step("slow"), step("t", "slow")),
    "queued": (step("t", capabilities=("gpu",)),),
    "running": (step("t"),),
    "validating": (step("t", checks=CHECKS),),
    "retrying": (step("t", retry=SLOW),),
    "circuit_open": (step("t", retry=SLOW, breaker=GUARD),),
    "half_open": (step("t", retry=SLOW, breaker=GUARD),),
}
ENDS: dict[O, tuple[str, str]] = {
    O.CANCEL: ("cancelled", "user_cancelled"),
    O.SKIP: ("skipped", "user_skipped"),
    O.RESOLVE: ("resolved", "resolved_manually"),
    O.GIVE_UP: ("failed", "gave_up"),
}


def behave(order: Order) -> Any:
    """Slow or failing as the state to be shown needs it; quick after an operator has stepped in."""
    if order.generation > 1 or order.key == "next":
        return "again"
    task = next(task for tasks in TASKS.values() for task in tasks if task.id == order.key)
    if order.workstream_id in ("retrying", "circuit_open", "half_open"):
        raise Refused("down")
    return "quick" if order.workstream_id == "validating" else Takes(100, task.id)


def task_in(state: str, **fields: Any) -> World:
    """A world in which task `t` of the workstream named for the state is in it. `next` waits for it."""
    world = World(behave)
    world.checks_take_s = 100
    world.submit(stream(*TASKS[state], step("next", "t"), id=state, **fields))
    world.run(until=5)
    if state == "half_open":
        world.do(O.RESET_BREAKER, "shop:work")
    assert world.task("t", state).state == state
    return world


def trail(world: World) -> int:
    return len(world.store._moves)


def is_legal(operation: O, state: str) -> bool:
    if operation is O.RESET:
        return False
    try:
        TASK.check("t", state, ENDS[operation][1], ENDS[operation][0])
    except InvalidTransition:
        return False
    return True


TASK_OPERATIONS = (O.CANCEL, O.SKIP, O.RESOLVE, O.GIVE_UP, O.RESET)


@pytest.mark.parametrize("operation", TASK_OPERATIONS)
@pytest.mark.parametrize("state", TASKS)
def test_an_operation_on_a_live_task_is_done_or_refused_without_a_trace(state: str, operation: O) -> None:
    world = task_in(state, on_failure=OnFailure.BLOCK)
    before = trail(world)
    if not is_legal(operation, state):
        with pytest.raises((InvalidTransition, Conflict)):
            world.do(operation, f"{state}/t", who="ann", why="because")
        assert trail(world) == before
        assert world.task("t", state).state == state
        return
    done = world.do(operation, f"{state}/t", who="ann", why="because", output={"by": "hand"})
    ended, trigger = ENDS[operation]
    assert done == Done(f"{state}/t", ended, 1)
    last = world.moves(Entity.TASK, f"{state}/t")[-1]
    assert (last.from_state, last.to_state, last.trigger) == (state, ended, trigger)
    assert (last.who, last.reason) == ("ann", "because")
    world.run(until=400)
    if ended in ("skipped", "resolved"):
        assert world.workstream(state).state == "completed"
        assert world.task("next", state).output == "again"
    else:
        assert world.workstream(state).state == "blocked"
        assert world.task("next", state).state == "pending"
    if ended == "resolved":
        assert world.task("t", state).output == {"by": "hand"}


def test_a_queued_task_is_given_up_only_while_its_breaker_is_open() -> None:
    world = World(lambda order: Takes(1, Refused("down")), workers=(WorkerDefinition("w"),))
    world.submit(stream(*[step(f"t{n}", breaker=GUARD, optional=True) for n in range(4)]))
    world.run(until=5)
    queued = next(key for key, state in world.states().items() if state == "queued")
    done = world.do(O.GIVE_UP, f"ws/{queued}", who="ann", why="no use")
    assert (done.state, world.task(queued).trigger) == ("failed", "circuit_rejected")


# Tasks that have ended


def ended_as(state: str) -> World:
    """A workstream in which `t` has ended so, and `next` with it; the workstream has ended, too."""

    def script(order: Order) -> Any:
        if state == "failed" and order.key == "t" and order.generation == 1:
            raise Refused("no", permanent=True)
        return Takes(3, order.key)

    world = World(script)
    world.submit(stream(step("first"), step("t", "first"), step("next", "t")))
    if state in ENDS_BY:
        world.do(ENDS_BY[state], "ws/t")
    world.run()
    assert world.task("t").state == state
    return world


ENDS_BY = {"skipped": O.SKIP, "cancelled": O.CANCEL, "resolved": O.RESOLVE}
ENDED = ("completed", "failed", "skipped", "cancelled", "resolved")


@pytest.mark.parametrize("operation", [O.RESET, O.SKIP, O.RESOLVE])
@pytest.mark.parametrize("state", ENDED)
def test_what_is_done_to_an_ended_task_begins_its_next_generation(state: str, operation: O) -> None:
    world = ended_as(state)
    before = world.moves(Entity.TASK, "ws/t")
    done = world.do(operation, "ws/t", who="ann", why="once more")
    assert done.generation == 2
    world.run()
    after = world.moves(Entity.TASK, "ws/t")
    assert after[: len(before)] == before, "what has ended is never changed"
    assert (after[len(before)].from_state, after[len(before)].trigger) == ("*", "reset")
    expected = {O.RESET: "completed", O.SKIP: "skipped", O.RESOLVE: "resolved"}[operation]
    assert (world.task("t").state, world.task("t").generation) == (expected, 2)
    assert (world.workstream().state, world.workstream().generation) == ("completed", 2)
    assert world.states()["next"] == "completed", "it had fallen with the other one"
    reopened = [each for each in world.moves(Entity.WORKSTREAM, "ws") if each.trigger == "reset"]
    assert [(each.who, each.reason) for each in reopened] == [("ann", "once more")]
    expected_runs = 2 if state == "cancelled" else 1  # the cancellation had taken it along
    assert [order.key for order in world.runs].count("first") == expected_runs


@pytest.mark.parametrize("operation", [O.CANCEL, O.GIVE_UP])
@pytest.mark.parametrize("state", ENDED)
def test_an_ended_task_is_neither_cancelled_nor_given_up(state: str, operation: O) -> None:
    world = ended_as(state)
    before = trail(world)
    with pytest.raises(InvalidTransition):
        world.do(operation, "ws/t")
    assert trail(world) == before
    assert not world.engine.house.workstreams, "it leaves memory again"


# Workstreams


def workstream_in(state: str) -> World:
    world = World(lambda order: Takes(100))
    world.checks_take_s = 100
    more: dict[str, Any] = {}
    tasks: tuple[Task, ...] = (step("t"),)
    match state:
        case "ready":
            tasks = (step("t", capabilities=("gpu",)),)
        case "waiting_for_retry" | "waiting_for_dependencies":
            world.script = lambda order: Takes(1, Refused("x"))
            tasks = (step("t", retry=SLOW, breaker=GUARD if "dep" in state else None),)
        case "retrying" | "blocked" | "failed":
            world.script = lambda order: Takes(1, Refused("x", permanent=True))
            more["on_failure"] = {"retrying": OnFailure.RETRY, "blocked": OnFailure.BLOCK}.get(state, OnFailure.FAIL)
            more["retry"] = RetryPolicy(max_attempts=2, base_delay=50)
        case "validating" | "completed":
            world.script = lambda order: None
            more["checks"] = CHECKS if state == "validating" else ()
        case _:
            pass
    world.submit(stream(*tasks, **more))
    world.run(until=20)
    if state == "cancelled":
        world.do(O.CANCEL, "ws")
    assert world.workstream().state == state
    return world


LIVE = ("ready", "executing", "waiting_for_retry", "waiting_for_dependencies", "retrying", "blocked", "validating")
WORKSTREAM_ENDS = {
    O.CANCEL: ("cancelled", "user_cancelled"),
    O.RESOLVE: ("resolved", "resolved_manually"),
    O.GIVE_UP: ("failed", "gave_up"),
}


@pytest.mark.parametrize("operation", TASK_OPERATIONS)
@pytest.mark.parametrize("state", [*LIVE, "completed", "failed", "cancelled"])
def test_an_operation_on_a_workstream_is_done_or_refused_without_a_trace(state: str, operation: O) -> None:
    world = workstream_in(state)
    before = trail(world)
    allowed = operation is O.RESET and (state not in LIVE or state == "blocked")
    target, trigger = WORKSTREAM_ENDS.get(operation, ("", ""))
    if target:
        allowed = any(move.target == target and trigger in move.triggers for move in WORKSTREAM.leaving(state))
    if not allowed:
        with pytest.raises((InvalidTransition, Conflict)):
            world.do(operation, "ws", who="ann", why="because")
        assert trail(world) == before
        assert world.workstream().state == state
        return
    done = world.do(operation, "ws", who="ann", why="because")
    if operation is O.RESET and state == "blocked":
        assert done == Done("ws", "executing", 1)
        return
    if operation is O.RESET:
        assert done.generation == 2
        world.run()
        assert world.workstream().generation == 2
        return
    last = world.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (last.to_state, last.trigger, last.who, last.reason) == (target, trigger, "ann", "because")
    assert done == Done("ws", target, 1)


def test_a_reset_of_a_workstream_keeps_what_had_succeeded() -> None:
    world = World(lambda order: Takes(1, Refused("x", permanent=True) if order.token == "ws/b/1/1" else order.key))
    world.submit(stream(step("a"), step("b", "a"), step("c", inputs={"a": "${a.output}", "b": "${b.output}"})))
    world.run()
    assert world.workstream().state == "failed"
    world.do(O.RESET, "ws")
    world.run()
    assert world.workstream().state == "completed"
    assert [order.token for order in world.runs] == ["ws/a/1/1", "ws/b/1/1", "ws/b/2/1", "ws/c/2/1"]
    assert world.runs[-1].inputs == {"a": "a", "b": "b"}


@pytest.mark.parametrize("target", ["nobody", "nobody/t", "ws/nobody"])
def test_what_does_not_exist_is_not_found(target: str) -> None:
    world = World()
    world.submit(stream(step("a")))
    world.run()
    with pytest.raises(NotFound):
        world.do(O.CANCEL, target)


# Cascades


@pytest.mark.parametrize("seed", range(10))
def test_a_cancel_reaches_tasks_and_children_before_it_is_answered(seed: int) -> None:
    world = World(lambda order: Takes(100), seed=seed)
    world.submit(stream(*[step(f"t{n}") for n in range(4)], step("next", "t0")))
    for child, parent, depth in (("child", "ws", 1), ("grandchild", "child", 2)):
        world.engine.ask(Request(O.SUBMIT, child), stream(step("a"), step("b", "a"), id=child), parent, depth)
    world.run(until=5)
    done = world.do(O.CANCEL, "ws", who="ann", why="enough")
    assert done.state == "cancelled"
    world.run()
    for each in ("ws", "child", "grandchild"):
        assert world.workstream(each).state == "cancelled"
        assert set(world.states(each).values()) == {"cancelled"}
    assert world.moves(Entity.WORKSTREAM, "grandchild")[-1].trigger == "parent_cancelled"
    assert world.moves(Entity.WORKSTREAM, "ws")[-1].who == "ann"
    assert {each.outcome for each in world.attempts()} == {"cancelled"}


def test_a_child_that_its_parent_asks_for_again_is_the_same_child() -> None:
    world = World(lambda order: Takes(10))
    world.submit(stream(step("a")))
    for _ in range(2):
        promise = world.engine.ask(Request(O.SUBMIT, "child"), stream(step("x"), id="child"), "ws", 1)
        world.pass_time(1)
        assert promise.result().target == "child"
    world.run()
    assert len([order for order in world.runs if order.workstream_id == "child"]) == 1


def test_a_workstream_is_submitted_once_under_its_id() -> None:
    world = World(lambda order: Takes(5))
    world.submit(stream(step("a")))
    with pytest.raises(Conflict):
        world.submit(stream(step("b"))).result()
    world.run()
    with pytest.raises(Conflict):
        world.submit(stream(step("b"))).result()
    assert world.states() == {"a": "completed"}


# The same request


def test_the_same_request_is_answered_again_and_done_once() -> None:
    world = World(lambda order: Takes(50))
    world.submit(stream(step("a"), step("b", "a"), on_failure=OnFailure.BLOCK))
    first = world.do(O.RESOLVE, "ws/a", request_id="r1", output=1)
    before = trail(world)
    assert world.do(O.RESOLVE, "ws/a", request_id="r1", output=1) == first
    assert trail(world) == before
    with pytest.raises(RequestConflict):
        world.do(O.RESOLVE, "ws/a", request_id="r1", output=2)
    with pytest.raises(RequestConflict):
        world.do(O.CANCEL, "ws/a", request_id="r1", output=1)
    world.run()
    again = world.crash()
    assert again.do(O.RESOLVE, "ws/a", request_id="r1", output=1) == first, "also in the next process"
    assert again.task("a").generation == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_same_request_twice_at_the_same_instant_is_done_once(seed: int) -> None:
    world = World(lambda order: Takes(50), seed=seed)
    world.submit(stream(step("a"), retry=QUICK, on_failure=OnFailure.BLOCK))
    world.do(O.CANCEL, "ws/a")
    promises = [world.ask(O.RESET, "ws/a", request_id="r") for _ in range(3)]
    other = world.ask(O.RESET, "ws/a", request_id="r", why="something else")
    world.pass_time(1)
    assert len({promise.result() for promise in promises}) == 1
    assert world.task("a").generation == 2
    with pytest.raises(RequestConflict):
        other.result()
    world.run()


def test_the_same_submission_gets_the_same_workstream() -> None:
    world = World()
    first = world.submit(stream(step("a")), request_id="s").result()
    world.run()
    assert world.submit(stream(step("a")), request_id="s").result() == first
    with pytest.raises(RequestConflict):
        world.submit(stream(step("b")), request_id="s").result()
    assert len(world.runs) == 1


@pytest.mark.parametrize("seed", range(20))
def test_every_operator_gets_an_answer_however_requests_cross(seed: int) -> None:
    world = World(
        lambda order: Takes(1, order.key), seed=seed, workers=(WorkerDefinition("w", max_concurrent_tasks=2),)
    )
    world.submit(stream(*[step(f"t{n}") for n in range(6)], on_failure=OnFailure.BLOCK))
    promises = []
    for instant in range(8):
        for key in ("t0", "t3", "t5"):
            operations = (O.CANCEL, O.RESET, O.RESOLVE, O.SKIP)
            promises.append(world.ask(operations[(instant + seed) % 4], f"ws/{key}"))
        promises.append(world.ask(O.CANCEL if instant == 5 else O.RESET, "ws"))
        world.pass_time(0.5)
    world.run(until=60)
    assert all(promise.done() for promise in promises)


def test_a_reset_takes_along_what_was_built_on_the_result() -> None:
    world = World(lambda order: f"{order.key} {order.generation}")
    world.submit(stream(step("a"), step("b", inputs={"x": "${a.output}"}), step("c", "b"), step("other")))
    world.run(10)
    world.do(O.RESET, "ws/a")
    world.run(20)
    assert {key: world.task(key).generation for key in "abc"} == {"a": 2, "b": 2, "c": 2}
    assert world.task("other").generation == 1
    assert next(order.inputs for order in world.runs if order.token == "ws/b/2/1") == {"x": "a 2"}
    assert world.workstream().state == "completed"


def test_a_reset_is_refused_while_something_that_builds_on_it_runs() -> None:
    world = World(lambda order: Takes(5) if order.key == "b" else order.key)
    world.submit(stream(step("a"), step("b", "a")))
    world.pass_time(1)
    with pytest.raises(Conflict, match="b builds on it and has begun"):
        world.do(O.RESET, "ws/a")
    world.run(20)
    assert world.workstream().state == "completed"


def test_a_blocked_workstream_gives_its_slots_to_others_until_somebody_comes() -> None:
    def fail_once(order: Order) -> str:
        if order.key == "bad" and order.generation == 1:
            raise Refused("no", permanent=True)
        return order.key

    world = World(fail_once, workers=(WorkerDefinition("w", max_concurrent_tasks=2),))
    world.submit(stream(step("bad"), step("after", "bad"), id="first", on_failure=OnFailure.BLOCK, reserved_workers=2))
    world.pass_time(1)
    assert world.workstream("first").state == "blocked"
    world.submit(stream(step("good"), id="second", reserved_workers=2))
    world.pass_time(1)
    assert world.workstream("second").state == "completed"
    world.do(O.RESET, "first/bad")
    world.run(20)
    assert world.workstream("first").state == "completed"
