"""A process that dies at any moment: the next one goes on, and nothing that was done is done again."""

from typing import Any

import pytest

from tests.simulation.engine.world import EPOCH_US, QUICK, MortalStore, Refused, Takes, World, step, stream
from understudy.actors.definition import BreakerPolicy, Check, OnFailure, RetryPolicy, Task, Tool, WorkerDefinition
from understudy.actors.engine.engine import Recovery
from understudy.actors.engine.house import GATHER, Limits
from understudy.actors.engine.requests import Operation, Request
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.workplace import Order

API = Tool(call="shop:api", breaker=BreakerPolicy(failure_threshold=2, error_repeats=9, cooldown=20), retry=QUICK)
WORKLOAD = stream(
    step("a"),
    step("b", inputs={"a": "${a.output}"}, retry=QUICK),
    step("c", "a"),
    step("d", inputs={"b": "${b.output}", "c": "${c.output}"}),
    step("m", each="${a.output}", inputs={"n": "${item}"}),
    Task("guarded", tool="api", after=("a",)),
    step("end", inputs={"all": "${m.output}", "d": "${d.output}"}, checks=(Check(file_exists="x", name="there"),)),
    tools={"api": API},
    checks=(Check(file_exists="y", name="final"),),
)
CHILD = stream(step("x"), step("y", inputs={"x": "${x.output}"}), id="child")


def script(order: Order) -> Any:
    """Flaky in some places: an attempt that was cut off there has spared its task a failure."""
    if order.key == "a":
        return Takes(1, [1, 2, 3])
    if order.key == "b" and order.attempt == 1:
        return Takes(1, Refused("b fails"))
    if order.key == "guarded" and order.attempt < 3:
        return Takes(1, Refused(f"down {order.attempt}"))
    return Takes(1, order.inputs.get("n", order.key))


EXPECTED = {
    "a": [1, 2, 3],
    "b": "b",
    "c": "c",
    "d": "d",
    "m": [1, 2, 3],
    "m.0": 1,
    "m.1": 2,
    "m.2": 3,
    "guarded": "guarded",
    "end": "end",
}


def start(store: MortalStore, seed: int = 1) -> World:
    world = World(script, store=store, seed=seed)
    world.engine.ask(Request(Operation.SUBMIT, "ws"), WORKLOAD)
    world.engine.ask(Request(Operation.SUBMIT, "child"), CHILD, parent_id="ws", depth=1)
    return world


def count_commits(seed: int) -> int:
    store = MortalStore()
    world = start(store, seed)
    world.pass_time(1)
    world.run()
    return store.commits


CRASHES = [(seed, commits) for seed in range(10) for commits in range(count_commits(seed))]


def check_result(world: World, before: World) -> None:
    """The same end as without a crash, and every attempt beyond the first ones has a stated cause."""
    assert world.workstream().state == "completed"
    assert {key: world.task(key).output for key in world.states()} == EXPECTED
    if (Entity.WORKSTREAM, "child") in world.store._records:
        assert world.workstream("child").state == "completed"
    runs = [*before.runs, *world.runs]
    tokens = [order.token for order in runs]
    assert len(tokens) == len(set(tokens)), "no attempt is run twice"
    accepted = {(each.task_id, each.attempt) for each in world.attempts() if each.success}
    for order in world.runs:
        done = [attempt for task_id, attempt in accepted if task_id == order.task_id and attempt < order.attempt]
        assert not done, f"{order.task_id} had been completed"
        assert order.attempt == 1 or order.cause is not None


def died(world: World, store: MortalStore, *, released: bool) -> bool:
    """At once after the last commit, or when its effects have been released and the next commit is due."""
    return bool(store.refused) if released else store.commits >= store.commits_max


@pytest.mark.parametrize("released", [False, True], ids=["landed", "released"])
@pytest.mark.parametrize(("seed", "commits"), CRASHES)
def test_a_crash_after_any_commit_changes_nothing_but_the_attempts_in_flight(
    seed: int, commits: int, released: bool
) -> None:
    store = MortalStore(commits)
    world = start(store, seed)
    while not died(world, store, released=released):
        if not world.kernel.run(until=10_000, steps_max=1) or world.kernel.clock.now() >= 10_000:
            break
    running = [
        record for record in store._records.values() if getattr(record, "worker_id", None) and record.state == "running"
    ]
    again = world.crash()
    assert again.recovery.run_again == len(running)
    for definition, parent_id, depth in ((WORKLOAD, None, 0), (CHILD, "ws", 1)):
        if (Entity.WORKSTREAM, definition.id) not in store._records:
            again.engine.ask(Request(Operation.SUBMIT, definition.id or ""), definition, parent_id, depth)
    again.pass_time(1)
    again.run(until=5_000)
    check_result(again, world)
    assert again.task("b").retry_count <= 1
    lost = [each for each in again.attempts() if each.outcome == "lost"]
    assert len(lost) == len(running)


@pytest.mark.parametrize("seed", range(20))
def test_crash_upon_crash_still_ends_well(seed: int) -> None:
    store = MortalStore()
    world = start(store, seed)
    world.step_until(lambda: all((Entity.WORKSTREAM, each) in store._records for each in ("ws", "child")))
    runs: list[str] = []
    for life in range(40):
        runs += [order.token for order in world.runs]
        world = world.crash(seed=seed * 100 + life)
        store.commits_max, store.refused = store.commits + 4 + life % 3, 0
        if not world.engine.house.workstreams:
            break
        while not store.refused and world.engine.house.workstreams:
            if not world.kernel.run(until=10_000, steps_max=1):
                break
    store.commits_max = 10**9
    world.run(until=10_000)
    world = world.crash().run()
    assert world.workstream().state == "completed"
    assert len(runs) == len(set(runs))


# Timers


def test_the_moment_of_a_retry_survives() -> None:
    world = World(lambda order: Takes(1, Refused("x") if order.attempt == 1 else "ok"))
    world.submit(stream(step("a", retry=RetryPolicy(base_delay=50, jitter=0))))
    world.run(until=20)
    due_at = world.task("a").due_at
    again = world.crash()
    assert again.recovery == Recovery(workstreams=1, tasks=1, run_again=0, waiting=1)
    again.run()
    queued = [each.at for each in again.moves(Entity.TASK, "ws/a") if each.to_state == "queued"]
    assert queued[-1] == pytest.approx(due_at, abs=10)
    assert [order.previous_error for order in again.runs] == ["x"]


def test_a_retry_that_was_due_while_nobody_lived_is_made_at_once() -> None:
    world = World(lambda order: Takes(1, Refused("x") if order.attempt == 1 else "ok"))
    world.submit(stream(step("a", retry=RetryPolicy(base_delay=5, jitter=0))))
    world.run(until=3)
    again = World(world.script, store=world.store, at=1_000.0)
    again.run()
    assert again.workstream().state == "completed"
    assert again.kernel.clock.now() < 5


def test_the_moment_of_a_workstreams_retry_survives() -> None:
    def failing_once(order: Order) -> Any:
        return Takes(1, Refused("x", permanent=True) if order.generation == 1 else "ok")

    world = World(failing_once)
    policy = RetryPolicy(max_attempts=2, base_delay=50, jitter=0)
    world.submit(stream(step("a"), on_failure=OnFailure.RETRY, retry=policy))
    world.run(until=20)
    due_at = world.workstream().due_at
    again = world.crash().run()
    assert again.workstream().state == "completed"
    reset = next(each for each in again.moves(Entity.TASK, "ws/a") if each.trigger == "reset")
    assert reset.at == pytest.approx(due_at, abs=10)


def test_a_deadline_survives() -> None:
    world = World(lambda order: Takes(1_000))
    world.submit(stream(step("a", timeout=5_000), deadline=100))
    world.run(until=60)
    again = world.crash().run()
    last = again.moves(Entity.WORKSTREAM, "ws")[-1]
    assert (last.to_state, last.trigger) == ("cancelled", "timed_out")
    assert last.at == pytest.approx(EPOCH_US + 100_000_000, abs=1e6)


# Half done


@pytest.mark.parametrize("commits", range(1, 8))
def test_a_workstream_whose_tasks_were_only_partly_created_is_completed(commits: int) -> None:
    store = MortalStore(commits)
    tasks = [step(f"t{n}", *([f"t{n - 1}"] if n % 5 else [])) for n in range(50)]
    world = World(store=store, limits=Limits(chunk=10))
    world.engine.ask(Request(Operation.SUBMIT, "ws"), stream(*tasks))
    while not store.refused and world.kernel.run(until=100, steps_max=1):
        pass
    again = world.crash().run()
    assert again.workstream().state == "completed"
    assert set(again.states()) == {task.id for task in tasks}


@pytest.mark.parametrize("commits", range(1, 16))
def test_a_map_whose_items_were_only_partly_created_gathers_all(commits: int) -> None:
    store = MortalStore(commits)
    world = World(lambda order: order.inputs.get("n"), store=store, limits=Limits(chunk=10))
    world.engine.ask(Request(Operation.SUBMIT, "ws"), stream(step("m", each=list(range(40)), inputs={"n": "${item}"})))
    while not store.refused and world.kernel.run(until=100, steps_max=1):
        pass
    again = world.crash().run()
    assert again.workstream().state == "completed"
    assert again.task("m").output == list(range(40))
    assert len([order for order in again.runs if order.call == GATHER]) <= 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("commits", range(4, 12))
def test_a_cancellation_that_had_begun_goes_on(commits: int, seed: int) -> None:
    store = MortalStore()
    world = World(lambda order: Takes(50), store=store, seed=seed, limits=Limits(chunk=3))
    world.submit(stream(*[step(f"t{n}") for n in range(6)], step("last", "t0")))
    world.engine.ask(Request(Operation.SUBMIT, "child"), CHILD, parent_id="ws", depth=1)
    world.run(until=10)
    store.commits_max = store.commits + commits - 3
    promise = world.ask(Operation.CANCEL, "ws", who="ann", why="enough")
    while not store.refused and world.kernel.run(until=11, steps_max=1):
        pass
    was_answered = promise.done()
    assert world.workstream().ending == "user_cancelled" or world.workstream().state == "cancelled"
    again = world.crash().run(until=500)
    assert again.workstream().state == again.workstream("child").state == "cancelled"
    assert set(again.states().values()) == {"cancelled"}
    assert again.runs == [], "nothing is begun again"
    assert not was_answered or world.workstream().state == "cancelled"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("commits", range(1, 8))
def test_a_failure_that_had_begun_to_end_the_rest_goes_on(commits: int, seed: int) -> None:
    store = MortalStore()

    def failing(order: Order) -> Any:
        return Takes(12, Refused("no", permanent=True)) if order.key == "bad" else Takes(50)

    world = World(failing, store=store, seed=seed, limits=Limits(chunk=2))
    world.submit(stream(step("bad"), *[step(f"t{n}") for n in range(4)], step("next", "t0")))
    world.run(until=11.5)
    store.commits_max = store.commits + commits
    while not store.refused and world.kernel.run(until=13, steps_max=1):
        pass
    has_failed = world.states()["bad"] == "failed"
    again = world.crash().run(until=500)
    assert again.workstream().state == "failed"
    if has_failed:
        assert set(again.states().values()) <= {"failed", "cancelled"}
        assert again.runs == []


@pytest.mark.parametrize("fault", [None, "bad"])
def test_final_checks_that_were_cut_off_are_run_again(fault: str | None) -> None:
    world = World(lambda order: None)
    world.checks_take_s = 10
    world.submit(stream(step("a"), checks=(Check(file_exists="x", name="site"),)))
    world.run(until=5)
    assert world.workstream().state == "validating"
    again = world.crash()
    again.faults = lambda name, attempt: fault
    again.run()
    assert again.workstream().state == ("completed" if fault is None else "failed")
    assert again.runs == []


def test_a_task_that_cannot_be_run_any_more_fails_instead_of_staying() -> None:
    world = World(lambda order: Takes(50))
    world.submit(stream(step("a"), step("q", inputs={"t": "${secrets.TOKEN}"}), step("z", "q"), secrets=("TOKEN",)))
    world.run(until=5)
    again = world.crash(secrets={})
    again.run(until=500)
    assert (again.task("q").state, again.workstream().state) == ("failed", "failed")
    assert "TOKEN is not set" in (again.task("q").last_error or "")


def test_what_recovery_counts_is_right() -> None:
    def waiting(order: Order) -> Any:
        return Takes(1, Refused("x")) if order.key == "r" else Takes(500)

    world = World(waiting, workers=(WorkerDefinition("w", max_concurrent_tasks=2),))
    slow = RetryPolicy(base_delay=300, max_delay=300, jitter=0)
    world.submit(stream(step("r", retry=slow), step("s"), step("q"), step("p", "s")))
    world.run(until=20)
    world.submit(stream(step("late"), id="other"))
    assert world.states() == {"r": "retrying", "s": "running", "q": "running", "p": "pending"}
    again = world.crash()
    assert again.recovery == Recovery(workstreams=2, tasks=5, run_again=2, waiting=1)
    assert str(again.recovery) == "Recovered 5 tasks of 2 workstreams; 2 run again (crash)"
    assert str(World().recovery) == "Nothing to recover"
