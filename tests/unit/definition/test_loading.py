"""From YAML, TOML and JSON comes the same definition; what is wrong is told with file, line and path."""

import tracemalloc
from pathlib import Path

import msgspec
import pytest

from understudy.actors.definition import DefinitionError, Workstream
from understudy.runtime.definition import load
from understudy.runtime.definition.yaml_reading import read_yaml

YAML = """
id: release-42
params: {version: 1.2.0, yes: no, when: 12:30, count: 0x10, share: 1e-1, nothing: ~}
tools:
  agent:
    argv: [aider, --message, "{prompt}"]
    timeout: 600
    retry: {max_attempts: 3}
tasks:
  - id: fix
    tool: agent
    with: {prompt: "Fix it"}
    checks: [{file_exists: src/app.py}, {command: [pytest, -q]}]
  - id: notes
    call: shop.release:write_notes
    with: {version: "${params.version}", diff: "${fix.output.diff}"}
    after: [fix]
"""
TOML = """
id = "release-42"
[params]
version = "1.2.0"
yes = "no"
when = "12:30"
count = 16
share = 0.1
[tools.agent]
argv = ["aider", "--message", "{prompt}"]
timeout = 600
retry = {max_attempts = 3}
[[tasks]]
id = "fix"
tool = "agent"
with = {prompt = "Fix it"}
checks = [{file_exists = "src/app.py"}, {command = ["pytest", "-q"]}]
[[tasks]]
id = "notes"
call = "shop.release:write_notes"
with = {version = "${params.version}", diff = "${fix.output.diff}"}
after = ["fix"]
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def problems_in(path: Path) -> list[str]:
    with pytest.raises(DefinitionError) as refusal:
        load(path)
    return [str(problem).removeprefix(f"{path}:") for problem in refusal.value.problems]


def test_the_same_words_serve_yaml_toml_and_json(tmp_path: Path) -> None:
    from_yaml = load(write(tmp_path, "a.yaml", YAML))
    from_toml = load(write(tmp_path, "a.toml", TOML.replace("share = 0.1", "share = 0.1")))
    from_json = load(write(tmp_path, "a.json", msgspec.json.encode(from_yaml).decode()))
    assert from_yaml == from_json
    without_null = {name: value for name, value in from_yaml.params.items() if value is not None}
    assert msgspec.structs.replace(from_yaml, params=without_null) == from_toml


def test_what_is_read_is_the_core_of_yaml_1_2() -> None:
    text = (
        "{a: yes, b: true, c: 12:30, d: 017, e: 0o17, f: 0x1F, g: 1_000, h: .5, i: -.inf, j: ~, k: '1', l: 2024-01-01}"
    )
    assert read_yaml(text) == {
        "a": "yes", "b": True, "c": "12:30", "d": 17, "e": 15, "f": 31, "g": "1_000", "h": 0.5,
        "i": float("-inf"), "j": None, "k": "1", "l": "2024-01-01",
    }  # fmt: skip


def test_definition_survives_a_round_trip(tmp_path: Path) -> None:
    definition = load(write(tmp_path, "a.yaml", YAML))
    assert msgspec.json.decode(msgspec.json.encode(definition), type=Workstream) == definition


def test_every_problem_has_line_column_path_and_remedy(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "bad.yaml",
        "id: release 42\n"
        "parms: {}\n"
        "tasks:\n"
        "  - id: fix\n"
        "    when: all_suceeded\n"
        "    call: m:f\n"
        "    retry: {max_attempts: none}\n"
        "  - call: m:f\n"
        "    after: [fx]\n",
    )
    assert problems_in(path) == [
        "1:1: $.id: 'release 42' does not have the right form (Letters, digits, dot, dash and underscore; at most 128.)",
        "2:1: $.parms: unknown field 'parms' (did you mean 'params'?)",
        "5:5: $.tasks[0].when: invalid enum value 'all_suceeded' (did you mean 'all_succeeded'?)",
        "7:13: $.tasks[0].retry.max_attempts: expected int, got str",
        "8:5: $.tasks[1]: the field 'id' is missing",
        "9:13: $.tasks[1].after[0]: there is no task 'fx' (did you mean 'fix'?)",
    ]


def test_toml_has_no_lines_but_paths(tmp_path: Path) -> None:
    path = write(tmp_path, "bad.toml", 'parms = {}\ntasks = [{id = "a", call = "m:f", timeout = -1}]\n')
    assert problems_in(path) == [
        " $.parms: unknown field 'parms' (did you mean 'params'?)",
        " $.tasks[0].timeout: expected float > 0.0",
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", "tasks: [", "2:1: $: did not find expected node content"),
        ("a.toml", "tasks = [", "Invalid value (at end of document)"),
        ("a.json", '{"tasks": [}', "1:12: $: Expecting value"),
        ("a.json", '{"tasks": [], "tasks": []}', "the key 'tasks' is there twice"),
        ("a.json", "[" * 20_000, "nested too deeply"),
        ("a.toml", "a = " + "[" * 20_000, "nested too deeply"),
        ("a.yaml", "- a\n", "expected a mapping, got a list"),
        ("a.yaml", "", "expected a mapping, got nothing"),
        ("a.json", '{"a": ' + "9" * 5_000 + "}", "Exceeds the limit"),
        ("a.yaml", "a: " + "9" * 5_000, "Exceeds the limit"),
        ("a.toml", "a = " + "9" * 5_000, "Exceeds the limit"),
        ("a.json", '{"tasks": [], "x": "\\ud83d\\ude00\u007f"}', "unknown field 'x'"),
        ("a.yaml", 'tasks: [{id: "a\\n", call: "m:f"}]', "does not have the right form"),
        ("a.yaml", "tasks: [{id: a.b, call: 'm:f'}]", "no dots"),
        ("a.yaml", "k: &k tasks\n*k : []\n", "unknown field 'k'"),
        ("a.txt", "", ".txt is not known (use .yaml, .toml or .json)"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, name: str, text: str, problem: str) -> None:
    [found] = problems_in(write(tmp_path, name, text))
    assert problem in found


def test_missing_file_is_told(tmp_path: Path) -> None:
    assert problems_in(tmp_path / "none.yaml") == [" $: it cannot be read: No such file or directory"]


def test_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"id: caf\xe9\n")
    assert "it is not UTF-8" in problems_in(path)[0]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "aliases repeat more than 100000 values"),
        ("[" * 20_000, "nested deeper than 64 levels"),
        ("\n".join(" " * depth + "a:" for depth in range(2_000)), "nested deeper than 64 levels"),
        ("a: !!python/object/apply:os.system [ls]", "the tag tag:yaml.org,2002:python/object/apply:os.system"),
        ("a: !mine 1", "the tag !mine is not allowed"),
        ("a: 1\nb: 2\na: 3\n", "3:1: $: the key 'a' is there twice"),
        ("a: *nothing", "there is no anchor &nothing before it"),
        ("a: 1\n---\nb: 2\n", "a file holds one document"),
        ("a0: &a0 []\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100)), "nested deeper than 64 levels"),
        ("{[a]: 1}", "a key must be a text"),
        ("1: a", "a key must be a text, not 1; put it in quotes"),
    ],
)
def test_hostile_yaml_is_refused_with_its_place_and_little_memory(text: str, problem: str) -> None:
    tracemalloc.start()
    with pytest.raises(DefinitionError) as refusal:
        read_yaml(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem in str(refusal.value)
    assert refusal.value.problems[0].line is not None
    assert peak < 50 * 2**20


def test_aliases_that_do_not_multiply_are_allowed() -> None:
    assert read_yaml("a: &x {n: 1}\nb: *x\nc: [*x, *x]\n") == {"a": {"n": 1}, "b": {"n": 1}, "c": [{"n": 1}, {"n": 1}]}


def test_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbftasks: []\n")
    assert load(path).tasks == ()


def test_key_with_dots_or_brackets_has_a_path_of_its_own(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.yaml",
        "tasks:\n  - id: a\n    call: m:f\n    with:\n      a: {b: 1}\n      a.b: ${nope}\n      x: [1]\n      'x[0]': ${nope}\n",
    )
    assert [problem.split(": ")[:2] for problem in problems_in(path)] == [
        ["6:7", '$.tasks[0].with["a.b"]'],
        ["8:7", '$.tasks[0].with["x[0]"]'],
    ]
