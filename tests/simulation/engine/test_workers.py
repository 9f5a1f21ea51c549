"""Workers: who gets which task, what becomes of the tasks of one that fails, and what operators may do to them."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.simulation.engine.world import Refused, Takes, World, step, stream
from understudy.actors.definition import WorkerDefinition, WorkerKind
from understudy.actors.engine.requests import Conflict, NotFound, Operation
from understudy.actors.lifecycle import WORKER, Entity, InvalidTransition, WorkerState
from understudy.actors.records import WorkerRecord

O = Operation  # noqa: E741
PROCESS = WorkerDefinition("w", kind=WorkerKind.PROCESS, heartbeat=5, missed_checks_max=3, recovery=60)


def worker(world: World, worker_id: str = "w") -> WorkerRecord:
    record = world.wait(world.store.load(Entity.WORKER, worker_id))
    assert isinstance(record, WorkerRecord)
    return record


def outcomes(world: World) -> list[str]:
    return [each.outcome for each in world.attempts()]


# Unresponsive


def test_the_task_of_an_unresponsive_worker_goes_to_another_and_its_late_result_is_ignored() -> None:
    other = WorkerDefinition("z", kind=WorkerKind.PROCESS)
    world = World(
        lambda order: Takes(40 if order.attempt == 1 else 5, f"by {order.worker_id}"), workers=(PROCESS, other)
    )
    world.submit(stream(step("a"), step("b", "a")))
    first = world.runs[0].worker_id
    second = {"w": "z", "z": "w"}[first]
    world.silent.add(first)
    world.run(until=20)
    assert worker(world, first).state == "unresponsive"
    assert world.runs[1].worker_id == second
    assert "did not answer 3 health checks" in (world.runs[1].cause or "")
    world.silent.clear()
    world.run()
    world.pass_time(60)
    world.check()
    assert world.task("a").output == f"by {second}"
    assert sorted(each.outcome for each in world.attempts() if each.task_id == "ws/a") == ["completed", "late", "lost"]
    assert world.task("a").lost_workers == 1
    path = world.path(Entity.WORKER, first)
    assert path[:5] == ["initializing", "idle", "busy", "unresponsive", "idle"]
    assert any(note == "late result ignored" for note, _ in world.notes)
    world.submit(stream(step("c"), step("d"), id="next"))
    world.run()
    assert {order.worker_id for order in world.runs[-2:]} == {"w", "z"}, "both take tasks again"


def test_an_unresponsive_worker_that_stays_away_is_replaced() -> None:
    world = World(lambda order: Takes(500) if order.attempt == 1 else "ok", workers=(PROCESS,))
    world.submit(stream(step("a", timeout=1_000)))
    world.silent.add("w")
    world.run(until=80)
    world.silent.clear()
    world.run()
    moves = world.moves(Entity.WORKER, "w")
    ended = next(each for each in moves if each.to_state == "terminated")
    assert (ended.trigger, ended.reason) == ("max_timeout_exceeded", "did not come back within 60 s")
    assert worker(world).generation == 2
    assert (world.workstream().state, outcomes(world)) == ("completed", ["lost", "completed"])


def test_a_worker_that_keeps_dying_is_started_later_and_later() -> None:
    world = World(workers=(PROCESS,), opening=Takes(0, OSError("no such program")))
    world.pass_time(100)
    begun = [each.at / 1e6 for each in world.moves(Entity.WORKER, "w") if each.to_state == "initializing"]
    pauses = [later - earlier for earlier, later in pairwise(begun)]
    assert pauses == pytest.approx([0, 2, 4, 8, 16, 32])
    assert worker(world).last_error == "no such program"
    world.opening = Takes(0)
    world.pass_time(100)
    assert worker(world).state == "idle"


# What operators may do


def idle(world: World) -> None: ...


def used(world: World) -> None:
    world.submit(stream(step("a"), id="warm"))
    world.pass_time(20)


def busy(world: World) -> None:
    world.submit(stream(step("a"), id="long"))
    world.pass_time(2)


def paused(world: World) -> None:
    used(world)
    world.do(O.PAUSE, "w")


def unresponsive(world: World) -> None:
    world.silent.add("w")
    world.pass_time(20)


def shut_down(world: World) -> None:
    world.do(O.DRAIN, "w")


def terminated(world: World) -> None:
    world.do(O.TERMINATE, "w")


def nothing(world: World) -> None: ...


STATES: dict[str, Callable[[World], None]] = {
    "initializing": nothing,
    "idle": idle,
    "idle, used": used,
    "busy": busy,
    "paused": paused,
    "unresponsive": unresponsive,
    "shutdown": shut_down,
    "terminated": terminated,
}
WANTED = {
    O.PAUSE: ("paused", "pause"),
    O.RESUME: ("idle", "resume"),
    O.DRAIN: ("shutdown", "shutdown_requested"),
    O.TERMINATE: ("terminated", "terminate"),
}


def world_with(state: str) -> World:
    opening = Takes(1_000) if state == "initializing" else None
    world = World(lambda order: Takes(10), workers=(PROCESS,), opening=opening)
    world.pass_time(1)
    STATES[state](world)
    assert worker(world).state == state.partition(",")[0]
    return world


@pytest.mark.parametrize("operation", WANTED)
@pytest.mark.parametrize("state", STATES)
def test_an_operation_on_a_worker_is_done_or_refused_without_a_trace(state: str, operation: O) -> None:
    world = world_with(state)
    target, trigger = WANTED[operation]
    legal = any(each.target == target and trigger in each.triggers for each in WORKER.leaving(worker(world).state))
    before = len(world.store._moves)
    if not legal or (state == "idle" and operation is O.PAUSE):
        with pytest.raises(Conflict if legal else InvalidTransition):
            world.do(operation, "w", who="ann", why="because")
        assert len(world.store._moves) == before
        return
    promise = world.ask(operation, "w", who="ann", why="because")
    world.pass_time(15)
    assert promise.result().state == target
    made = next(each for each in world.moves(Entity.WORKER, "w") if each.sequence > before and each.trigger == trigger)
    assert (made.to_state, made.who, made.reason) == (target, "ann", "because")


def test_an_unknown_worker_is_not_found() -> None:
    world = World()
    world.pass_time(1)
    with pytest.raises(NotFound, match="there are w"):
        world.do(O.PAUSE, "nobody")


def test_a_paused_worker_finishes_what_it_has_and_takes_no_more() -> None:
    world = World(lambda order: Takes(5), workers=(PROCESS,))
    world.submit(stream(step("a"), step("b")))
    world.do(O.PAUSE, "w")
    world.run(until=50)
    assert sorted(world.states().values()) == ["completed", "queued"]
    world.do(O.RESUME, "w")
    world.run()
    assert world.workstream().state == "completed"


def test_a_worker_that_is_resumed_is_watched_again() -> None:
    world = World(lambda order: Takes(5), workers=(PROCESS,))
    used(world)
    world.do(O.PAUSE, "w")
    world.silent.add("w")
    world.pass_time(100)
    world.do(O.RESUME, "w")
    world.pass_time(20)
    assert worker(world).state == "unresponsive"


@pytest.mark.parametrize("seed", range(10))
def test_a_drain_waits_for_the_tasks_of_the_worker(seed: int) -> None:
    workers = (WorkerDefinition("w", max_concurrent_tasks=3),)
    world = World(lambda order: Takes(5 + int(order.key[1:])), workers=workers, seed=seed)
    world.submit(stream(*[step(f"t{n}") for n in range(5)]))
    promises = [world.ask(O.DRAIN, "w", who="ann"), world.ask(O.DRAIN, "w")]
    world.pass_time(2)
    assert not promises[0].done()
    world.do(O.PAUSE, "w")
    with pytest.raises(Conflict):
        world.do(O.RESUME, "w")
    world.pass_time(30)
    assert [promise.result().state for promise in promises] == ["shutdown", "shutdown"]
    assert sorted(world.states().values()) == ["completed"] * 3 + ["queued"] * 2
    assert outcomes(world) == ["completed"] * 3


@pytest.mark.parametrize("end", ["terminate", "death"])
def test_a_drain_is_answered_when_the_worker_ends_otherwise(end: str) -> None:
    world = World(lambda order: Takes(50), workers=(PROCESS,))
    world.submit(stream(step("a")))
    drain = world.ask(O.DRAIN, "w")
    world.pass_time(1)
    hearing = world.places["w"].hearing
    assert hearing is not None
    if end == "terminate":
        world.do(O.TERMINATE, "w")
    else:
        hearing.died("was killed")
    world.pass_time(5)
    assert drain.result().state == ("terminated" if end == "terminate" else "failed")
    assert worker(world).generation == 1, "it was to end"
    assert world.states() == {"a": "queued"}


def test_a_drain_goes_on_when_the_worker_comes_back() -> None:
    world = World(lambda order: Takes(30), workers=(PROCESS,))
    world.submit(stream(step("a")))
    drain = world.ask(O.DRAIN, "w")
    world.silent.add("w")
    world.pass_time(20)
    assert worker(world).state == "unresponsive"
    world.silent.clear()
    world.pass_time(60)
    assert drain.result().state == "shutdown"


@pytest.mark.parametrize("seed", range(10))
def test_a_worker_that_is_terminated_gives_its_tasks_to_others(seed: int) -> None:
    workers = (WorkerDefinition("w", count=2, max_concurrent_tasks=3),)
    world = World(lambda order: Takes(5), workers=workers, seed=seed)
    world.submit(stream(*[step(f"t{n}") for n in range(6)]))
    world.do(O.TERMINATE, "w-1", why="moves house")
    world.run()
    assert world.workstream().state == "completed"
    assert {each.worker_id for each in world.attempts() if each.success} == {"w-2"}
    assert outcomes(world).count("lost") == 3
    assert worker(world, "w-1").state == WorkerState.TERMINATED
    assert worker(world, "w-2").task_ids == ()


@pytest.mark.parametrize("seed", range(20))
def test_slots_are_neither_lost_nor_given_twice_however_workers_fare(seed: int) -> None:
    definition = WorkerDefinition("w", kind=WorkerKind.PROCESS, count=2, max_concurrent_tasks=2)
    world = World(lambda order: Takes(order.attempt % 3 + 0.5, Refused("x") if order.attempt == 2 else 1),
                  workers=(definition,), seed=seed)  # fmt: skip
    world.submit(stream(*[step(f"t{n}") for n in range(30)]))
    for instant in range(12):
        world.pass_time(0.7)
        name = f"w-{instant % 2 + 1}"
        hearing: Any = world.places[name].hearing
        if (instant + seed) % 3 == 0:
            hearing.died("was killed")
        elif worker(world, name).state in ("idle", "busy") and worker(world, name).has_run:
            world.do(O.PAUSE, name)
            world.do(O.RESUME, name)
    world.run(until=1_000)
    assert world.workstream().state in ("completed", "failed")
    free = world.engine.house.scheduler.actor._lanes.free  # type: ignore[attr-defined]
    world.pass_time(10)
    assert free == world.engine.house.scheduler.actor._lanes.free == 4  # type: ignore[attr-defined]
