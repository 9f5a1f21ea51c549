"""Single actors that crash at any message, before or after they have handled it: the work still ends well."""

from typing import Any

import pytest

from tests.simulation.engine.test_recovery import CHILD, EXPECTED, WORKLOAD, script
from tests.simulation.engine.world import Refused, Takes, World, step, stream
from understudy.actors.definition import WorkerDefinition, WorkerKind
from understudy.actors.engine.breaker import Breaker
from understudy.actors.engine.house import Limits
from understudy.actors.engine.requests import Operation, Request
from understudy.actors.engine.scheduler import Scheduler
from understudy.actors.engine.supervisor import Supervisor
from understudy.actors.engine.task import TaskActor
from understudy.actors.engine.worker import Worker
from understudy.actors.engine.workstream import WorkstreamActor
from understudy.actors.kernel import Actor
from understudy.actors.ports.workplace import Order

ACTORS: tuple[tuple[type[Actor[Any]], int], ...] = (
    (TaskActor, 75),
    (WorkstreamActor, 50),
    (Scheduler, 40),
    (Worker, 75),
    (Breaker, 12),
    (Supervisor, 6),
)
CRASHES = [(actor, number) for actor, messages in ACTORS for number in range(messages)]


class Fault(Exception):
    """A bug of ours, for the test."""


class Saboteur:
    """Lets one actor of a class crash at its n-th message, all instances counted together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, actor: type[Actor[Any]], number: int, *, after: bool) -> None:
        self.seen = 0
        receive = actor.receive

        def sabotaged(actor: Actor[Any], message: Any) -> None:
            self.seen += 1
            hit = self.seen == number + 1
            if hit and not after:
                raise Fault(type(message).__name__)
            receive(actor, message)
            if hit:
                raise Fault(type(message).__name__)

        monkeypatch.setattr(actor, "receive", sabotaged)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("actor", "number"), CRASHES, ids=[f"{each.__name__}-{n}" for each, n in CRASHES])
def test_the_work_ends_well_when_an_actor_crashes(
    monkeypatch: pytest.MonkeyPatch, actor: type[Actor[Any]], number: int, after: bool
) -> None:
    world = World(script, limits=Limits(), seed=number)
    world.crashes_expected = world.repairs_expected = 1
    Saboteur(monkeypatch, actor, number, after=after)
    world.engine.ask(Request(Operation.SUBMIT, "ws"), WORKLOAD)
    world.engine.ask(Request(Operation.SUBMIT, "child"), CHILD, parent_id="ws", depth=1)
    world.pass_time(1)
    world.run(until=1_000)
    assert world.workstream().state == world.workstream("child").state == "completed"
    assert {key: world.task(key).output for key in world.states()} == EXPECTED
    tokens = [order.token for order in world.runs]
    assert len(tokens) == len(set(tokens)), "no attempt is run twice"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(30))
@pytest.mark.parametrize("actor", [TaskActor, WorkstreamActor, Scheduler, Worker], ids=lambda each: each.__name__)
def test_a_cancellation_is_answered_when_an_actor_crashes(
    monkeypatch: pytest.MonkeyPatch, actor: type[Actor[Any]], number: int, after: bool
) -> None:
    workers = (WorkerDefinition("w", max_concurrent_tasks=2),)
    world = World(lambda order: Takes(100), limits=Limits(), seed=number, workers=workers)
    world.crashes_expected = world.repairs_expected = 1
    world.submit(stream(*[step(f"t{n}") for n in range(4)], step("last", "t0")))
    world.pass_time(2)
    Saboteur(monkeypatch, actor, number, after=after)
    promises = [world.ask(Operation.CANCEL, "ws")]
    world.pass_time(90)
    if world.workstream().state == "executing":  # the request itself was lost, with its answer
        promises.append(world.ask(Operation.CANCEL, "ws"))
    world.run(until=1_000)
    assert world.workstream().state == "cancelled"
    assert promises[-1].result().state == "cancelled"


@pytest.mark.parametrize("number", range(8))
def test_a_worker_that_died_is_started_again_when_its_supervisor_crashes(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def deadly(order: Order) -> Any:
        return Takes(5, Refused("x") if order.attempt > 5 else "ok")

    workers = (WorkerDefinition("w", kind=WorkerKind.PROCESS),)
    world = World(deadly, workers=workers, limits=Limits(), seed=number)
    world.crashes_expected = 1
    world.submit(stream(step("a")))
    world.pass_time(2)
    Saboteur(monkeypatch, Supervisor, number, after=True)
    hearing = world.places["w"].hearing
    assert hearing is not None
    hearing.died("was killed")
    world.run(until=500)
    assert world.workstream().state == "completed"


@pytest.mark.parametrize("target", ["ws", "ws/t"])
def test_a_task_whose_actor_is_quarantined_can_still_be_cancelled(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    def crash(actor: TaskActor, message: Any) -> None:
        raise Fault(type(message).__name__)

    monkeypatch.setattr(TaskActor, "receive", crash)
    world = World(limits=Limits(sweep_s=0.5))
    world.crashes_expected = 4
    world.submit(stream(step("t"), step("next", "t")))
    world.pass_time(5)
    assert "ws/t" in str(world.kernel.health())
    assert world.do(Operation.CANCEL, target, who="ann", why="it is broken").state == "cancelled"
    world.run(20)
    assert world.states() == {"t": "cancelled", "next": "skipped" if target == "ws/t" else "cancelled"}
