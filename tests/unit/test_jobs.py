"""What an input contains stays where it was put: one argument, one header, one piece of a URL."""

from typing import Any

import pytest

from understudy.actors.definition import (
    Check,
    HttpRequest,
    RetryPolicy,
    Task,
    Tool,
    Workspace,
    WorkspaceKind,
    Workstream,
    find_problems,
)
from understudy.actors.definition.bindings import Unbound
from understudy.actors.engine.house import Plan
from understudy.actors.engine.jobs import Job, bind_check, make_job

OUTSIDE: dict[tuple[str, ...], Any] = {
    ("params", "version"): "1.2",
    ("secrets", "KEY"): "hunter22",
    ("params", "files"): ["a b", "c"],
}


def job(tool: Tool, *checks: Check, **inputs: Any) -> Job:
    plan = Plan(tool, frozenset(), frozenset(), RetryPolicy(), 300.0, (0, 3), checks)
    return make_job(plan, inputs, lambda parts: OUTSIDE[parts])


def argv(*items: str, **inputs: Any) -> tuple[str, ...]:
    program = job(Tool(argv=items), **inputs).program
    assert program is not None
    return program.argv


def test_an_input_is_one_argument_whatever_it_contains() -> None:
    nasty = "; rm -rf / $(touch x) `id` \n {other} ${params.version} {{}}"
    assert argv("echo", "{text}", "--text={text}", text=nasty) == ("echo", nasty, f"--text={nasty}")


def test_a_list_that_stands_alone_becomes_an_argument_for_each_of_its_items() -> None:
    assert argv("ruff", "{paths}", "end", paths=["a", "b c", 3]) == ("ruff", "a", "b c", "3", "end")
    assert argv("ruff", "${params.files}") == ("ruff", "a b", "c")
    assert argv("ruff", "in {paths}", paths=["a"]) == ("ruff", 'in ["a"]')
    assert argv("ruff", "{paths}", paths=[]) == ("ruff",)


def test_braces_are_written_twice_and_values_that_are_no_text_as_json() -> None:
    assert argv("jq", "{{a: {n}}}", n=3) == ("jq", "{a: 3}")
    assert argv("x", "{flag}", "{nothing}", flag=True, nothing=None) == ("x", "true", "null")


def test_everything_about_a_program_is_filled_in() -> None:
    tool = Tool(
        argv=("agent",), env={"API_KEY": "${secrets.KEY}", "MODE": "{mode}"}, cwd="src/{part}", stdin="{text}!", grace=2
    )
    program = job(tool, mode="fast", part="core", text="hello").program
    assert program is not None
    assert program.env == {"API_KEY": "hunter22", "MODE": "fast"}
    assert (program.cwd, program.stdin, program.grace_s) == ("src/core", "hello!", 2)
    assert program.expected_exit_codes == (0, 3)


@pytest.mark.parametrize("value", ["..", "../x", "a/../../b", "/etc", "~root", "a/..", "\0"])
def test_an_input_cannot_lead_a_program_out_of_its_folder(value: str) -> None:
    with pytest.raises(Unbound, match="leads out of the workspace"):
        job(Tool(argv=("ls",), cwd="{dir}"), dir=value)
    with pytest.raises(Unbound, match="leads out of the workspace"):
        bind_check(Check(file_exists="${params.path}"), lambda parts: value)


def test_what_is_put_into_a_url_is_escaped_but_for_the_address_that_it_begins_with() -> None:
    tool = Tool(
        http=HttpRequest("{base}/items/{id}?q={q}", headers={"X-Id": "{id}"}, json={"n": "{n}", "all": ["{id}"]})
    )
    request = job(tool, base="http://localhost:1/v1", id="a/b?c=d", q="ü &x=1", n=3).request
    assert request is not None
    assert request.url == "http://localhost:1/v1/items/a%2Fb%3Fc%3Dd?q=%C3%BC%20%26x%3D1"
    assert request.headers == {"X-Id": "a/b?c=d"}
    assert request.json == {"n": 3, "all": ["a/b?c=d"]}
    fixed = job(Tool(http=HttpRequest("http://host/${params.version}/{q}")), q="/../x").request
    assert fixed is not None
    assert fixed.url == "http://host/1.2/%2F..%2Fx"


def test_an_input_that_is_missing_is_told() -> None:
    with pytest.raises(Unbound, match="add prompt under `with`"):
        argv("agent", "{prompt}")


def test_checks_take_references() -> None:
    found = job(
        Tool(call="a:b"), Check(file_exists="dist/app-${params.version}.whl"), Check(command=("x", "${params.version}"))
    )
    assert [check.file_exists or check.command for check in found.checks] == ["dist/app-1.2.whl", ("x", "1.2")]


def problems(**fields: Any) -> list[str]:
    return [str(each) for each in find_problems(Workstream(**fields))]


def test_a_shell_script_takes_no_values_in_its_text() -> None:
    bad = Tool(argv=("echo {name}", "{name}"), shell=True)
    good = Tool(argv=('echo "$1"', "{name}"), shell=True)
    task = Task("a", tool="t", inputs={"name": "x"})
    assert "could become commands" in problems(tasks=(task,), tools={"t": bad})[0]
    assert problems(tasks=(task,), tools={"t": good}) == []


def test_references_in_checks_and_in_json_are_looked_at_before_anything_runs() -> None:
    task = Task("a", call="x:y", checks=(Check(file_exists="${params.nope}"),))
    assert "there is no param 'nope'" in problems(tasks=(task,))[0]
    assert (
        "know params, secrets and directory"
        in problems(tasks=(Task("a", call="x:y"),), checks=(Check(command=("x", "${a.output}")),))[0]
    )
    tool = Tool(http=HttpRequest("http://x", json={"deep": ["{missing}"]}))
    assert "the input is missing" in problems(tasks=(Task("a", tool="t"),), tools={"t": tool})[0]
    both = Tool(http=HttpRequest("http://x", json={}, body="x"))
    assert "json or body" in problems(tasks=(Task("a", tool="t"),), tools={"t": both})[0]


def test_an_output_that_only_a_check_takes_is_waited_for() -> None:
    from understudy.actors.definition import dependencies

    first, second = Task("a", call="x:y"), Task("b", call="x:y", checks=(Check(file_exists="${a.output}"),))
    assert dependencies(Workstream((first, second))) == {"a": [], "b": ["a"]}


def test_the_folder_of_the_definition_is_known_everywhere() -> None:
    task = Task("a", tool="t", inputs={"here": "${directory}"})
    tool = Tool(argv=("python", "${directory}/agent.py"))
    workspace = Workspace(WorkspaceKind.WORKTREE, path="${directory}/repo", branch="${params.nope}")
    found = problems(tasks=(task,), tools={"t": tool}, workspace=workspace)
    assert found == ["$.workspace: ${params.nope} is not bound: there is no param 'nope'"]
