"""Attempts that fail: when they are tried again, after how long, how often, and why not."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.simulation.engine.world import QUICK, Refused, Takes, World, step, stream
from understudy.actors.definition import Check, ErrorRules, RetryPolicy, WorkerDefinition, WorkerKind
from understudy.actors.engine.requests import Operation
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.workplace import Order, Report


def refusing(times: int, error: str = "busy", **more: Any) -> Callable[[Order], Any]:
    def script(order: Order) -> Any:
        if order.attempt <= times:
            raise Refused(error, **more)
        return order.attempt

    return script


def delays_s(world: World, key: str = "a") -> list[float]:
    """From every move to retrying until the move out of it."""
    moves = world.moves(Entity.TASK, f"ws/{key}")
    return [(after.at - before.at) / 1e6 for before, after in pairwise(moves) if before.to_state == "retrying"]


def outcomes(world: World, key: str = "a") -> list[str]:
    return [each.outcome for each in world.attempts() if each.task_id == f"ws/{key}"]


@pytest.mark.parametrize("max_attempts", [1, 2, 3, 5])
@pytest.mark.parametrize("failures", [0, 1, 2, 3, 5])
def test_a_task_is_tried_as_often_as_allowed_and_not_once_more(max_attempts: int, failures: int) -> None:
    policy = RetryPolicy(max_attempts=max_attempts, base_delay=1, max_delay=4, jitter=0)
    world = World(refusing(failures))
    world.submit(stream(step("a", retry=policy)))
    world.run()
    succeeds = failures < max_attempts
    tried = min(failures + 1, max_attempts)
    assert len(world.runs) == tried
    assert world.task("a").attempts == tried
    assert world.task("a").retry_count == tried - 1
    assert world.task("a").state == ("completed" if succeeds else "failed")
    assert world.task("a").trigger == ("validation_passed" if succeeds else "retries_exhausted")
    assert outcomes(world) == ["failed"] * min(failures, max_attempts) + ["completed"] * succeeds
    assert world.workstream().state == ("completed" if succeeds else "failed")


def test_delays_double_up_to_their_maximum() -> None:
    world = World(refusing(7))
    world.submit(stream(step("a", retry=RetryPolicy(max_attempts=8, base_delay=2, max_delay=20, jitter=0))))
    world.run()
    assert delays_s(world) == pytest.approx([2, 4, 8, 16, 20, 20, 20])


@pytest.mark.parametrize("seed", range(20))
def test_jitter_stays_within_its_share(seed: int) -> None:
    world = World(refusing(4), seed=seed)
    world.submit(stream(step("a", retry=RetryPolicy(max_attempts=5, base_delay=2, max_delay=60, jitter=0.25))))
    world.run()
    for delay, expected in zip(delays_s(world), [2, 4, 8, 16], strict=True):
        assert expected * 0.75 <= delay <= expected * 1.25
        assert delay != expected


def test_what_the_tool_asks_for_wins_over_the_backoff() -> None:
    world = World(refusing(2, retry_after_s=7))
    world.submit(stream(step("a", retry=RetryPolicy(max_attempts=3, base_delay=1, max_delay=2, jitter=0.25))))
    world.run()
    assert delays_s(world) == pytest.approx([7, 7])


@pytest.mark.parametrize(
    ("rules", "report"),
    [
        (ErrorRules(), {"permanent": True}),
        (ErrorRules(exceptions=("Refused",)), {}),
        (ErrorRules(exit_codes=(3,)), {"exit_code": 3}),
        (ErrorRules(patterns=(r"no such \w+",)), {}),
    ],
)
def test_a_permanent_error_is_not_tried_again(rules: ErrorRules, report: dict[str, Any]) -> None:
    world = World(refusing(9, "no such table", **report))
    policy = RetryPolicy(max_attempts=5, base_delay=1, jitter=0, permanent=rules)
    world.submit(stream(step("a", retry=policy)))
    world.run()
    assert len(world.runs) == 1
    assert (world.task("a").state, world.task("a").trigger) == ("failed", "permanent_error")
    assert world.task("a").last_error == "no such table"


def test_a_rule_for_transient_errors_outweighs_what_the_tool_says() -> None:
    world = World(refusing(1, permanent=True))
    policy = RetryPolicy(max_attempts=2, base_delay=1, jitter=0, transient=ErrorRules(patterns=("busy",)))
    world.submit(stream(step("a", retry=policy)))
    world.run()
    assert world.task("a").state == "completed"


@pytest.mark.parametrize("slow", [1, 3])
def test_an_attempt_that_takes_too_long_is_tried_again_until_none_is_left(slow: int) -> None:
    world = World(lambda order: Takes(99) if order.attempt <= slow else "ok")
    world.submit(stream(step("a", retry=QUICK, timeout=5)))
    world.run()
    assert outcomes(world) == ["timed_out"] * slow + ["completed"] * (slow < 3)
    assert world.task("a").state == ("completed" if slow < 3 else "failed")
    path = world.path(Entity.TASK, "ws/a")
    assert path.count("timed_out") == slow
    if slow == 3:
        assert world.task("a").trigger == "retries_exhausted"
        assert "timed out after 5 s" in (world.task("a").last_error or "")


def test_an_attempt_that_ignores_its_end_is_late_and_gives_its_slot_back() -> None:
    world = World(
        lambda order: Takes(60, "too late", ignores_cancel=True) if order.attempt == 1 else "ok",
        workers=(WorkerDefinition("w"),),
    )
    world.submit(stream(step("a", retry=QUICK, timeout=5), step("b", "a")))
    world.run()
    assert world.task("a").output == "ok"
    assert world.workstream().state == "completed"
    world.submit(stream(step("c"), id="next"))
    world.pass_time(100)
    assert world.workstream("next").state == "completed"
    assert sorted(outcomes(world)) == ["completed", "late", "timed_out"]
    assert any(note == "task ignored its cancellation" for note, _ in world.notes)


@pytest.mark.parametrize(("expected", "state"), [((0,), "failed"), ((0, 3), "completed"), ((3,), "completed")])
def test_an_exit_code_that_is_expected_is_no_failure(expected: tuple[int, ...], state: str) -> None:
    world = World(lambda order: Report("out", 3, exit_code=3))
    world.submit(stream(step("a", retry=QUICK, expected_exit_codes=expected)))
    world.run()
    assert world.task("a").state == state
    assert world.task("a").exit_code == 3
    if state == "failed":
        assert "exit code 3" in (world.task("a").last_error or "")
        assert len(world.runs) == 3


CHECKS = (Check(file_exists="x", name="there"), Check(file_exists="y", name="good"))


def test_a_failed_check_fails_the_task_and_keeps_no_output() -> None:
    world = World()
    world.faults = lambda name, attempt: "it is bad" if name == "good" else None
    world.submit(stream(step("a", checks=CHECKS, retry=QUICK)))
    world.run()
    task = world.task("a")
    assert (task.state, task.trigger, task.output) == ("failed", "validation_failed", None)
    assert "check good failed: it is bad" in (task.last_error or "")
    assert len(world.runs) == 1
    found = world.wait(world.store.checks("ws/a"))
    assert [(each.name, each.passed) for each in found] == [("there", True), ("good", False)]


@pytest.mark.parametrize("bad", [1, 3])
def test_a_failed_check_is_tried_again_where_that_is_asked_for(bad: int) -> None:
    policy = RetryPolicy(max_attempts=3, base_delay=1, jitter=0, on_failed_checks=True)
    world = World()
    world.faults = lambda name, attempt: "bad" if attempt <= bad else None
    world.submit(stream(step("a", checks=CHECKS[:1], retry=policy)))
    world.run()
    assert world.task("a").state == ("completed" if bad < 3 else "failed")
    assert len(world.runs) == min(bad + 1, 3)
    assert "check there failed: bad" in (world.runs[1].previous_error or "")
    assert "errored" in world.path(Entity.TASK, "ws/a")


def test_the_next_attempt_hears_how_the_last_one_ended_and_why_it_is_made() -> None:
    world = World(refusing(1, "line 3 is wrong"))
    world.submit(stream(step("a", retry=QUICK)))
    world.run()
    first, second = world.runs
    assert (first.previous_error, first.cause) == (None, None)
    assert second.previous_error == "line 3 is wrong"
    assert second.cause == "retry after: line 3 is wrong"
    assert (first.token, second.token) == ("ws/a/1/1", "ws/a/1/2")
    assert [each.cause for each in world.attempts()] == [None, "retry after: line 3 is wrong"]
    reasons = [move.reason for move in world.moves(Entity.TASK, "ws/a") if move.to_state == "retrying"]
    assert reasons == ["in 1 s, after: line 3 is wrong"]


# Lost workers

PROCESS = (WorkerDefinition("w", kind=WorkerKind.PROCESS),)


def kill_during(world: World, run: int) -> None:
    """Let so many attempts begin, and then kill the worker of the last one."""
    world.step_until(lambda: len(world.runs) >= run)
    hearing = world.places["w"].hearing
    assert hearing is not None
    hearing.died("was killed by SIGKILL")


@pytest.mark.parametrize("seed", range(5))
def test_a_lost_worker_costs_no_retry(seed: int) -> None:
    world = World(lambda order: Takes(5, "ok"), workers=PROCESS, seed=seed)
    world.submit(stream(step("a", retry=RetryPolicy(max_attempts=1))))
    kill_during(world, run=1)
    world.run()
    task = world.task("a")
    assert (task.state, task.attempts, task.retry_count, task.lost_workers) == ("completed", 2, 0, 1)
    assert outcomes(world) == ["lost", "completed"]
    assert "was killed by SIGKILL" in (world.runs[1].cause or "")
    assert "was killed by SIGKILL" in (world.runs[1].previous_error or "")
    assert world.path(Entity.WORKER, "w")[:5] == ["initializing", "idle", "busy", "failed", "initializing"]


def test_a_task_that_kills_its_workers_ends() -> None:
    world = World(lambda order: Takes(5, "ok"), workers=PROCESS)
    world.submit(stream(step("a")))
    for run in (1, 2, 3):
        kill_during(world, run)
    world.run()
    task = world.task("a")
    assert (task.state, task.trigger, task.lost_workers) == ("failed", "retries_exhausted", 3)
    assert (task.last_error or "").startswith("killed 3 workers")
    assert len(world.runs) == 3
    assert world.workstream().state == "failed"


def test_a_worker_that_an_operator_ends_is_not_held_against_its_task() -> None:
    workers = (WorkerDefinition("w", kind=WorkerKind.PROCESS, count=5),)
    world = World(lambda order: Takes(5, "ok"), workers=workers)
    world.submit(stream(step("a")))
    for run in (1, 2, 3, 4):
        while len(world.runs) < run:
            world.pass_time(1)
        world.do(Operation.TERMINATE, world.runs[-1].worker_id)
    world.run()
    assert (world.task("a").state, world.task("a").lost_workers, len(world.runs)) == ("completed", 0, 5)
