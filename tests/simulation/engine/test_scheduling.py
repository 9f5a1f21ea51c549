"""Who runs when: priorities, fairness, capabilities; and an answer to the question why something does not move."""

from typing import Any

import pytest

from tests.simulation.engine.test_operators import TASKS, task_in
from tests.simulation.engine.world import Refused, Takes, World, step, stream
from understudy.actors.definition import WorkerDefinition
from understudy.actors.engine import messages as m
from understudy.actors.engine.requests import NotFound, Operation


def why(world: World, key: str | None, workstream_id: str = "ws") -> Any:
    promise: Any = world.engine.house.workstreams[workstream_id].ask(lambda reply: m.Explain(key, reply))
    world.kernel.run(until=world.kernel.clock.now())
    return promise.result()


ONE = (WorkerDefinition("w"),)


@pytest.mark.parametrize("seed", range(20))
def test_a_higher_priority_goes_first(seed: int) -> None:
    world = World(lambda order: Takes(1), workers=ONE, seed=seed)
    world.submit(stream(step("running"), id="first"))
    world.submit(stream(*[step(f"t{n}", priority=n) for n in range(6)]))
    world.submit(stream(step("urgent"), id="other", priority=50))
    world.run()
    assert [order.key for order in world.runs] == ["running", "urgent", "t5", "t4", "t3", "t2", "t1", "t0"]


@pytest.mark.parametrize("seed", range(3))
def test_a_small_workstream_is_not_held_up_by_a_large_one(seed: int) -> None:
    world = World(lambda order: Takes(1), workers=(WorkerDefinition("w", max_concurrent_tasks=5),), seed=seed)
    world.submit(stream(*[step(f"t{n}") for n in range(1_000)], id="large"))
    world.submit(stream(*[step(f"t{n}") for n in range(10)], id="small"))
    world.run()
    places = [place for place, order in enumerate(world.runs) if order.workstream_id == "small"]
    assert places[-1] <= 40, "they take turns"
    assert {world.workstream("large").state, world.workstream("small").state} == {"completed"}


@pytest.mark.parametrize("seed", range(5))
def test_workstreams_of_the_same_size_take_turns(seed: int) -> None:
    world = World(lambda order: Takes(1), workers=ONE, seed=seed)
    for name in ("x", "y", "z"):
        world.submit(stream(*[step(f"t{n}") for n in range(10)], id=name))
    world.run()
    order = [order.workstream_id for order in world.runs]
    for name in ("x", "y", "z"):
        places = [place for place, each in enumerate(order) if each == name]
        assert places[-1] >= 27 - 12, "nobody is done long before the others"


def test_a_task_runs_where_its_needs_are_met() -> None:
    workers = (WorkerDefinition("plain", count=2), WorkerDefinition("big", capabilities=("gpu", "ram")))
    world = World(lambda order: Takes(1), workers=workers)
    world.submit(stream(*[step(f"g{n}", capabilities=("gpu",)) for n in range(3)], *[step(f"p{n}") for n in range(6)]))
    world.run()
    assert {order.worker_id for order in world.runs if order.key.startswith("g")} == {"big"}
    assert len({order.worker_id for order in world.runs if order.key.startswith("p")}) >= 2


def test_a_task_whose_needs_nobody_meets_stays_queued_and_says_what_is_missing() -> None:
    world = World(workers=(WorkerDefinition("w", capabilities=("cpu",)),))
    world.submit(stream(step("a", capabilities=("gpu", "cpu"))))
    world.run(until=100)
    assert world.states() == {"a": "queued"}
    assert why(world, "a").why == "no async or process worker that offers cpu, gpu takes tasks: start or resume one"
    assert why(world, None).why == "no task has started: it waits for 1 free worker slot"
    assert world.workstream().state == "ready"


def test_tasks_are_spread_over_workers() -> None:
    world = World(lambda order: Takes(5), workers=(WorkerDefinition("w", count=4, max_concurrent_tasks=2),))
    world.pass_time(1)
    world.submit(stream(*[step(f"t{n}") for n in range(4)]))
    assert {order.worker_id for order in world.runs} == {"w-1", "w-2", "w-3", "w-4"}
    world.run()


# Why it does not move

SENTENCES = {
    "pending": "it waits for slow",
    "queued": "no async or process worker that offers gpu takes tasks: start or resume one",
    "running": "attempt 1 runs on w",
    "validating": "its checks are running",
    "retrying": "it tries again soon, after: down",
    "circuit_open": "the breaker of shop:work is not closed",
    "half_open": "the breaker of shop:work is not closed",
}


@pytest.mark.parametrize("state", TASKS)
def test_a_task_says_why_it_does_not_move(state: str) -> None:
    world = task_in(state)
    explained = why(world, "t", state)
    assert (explained.target, explained.state, explained.why) == (f"{state}/t", state, SENTENCES[state])
    assert (explained.due_at is not None) == (state in ("running", "retrying", "circuit_open"))
    assert why(world, "next", state).why == "it waits for t"


def test_a_task_in_a_long_queue_says_how_long_it_is() -> None:
    world = World(lambda order: Takes(5), workers=ONE)
    world.submit(stream(step("a"), step("b"), step("c"), step("z", "a", "b", "c")))
    queued = next(key for key, state in world.states().items() if state == "queued")
    assert why(world, queued).why == "all 1 slots that could run it are taken; 2 tasks wait"
    assert why(world, "z").waits_for == ("a", "b", "c")
    world.run(until=7)
    ended = next(key for key, state in world.states().items() if state == "completed")
    assert why(world, ended).why == "it has ended"
    assert why(world, None).why == "1 of 4 tasks have ended, 2 are active"
    world.run()


def test_a_task_says_that_its_only_worker_is_paused() -> None:
    world = World(lambda order: Takes(5), workers=ONE)
    world.submit(stream(step("a"), step("b", "a")))
    world.do(Operation.PAUSE, "w")
    world.run(until=10)
    assert why(world, "b").why == "no async or process worker takes tasks: start or resume one"


def test_a_queued_task_says_that_its_breaker_is_open() -> None:
    from tests.simulation.engine.test_breakers import Api, guarded

    world = World(Api(), workers=ONE)
    world.submit(guarded(12))
    world.run(until=30)
    queued = next(key for key, state in world.states().items() if state == "queued")
    assert why(world, queued).why == "the breaker of api is not closed"


def test_a_workstream_that_ends_says_so() -> None:
    world = World(lambda order: Takes(100))
    world.submit(stream(step("a"), step("b", "a")))
    world.ask(Operation.CANCEL, "ws")
    cell: Any = world.engine.house.workstreams["ws"]
    world.step_until(lambda: cell.actor.seat.record.ending is not None)
    explained = cell.ask(lambda reply: m.Explain(None, reply))
    world.run()
    assert world.workstream().state == "cancelled"
    assert explained.result().why == "it is ending (user_cancelled); 1 of 2 tasks have ended, 1 are active"


def test_what_is_not_there_is_not_explained() -> None:
    world = World(lambda order: Takes(1, Refused("x")))
    world.submit(stream(step("a")))
    with pytest.raises(NotFound):
        why(world, "nobody")
