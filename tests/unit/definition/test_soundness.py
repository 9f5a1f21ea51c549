"""A definition that makes no sense is told everything that is wrong with it, and where."""

from typing import Any

import pytest

from understudy.actors.definition import (
    Check,
    ErrorRules,
    HttpRequest,
    RetryPolicy,
    Task,
    Tool,
    WorkerDefinition,
    Workspace,
    WorkspaceKind,
    Workstream,
    dependencies,
    find_problems,
)


def problems_of(*tasks: Task, **fields: Any) -> list[str]:
    return [str(problem) for problem in find_problems(Workstream(tasks=tasks, **fields))]


def call(id: str, *after: str, **fields: Any) -> Task:  # noqa: A002 - the word of the definition
    return Task(id=id, call="shop.jobs:run", after=after, **fields)


def test_sound_definition_has_no_problems() -> None:
    agent = Tool(argv=("aider", "--message", "{prompt}"))
    fix = Task(id="fix", tool="agent", inputs={"prompt": "Fix ${params.what}"}, checks=(Check(file_exists="a.py"),))
    notes = call("notes", "fix", inputs={"diff": "${fix.output.files[0].diff}", "token": "${secrets.TOKEN}"})
    assert problems_of(fix, notes, tools={"agent": agent}, params={"what": "it"}, secrets=("TOKEN",)) == []


@pytest.mark.parametrize(
    ("task", "fields", "problem"),
    [
        (Task(id="a"), {}, "$.tasks[0]: a task has exactly one of tool, call and argv; this one has none"),
        (
            Task(id="a", call="m:f", argv=("ls",)),
            {},
            "$.tasks[0]: a task has exactly one of tool, call and argv; this one has call and argv",
        ),
        (
            Task(id="a", call="no function"),
            {},
            "$.tasks[0].call: 'no function' is not the name of a function (write package.module:function)",
        ),
        (
            Task(id="a", tool="agnet"),
            {"tools": {"agent": Tool(argv=("aider",))}},
            "$.tasks[0].tool: there is no tool 'agnet' (did you mean 'agent'?)",
        ),
        (call("a", "b"), {}, "$.tasks[0].after[0]: there is no task 'b'"),
        (call("params"), {}, "$.tasks[0].id: 'params' has a meaning of its own in ${...} (choose another id)"),
        (
            call("a", inputs={"x": {"y": ["${params.vesion}"]}}),
            {"params": {"version": 1}},
            "$.tasks[0].with.x.y[0]: ${params.vesion} is not bound: there is no param 'vesion' (did you mean 'version'?)",
        ),
        (
            call("a", inputs={"x": "${secrets.KEY}"}),
            {},
            "$.tasks[0].with.x: ${secrets.KEY} is not bound: 'KEY' is not in secrets",
        ),
        (
            call("a", inputs={"x": "${item}"}),
            {},
            "$.tasks[0].with.x: ${item} is not bound: there is an item only where `each` is given",
        ),
        (
            call("a", condition="${b.output}"),
            {},
            "$.tasks[0].if: ${b.output} is not bound: there is no task 'b'",
        ),
        (
            call("a", each="${a b}"),
            {},
            "$.tasks[0].each: ${a b} is not bound: it cannot be read (write ${params.name}, ${task.output.field} or ${item})",
        ),
        (
            Task(id="a", argv=("echo", "{text}")),
            {},
            "$.tasks[0].with: {text} is not bound: the input is missing (add text under `with`)",
        ),
        (
            Task(id="a", tool="api", inputs={"nam": 1}),
            {"tools": {"api": Tool(http=HttpRequest(url="http://localhost/{name}"))}},
            "$.tasks[0].with: {name} is not bound: the input is missing (did you mean 'nam'?)",
        ),
        (
            call("a", capabilities=("gpus",)),
            {"workers": (WorkerDefinition(id="w", capabilities=("gpu",)),)},
            "$.tasks[0].capabilities: no worker offers 'gpus' (did you mean 'gpu'?)",
        ),
        (
            Task(id="a", argv=("echo", '{"a": {missing}}', "{{kept}}")),
            {},
            "$.tasks[0].with: {missing} is not bound: the input is missing (add missing under `with`)",
        ),
        (
            Task(id="a", argv=("echo", "${params.x}")),
            {},
            "$.tasks[0].argv[1]: ${params.x} is not bound: there is no param 'x'",
        ),
        (
            Task(id="a", tool="t"),
            {"tools": {"t": Tool(argv=("x",), env={"KEY": "${secrets.NOPE}"})}},
            "$.tools.t: ${secrets.NOPE} is not bound: 'NOPE' is not in secrets",
        ),
        (
            Task(id="a", tool="t"),
            {"tools": {"t": Tool(argv=("${b.output}",))}},
            "$.tools.t: ${b.output} is not bound: a tool knows params, secrets and directory",
        ),
        (call("a", each=5), {}, "$.tasks[0].each: it is neither a list nor a ${...} that gives one"),
        (
            call("a", each=["${item}"]),
            {},
            "$.tasks[0].each[0]: ${item} is not bound: there is an item only where `each` is given",
        ),
        (
            call("a"),
            {"workers": (WorkerDefinition(id="w"), WorkerDefinition(id="w"))},
            "$.workers[1].id: there is another worker 'w'",
        ),
        (
            call("a"),
            {"workspace": Workspace(kind=WorkspaceKind.WORKTREE)},
            "$.workspace: a worktree needs the path of its repository (add path)",
        ),
        (call("a", checks=(Check(),)), {}, "$.tasks[0].checks[0]: a check has exactly one kind; this one has none"),
        (
            call("a", checks=(Check(output_matches="("),)),
            {},
            "$.tasks[0].checks[0].output_matches: '(' is not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (
            call("a", retry=RetryPolicy(base_delay=90)),
            {},
            "$.tasks[0].retry.base_delay: 90 s is more than max_delay, 60.0 s",
        ),
        (
            call("a", retry=RetryPolicy(transient=ErrorRules(patterns=("[",)))),
            {},
            "$.tasks[0].retry.transient.patterns[0]: '[' is not a regular expression: "
            "unterminated character set at position 0",
        ),
        (
            Task(id="a", tool="t"),
            {"tools": {"t": Tool()}},
            "$.tools.t: a tool has exactly one of argv, call and http; this one has none",
        ),
    ],
)
def test_problem_is_told_with_its_path_and_a_remedy(task: Task, fields: dict[str, Any], problem: str) -> None:
    assert problems_of(task, **fields) == [problem]


def test_all_problems_are_told_at_once() -> None:
    found = problems_of(call("a", "x"), call("a", "y"), Task(id="b", tool="none"))
    assert len(found) == 4


def test_duplicate_id_is_told() -> None:
    assert problems_of(call("a"), call("a")) == [
        "$.tasks[1].id: there is another task 'a' (give each task an id of its own)"
    ]


def test_cycle_is_told_in_the_order_of_running() -> None:
    assert problems_of(call("c", "b"), call("a", "c"), call("b", "a"), call("d", "a")) == [
        "$.tasks[1].after: tasks wait for each other: a -> b -> c -> a"
    ]


def test_task_that_waits_for_itself_is_a_cycle() -> None:
    assert problems_of(call("a", "a")) == ["$.tasks[0].after: tasks wait for each other: a -> a"]


def test_cycle_through_outputs_is_found() -> None:
    found = problems_of(call("a", inputs={"x": "${b.output}"}), call("b", "a"))
    assert found == ["$.tasks[0].after: tasks wait for each other: a -> b -> a"]


def test_cycles_that_share_no_task_are_all_told() -> None:
    found = problems_of(call("a", "b"), call("b", "a"), call("c", "d"), call("d", "c"))
    assert [problem.split(": ")[-1] for problem in found] == ["a -> b -> a", "c -> d -> c"]


def test_output_that_is_used_is_waited_for() -> None:
    definition = Workstream(tasks=(call("a"), call("b"), call("c", "b", inputs={"x": "${a.output}"})))
    assert dependencies(definition) == {"a": [], "b": [], "c": ["b", "a"]}


def test_chain_of_a_hundred_thousand_tasks_is_checked_without_recursion() -> None:
    chain = [call("t0"), *(call(f"t{number}", f"t{number - 1}") for number in range(1, 100_000))]
    assert find_problems(Workstream(tasks=tuple(chain))) == []


def test_cycle_of_a_hundred_thousand_tasks_is_found_without_recursion() -> None:
    ring = [call(f"t{number}", f"t{(number - 1) % 100_000}") for number in range(100_000)]
    [problem] = find_problems(Workstream(tasks=tuple(ring)))
    assert problem.message.count(" -> ") == 100_000
