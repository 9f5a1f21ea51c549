"""What every workplace promises: on the loop, in threads, and in a process with plain and with async functions."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog.testing

from tests.contract.tools.places import FUNCTIONS, HANG_S, Engine, Place, working
from understudy.actors.definition import WorkerKind
from understudy.actors.errors import MisuseError
from understudy.adapters.folders import Folders
from understudy.adapters.tools import current_task
from understudy.adapters.tools.in_process import WorkplaceDied
from understudy.adapters.tools.workplaces import RealWorkplaces

SECRET = "s3cr\"et'value"
PLACES = {
    "async": (WorkerKind.ASYNC, True),
    "thread": (WorkerKind.THREAD, False),
    "process": (WorkerKind.PROCESS, False),
    "process-async": (WorkerKind.PROCESS, True),
}


@pytest.fixture(params=PLACES)
async def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setenv("TOKEN_OF_TESTS", SECRET)
    kind, is_async = PLACES[request.param]
    async with working(kind, is_async=is_async) as made:
        yield made


async def test_a_function_is_run_with_its_inputs_and_its_value_is_reported(place: Place) -> None:
    report = await place.run("double", number=21)
    assert (report.output, report.output_bytes, report.error) == (42, 2, None)


async def test_inputs_and_results_have_the_types_of_the_annotations(place: Place) -> None:
    report = await place.run("send", parcel={"to": {"x": 1, "y": 2}, "weight": 3})
    assert (report.error, report.output) == (None, {"to": {"x": 2, "y": 2.0}, "weight": 3.0})


async def test_what_cannot_be_converted_is_passed_as_it_is(place: Place) -> None:
    report = await place.run("keep_path", path="/tmp", note=[1], plain=None)
    assert report.output == ["str", "list", "NoneType"]


async def test_a_function_that_changes_its_inputs_does_not_change_the_order(place: Place) -> None:
    order = place.order("spoil", {"items": [], "more": []})
    assert [(await place.workplace.run(order)).output for _ in range(2)] == [2, 2]
    assert order.inputs == {"items": [], "more": []}


async def test_a_function_in_a_box_is_found(place: Place) -> None:
    assert (await place.run("boxed", number=2)).output == 4


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"number": "many"}, "Expected `int`, got `str` - at `$.number`"),
        ({}, "missing required field `number`"),
        ({"number": 1, "numbr": 2}, "unknown field `numbr`"),
    ],
)
async def test_inputs_that_do_not_fit_are_a_permanent_failure(place: Place, inputs: dict[str, Any], says: str) -> None:
    report = await place.run("double", **inputs)
    assert says in (report.error or "")
    assert report.permanent
    assert "TypeError" in report.kinds


async def test_a_function_that_is_not_there_is_a_permanent_failure(place: Place) -> None:
    report = await place.run("doubel", number=1)
    assert "did you mean 'double" in (report.error or "")
    assert report.permanent


async def test_an_error_is_reported_with_its_kinds_and_its_traceback(place: Place) -> None:
    report = await place.run("fail", how="value")
    assert report.error == "ValueError: bad input"
    assert report.kinds[:4] == ("builtins.ValueError", "ValueError", "builtins.Exception", "Exception")
    assert "raise errors[how]" in report.text
    assert not report.permanent


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("exit", "exited with SystemExit(3)"),
        ("interrupt", "exited with KeyboardInterrupt()"),
        ("generator", "exited with GeneratorExit()"),
        ("own", "exited with Own('mine')"),
        ("cancelled", "exited with CancelledError()"),
    ],
)
async def test_whatever_is_raised_fails_the_attempt_and_nothing_else(place: Place, how: str, error: str) -> None:
    assert (await place.run("fail", how=how)).error == error
    assert (await place.run("double", number=1)).output == 2
    assert place.heard.deaths == []


async def test_a_task_can_say_whether_another_attempt_is_of_use(place: Place) -> None:
    assert (await place.run("fail", how="permanent")).permanent
    assert (await place.run("fail", how="transient")).retry_after_s == 7


async def test_a_long_error_keeps_its_head_and_its_tail(place: Place) -> None:
    error = (await place.run("fail", how="long")).error or ""
    assert error.startswith("ValueError: aaa")
    assert error.endswith("z")
    assert len(error) <= 4_000


async def test_an_error_that_utf_8_cannot_hold_is_reported_escaped(place: Place) -> None:
    assert (await place.run("fail", how="surrogate")).error == "ValueError: \\ud800"


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("nan", "$.items[1]: nan cannot be stored as JSON"),
        ("struct", "$[0].y: inf cannot be stored as JSON"),
        ("cycle", "nested deeper than 64 levels"),
        ("object", "$.a: object cannot be stored as JSON"),
        ("key", "$.a: the key 1 is not a text"),
        ("big", "$.n: the integer is beyond 64 bits"),
        ("large", "$: result 2.1 MB > 1 MiB: return a file"),
        ("surrogate", "$[0]: the text holds half of a surrogate pair"),
    ],
)
async def test_a_result_that_cannot_be_stored_fails_with_the_path_of_the_offender(
    place: Place, what: str, error: str
) -> None:
    report = await place.run("odd", what=what)
    assert error in (report.error or "")
    assert report.permanent


async def test_a_secret_is_never_shown(place: Place) -> None:
    secrets = ("TOKEN_OF_TESTS",)
    output = (await place.run("tell", secrets, secret=SECRET, how="return")).output
    assert output == {"said": "<***>", "***": ["***"]}
    report = await place.run("tell", secrets, secret=f"key {SECRET}", how="raise")
    assert report.error == "ValueError: refused key ***"
    assert SECRET not in report.text


async def test_a_task_knows_its_attempt(place: Place) -> None:
    assert (await place.run("know")).output == {
        "task_id": "flow/a", "key": "a", "workstream_id": "flow", "attempt": 2, "generation": 1, "token": "flow/a/1/2",
        "deadline_at": 4_102_444_800_000_000, "inputs": {}, "previous_error": "ValueError: before", "cause": "retry",
        "worker_id": "w-1", "correlation_id": "c-1", "cancelled": False,
    }  # fmt: skip


async def test_there_is_no_current_task_outside_of_one(place: Place) -> None:
    await place.run("know")
    with pytest.raises(MisuseError, match="no task is running here"):
        current_task()


async def test_progress_is_told_in_order(place: Place) -> None:
    await place.run("progress")
    assert place.engine.notes == [(0.5, "half"), (None, "note")]


async def test_a_task_has_children_adds_tasks_and_waits_for_results(place: Place) -> None:
    report = await place.run("family")
    assert report.output == [["child-0", "child-1"], {"of": "child-1"}], report.error
    assert [(key, number) for key, _, number in place.engine.spawned] == [("a", 0), ("a", 1)]
    assert place.engine.spawned[0][1].tasks[0].call == "m:f"
    assert [task.inputs for task in place.engine.added] == [{"x": 1}]


async def test_what_the_engine_refuses_fails_the_attempt_with_its_words(place: Place) -> None:
    assert "there is no workstream missing" in ((await place.run("refused")).error or "")


async def test_attempts_run_at_the_same_time_up_to_the_capacity(place: Place) -> None:
    # Each waits for the other four.
    reports = await asyncio.gather(*(place.run("meet") for _ in range(5)))
    assert [report.error for report in reports] == [None] * 5


async def test_more_than_the_capacity_is_run_too(place: Place) -> None:
    reports = await asyncio.gather(*(place.run("double", number=number) for number in range(50)))
    assert [report.output for report in reports] == [2 * number for number in range(50)]


async def cancel(place: Place, name: str) -> None:
    running = asyncio.create_task(place.run(name))
    with anyio.fail_after(HANG_S):
        await place.engine.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_cancelled_attempt_ends_and_the_next_one_runs(place: Place) -> None:
    await cancel(place, "wait")
    assert (await place.run("double", number=1)).output == 2
    assert place.heard.deaths == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_process_that_ignores_a_cancellation_is_killed(is_async: bool) -> None:
    async with working(WorkerKind.PROCESS, is_async=is_async, cancel_grace_s=0.05) as place:
        await cancel(place, "ignore")
        assert place.heard.deaths == ["ignored its cancellation and was killed"]
        with pytest.raises(WorkplaceDied, match="ignored its cancellation"):
            await place.run("double", number=1)


async def test_a_thread_that_ignores_a_cancellation_is_abandoned_and_replaced() -> None:
    async with working(WorkerKind.THREAD) as place:
        for _ in range(6):  # one more than its capacity
            place.engine.started = anyio.Event()
            await cancel(place, "ignore")
        assert (await place.run("double", number=1)).output == 2


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_secret_does_not_reach_the_log(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TESTS", SECRET)
    async with working(*PLACES[kind][:1], is_async=PLACES[kind][1]) as place:
        with structlog.testing.capture_logs() as logged:
            await place.run("log", ("TOKEN_OF_TESTS",))
    assert logged == [
        {"workstream": "flow", "task": "a", "attempt": 2, "event": "called", "token": "***", "log_level": "info"}
    ]


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        (f"{FUNCTIONS}:double", {"thread", "process"}),
        (f"{FUNCTIONS}:double_async", {"async", "process"}),
        (f"{FUNCTIONS}:boxed_async", {"async", "process"}),
        ("json:dumps", {"thread", "process"}),
    ],
)
def test_the_function_decides_which_kinds_of_workers_can_run_it(call: str, kinds: set[str]) -> None:
    assert RealWorkplaces(Engine(), Folders(Path("nowhere"))).kinds_for(call) == kinds


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("no_such_module:f", "there is no module 'no_such_module'"),
        ("tests.nothing.here:f", "there is no module 'tests.nothing'"),
        (f"{FUNCTIONS}:nothing.at.all", "there is no 'nothing'"),
        (f"{FUNCTIONS}:not_a_function", "is no function but int"),
        ("functions", "write module:function"),
        ("math:sqrt", "by position only"),
    ],
)
def test_a_function_that_cannot_be_found_is_a_lookup_error_that_says_why(call: str, says: str) -> None:
    with pytest.raises(LookupError, match=says):
        RealWorkplaces(Engine(), Folders(Path("nowhere"))).kinds_for(call)


@pytest.mark.parametrize(("kind", "name"), [("async", "double"), ("thread", "double_async")])
async def test_a_workplace_refuses_a_function_of_the_other_kind(kind: str, name: str) -> None:
    async with working(PLACES[kind][0], is_async=False) as place:
        report = await place.run(name, number=1)
    assert "needs a worker of kind" in (report.error or "")
    assert report.permanent
