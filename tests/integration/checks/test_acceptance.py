"""How checks are run: beside each other, in order, in time, and without telling secrets."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.integration.checks.checked import FUNCTIONS, HANG_S, fault, nothing_left_behind, run, subject
from understudy.actors.definition import Check
from understudy.adapters.checks.acceptance import RealChecks
from understudy.adapters.checks.outputs import fault_of_schema

SECRET = "s3cr\"et'value"
PRICES = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"properties": {"price": {"type": "number"}}}}},
    "required": ["items"],
}


async def test_results_are_in_order_though_the_first_is_the_slowest(tmp_path: Path) -> None:
    """The first one waits for a file that the second one makes."""
    wait = (
        "import os\nwhile not os.path.exists('made'): pass",
        "open('made', 'w').close()",
    )
    checks = [Check(command=(sys.executable, "-c", each), name=f"check {n}") for n, each in enumerate(wait)]
    results = await run(*checks, Check(output_matches="x"), of=subject(tmp_path, "y"))
    assert [(each.position, each.name, each.passed) for each in results] == [
        (0, "check 0", True), (1, "check 1", True), (2, "output_matches x", False),
    ]  # fmt: skip
    assert {(each.task_id, each.generation, each.attempt) for each in results} == {("flow/a", 1, 2)}
    assert all(each.started_at <= each.ended_at for each in results)


async def test_no_checks_give_no_results() -> None:
    assert await run(of=subject()) == []


async def test_a_check_without_a_name_is_called_what_it_looks_at(tmp_path: Path) -> None:
    checks = (
        Check(file_exists="a b"), Check(command=("true", "a b")), Check(output_schema={}), Check(python_import="sys"),
        Check(call=f"{FUNCTIONS}:say_nothing"), Check(command=("true", "x" * 1_000)),
    )  # fmt: skip
    names = [each.name for each in await run(*checks, of=subject(tmp_path))]
    assert names[:-1] == [
        "file_exists a b",
        "true 'a b'",
        "output_schema",
        "python_import sys",
        f"{FUNCTIONS}:say_nothing",
    ]
    assert len(names[-1]) == 200


@pytest.mark.parametrize(
    ("function", "output", "expected"),
    [
        ("is_even", 2, None),
        ("is_even_async", 2, None),
        ("say_nothing", 2, None),
        ("is_even", 3, f"{FUNCTIONS}:is_even gave False"),
        ("is_even_async", 3, f"{FUNCTIONS}:is_even_async gave False"),
        ("fail", "bad", "ValueError: it is bad"),
        ("stop", 1, "RuntimeError: coroutine raised StopIteration"),
        ("leave", 1, "exited with SystemExit(3)"),
        ("give_up", 1, "exited with CancelledError()"),
        ("time_out", 1, "TimeoutError: its own"),
    ],
)
async def test_a_function_passes_what_it_does_not_object_to(function: str, output: Any, expected: str | None) -> None:
    assert await fault(Check(call=f"{FUNCTIONS}:{function}"), subject(output=output)) == expected


async def test_a_function_that_is_not_there_has_failed_the_check() -> None:
    assert "did you mean 'is_even'?" in str(await fault(Check(call=f"{FUNCTIONS}:is_evn"), subject(output=2)))


async def test_what_a_function_does_to_the_output_nobody_else_sees() -> None:
    spoil = Check(call=f"{FUNCTIONS}:spoil")
    output: list[int] = []
    assert [each.passed for each in await run(spoil, spoil, spoil, of=subject(output=output))] == [True] * 3
    assert output == []


async def test_a_function_that_never_ends_is_left_behind() -> None:
    check = Check(call=f"{FUNCTIONS}:wait_for_ever", timeout=0.05)
    assert await fault(check, subject()) == "it took longer than 0.05 s"


@pytest.mark.parametrize(
    ("pattern", "output", "expected"),
    [
        ("^a.c$", "abc", None),
        ('"a":1', {"a": 1}, None),
        ("null", None, None),
        ("b{3}", "abc", "'b{3}' is not in the output: abc"),
        ("z", "x" * 1_000, f"'z' is not in the output: {'x' * 300} [...]"),
    ],
)
async def test_an_output_is_searched_for_a_pattern(pattern: str, output: Any, expected: str | None) -> None:
    assert await fault(Check(output_matches=pattern), subject(output=output)) == expected


async def test_a_bad_pattern_has_failed_the_check() -> None:
    assert "error: missing )" in str(await fault(Check(output_matches="("), subject(output="x")))


@pytest.mark.parametrize(
    ("schema", "output", "expected"),
    [
        (PRICES, {"items": [{"price": 1}]}, None),
        ({}, None, None),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, ["a", 1], None),
        (PRICES, {"items": [{}, {}, {}, {"price": "1"}]}, "$.items[3].price: '1' is not of type 'number'"),
        (PRICES, {}, "$: 'items' is a required property"),
        ({"items": {"type": "null"}}, [1, 2], "$[0]: 1 is not of type 'null'\n$[1]: 2 is not of type 'null'"),
        ({"type": "strin"}, "a", "it is no JSON Schema: $.type: 'strin' is not valid under any of the given schemas"),
        ({"pattern": "("}, "a", "it is no JSON Schema: $.pattern: '(' is not a 'regex'"),
        ({"$schema": ["x"]}, "a", "it is no JSON Schema: $.$schema: is not a text"),
        ({"$ref": "#"}, "a", "the schema refers to itself without end"),
        (
            {"$ref": "http://127.0.0.1:1/x.json"},
            "a",
            "the schema refers to 'http://127.0.0.1:1/x.json', which is not in it: what is elsewhere is not fetched",
        ),
    ],
)
async def test_an_output_is_held_against_a_schema(schema: dict[str, Any], output: Any, expected: str | None) -> None:
    found = await fault(Check(output_schema=schema), subject(output=output))
    assert found == expected


async def test_many_errors_are_told_in_short() -> None:
    schema = {"items": {"type": "null"}}
    found = str(await fault(Check(output_schema=schema), subject(output=["x" * 10_000] * 10_000)))
    assert [line.partition(":")[0] for line in found.splitlines()] == ["$[0]", "$[1]", "$[2]", "and more"]
    assert len(found) < 1_000


def test_a_schema_can_be_looked_at_before_it_is_used() -> None:
    assert fault_of_schema(PRICES) is None
    assert "$.required: 1 is not of type 'array'" in str(fault_of_schema({"required": 1}))


async def test_secrets_are_in_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TESTS", SECRET)
    show = "import os, sys; print(os.environ.get('TOKEN_OF_TESTS'), sys.argv[1]); sys.exit(sys.argv[1])"
    checks = (
        Check(command=(sys.executable, "-c", show, SECRET)),
        Check(command=(sys.executable, "-c", "import os; assert 'TOKEN_OF_TESTS' not in os.environ")),
        Check(file_exists=SECRET, name=SECRET),
        Check(python_import=SECRET),
        Check(js_import=SECRET),
        Check(output_matches=SECRET),
        Check(output_schema={"const": SECRET}),
        Check(call=f"{FUNCTIONS}:fail"),
        Check(call=SECRET),
    )
    results = await run(*checks, of=subject(tmp_path, [SECRET], secrets=("TOKEN_OF_TESTS",)))
    assert [each.passed for each in results] == [False, True, *[False] * 7]
    assert "None ***" in str(results[0].detail)
    assert "s3cr" not in "".join(f"{each.name} {each.detail}" for each in results)


async def test_a_secret_at_the_start_of_a_tail_is_not_told_by_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "begin" + "s3cret-value" * 40
    monkeypatch.setenv("TOKEN_OF_TESTS", secret)
    command = (sys.executable, "-c", "import sys; print(sys.argv[1] * 1_000); sys.exit(1)", secret)
    found = await fault(Check(command=command), subject(tmp_path, secrets=("TOKEN_OF_TESTS",)))
    assert "***" in str(found)
    assert "s3cret" not in str(found)


async def test_cancelled_checks_leave_nothing_behind(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import time; open('began', 'w').close(); time.sleep(600)", str(tmp_path))
    checks = RealChecks()
    with nothing_left_behind(str(tmp_path)):
        running = asyncio.ensure_future(checks.run((Check(command=command), Check(command=command)), subject(tmp_path)))
        with anyio.fail_after(HANG_S):
            while not (tmp_path / "began").exists():
                await anyio.lowlevel.checkpoint()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
