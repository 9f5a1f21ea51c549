"""Checks that run programs: commands without a shell, and imports in a fresh Python or Node.js."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.integration.checks.checked import fault, nothing_left_behind, run, subject
from understudy.actors.definition import Check

METACHARACTERS = ["; touch canary", "$(touch canary)", "`touch canary`", "| touch canary", "&& touch canary", "> canary",
                  "\n touch canary\n", "*", "~", "$HOME", "' \"", "--", "-c", "{a,b}", "!!", "\\", "", "ü\t"]  # fmt: skip
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js here")


async def test_a_command_passes_with_exit_code_0(tmp_path: Path) -> None:
    assert await fault(Check(command=("true",)), subject(tmp_path)) is None


async def test_a_command_runs_in_the_place(tmp_path: Path) -> None:
    look = "import os, sys; sys.exit(f'{os.getcwd()} {os.environ[\"UNDERSTUDY_WORKSPACE\"]}')"
    found = await fault(Check(command=(sys.executable, "-c", look)), subject(tmp_path))
    assert found == f"exit code 1:\n{tmp_path} {tmp_path}"


async def test_a_failed_command_is_told_with_its_last_lines(tmp_path: Path) -> None:
    write = "import sys; print(*range(100_000), sep='\\n', flush=True); sys.exit('the end \\udc80')"
    found = str(await fault(Check(command=(sys.executable, "-c", write)), subject(tmp_path)))
    assert found.splitlines()[0] == "exit code 1:"
    assert found.splitlines()[-2:] == ["99999", "the end \\udc80"]
    assert len(found.splitlines()) == 21


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("false",), "exit code 1"),
        (("sh", "-c", "kill -KILL $$"), "killed by SIGKILL"),
        (("sh", "-c", "kill -40 $$"), "killed by signal 40"),
        (("no-such-program",), "NotStarted: there is no program 'no-such-program' on PATH"),
        (("true", "a\0b"), "NotStarted: 'true' cannot be started: an argument or a variable holds a NUL"),
    ],
)
async def test_a_command_that_does_not_pass_says_why(tmp_path: Path, command: tuple[str, ...], expected: str) -> None:
    assert str(await fault(Check(command=command), subject(tmp_path))).startswith(expected)


async def test_a_missing_place_is_told(tmp_path: Path) -> None:
    found = await fault(Check(command=("true",)), subject(tmp_path / "gone"))
    assert f"there is no directory {tmp_path / 'gone'}" in str(found)


async def test_arguments_reach_a_program_as_they_are(tmp_path: Path) -> None:
    write = "import json, sys; json.dump(sys.argv[1:], open('arguments', 'w'))"
    assert await fault(Check(command=(sys.executable, "-c", write, *METACHARACTERS)), subject(tmp_path)) is None
    assert json.loads((tmp_path / "arguments").read_text()) == METACHARACTERS
    assert [path.name for path in tmp_path.iterdir()] == ["arguments"]


async def test_a_command_that_takes_too_long_is_ended_with_its_whole_group(tmp_path: Path) -> None:
    script = 'sh -c "trap \\"\\" TERM; while :; do sleep 600; done" "$0" & echo working; wait'
    with nothing_left_behind(str(tmp_path)):
        found = await fault(Check(command=("sh", "-c", script, str(tmp_path)), timeout=1.5), subject(tmp_path))
    assert found == "it took longer than 1.5 s:\nworking"


async def test_a_python_module_of_the_place_imports_and_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "part.py").write_text("import json\nprint('hello')")
    assert await fault(Check(python_import="package.part"), subject(tmp_path)) is None
    assert [path.name for path in tmp_path.rglob("*")] == ["package", "part.py"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("gone", "", "ModuleNotFoundError: No module named 'gone'"),
        ("module", "import gone_as_well", "ModuleNotFoundError: No module named 'gone_as_well'"),
        ("module", "print('not this'); raise ValueError('late')", "ValueError: late"),
        ("module", "def", "SyntaxError: invalid syntax"),
        ("module", "raise SystemExit(3)", "exit code 3"),
        ("module; import os", "", "ModuleNotFoundError: No module named 'module; import os'"),
        ("sub/../module", "", "ModuleNotFoundError: No module named 'sub/'"),
        ("-h", "", "ModuleNotFoundError: No module named '-h'"),
    ],
)
async def test_a_python_import_that_fails_says_why(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert await fault(Check(python_import=name), subject(tmp_path)) == expected


@pytest.mark.parametrize("folder", [".venv", "venv"])
async def test_the_python_of_the_place_is_used(tmp_path: Path, folder: str) -> None:
    python = tmp_path / folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho this is another Python >&2\nexit 1\n")
    python.chmod(0o755)
    assert await fault(Check(python_import="sys"), subject(tmp_path)) == "this is another Python"


async def test_without_node_a_javascript_import_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await fault(Check(js_import="fs"), subject(tmp_path)) == "Node.js is not on PATH: install it"


@pytest.fixture
def javascript(tmp_path: Path) -> Path:
    """Packages above and in the place, files in it, and one outside."""
    files = {
        "node_modules/above/package.json": '{"main": "i.js"}',
        "node_modules/above/i.js": "module.exports = 1",
        "outside.mjs": "export default 1",
        "place/node_modules/new/package.json": '{"type": "module", "exports": "./i.js"}',
        "place/node_modules/new/i.js": "export default 1",
        "place/node_modules/old/package.json": '{"main": "i.js"}',
        "place/node_modules/old/i.js": "module.exports = 1; setInterval(() => {}, 1000)",
        "place/new.mjs": "export default 1",
        "place/old.cjs": "module.exports = 1",
        "place/bad.mjs": "export const = 1",
        "place/late.mjs": "throw new Error('late')",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "place" / "link.mjs").symlink_to(tmp_path / "outside.mjs")
    return tmp_path / "place"


@needs_node
async def test_packages_and_files_of_the_place_import(javascript: Path) -> None:
    names = ["new", "old", "above", "node:fs", "./new.mjs", "./old.cjs", (javascript / "new.mjs").as_uri()]
    results = await run(*(Check(js_import=name) for name in names), of=subject(javascript))
    assert [each.detail for each in results] == [None] * len(names)


@needs_node
async def test_a_javascript_import_that_fails_says_why(javascript: Path) -> None:
    expected = {
        "./bad.mjs": "SyntaxError: Unexpected token '='",
        "./late.mjs": "Error: late",
        "gone": "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'gone' imported from",
        "./gone.mjs": "Error [ERR_MODULE_NOT_FOUND]: Cannot find module",
        "--version": "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '--version'",
    }
    results = await run(*(Check(js_import=name) for name in expected), of=subject(javascript))
    for result, start in zip(results, expected.values(), strict=True):
        assert str(result.detail).startswith(start)


@needs_node
async def test_no_javascript_path_leads_out_of_a_closed_place(javascript: Path) -> None:
    outside = javascript.parent / "outside.mjs"
    names = ["../outside.mjs", "./%2e%2e/outside.mjs", "./..\\outside.mjs", "./.\t./outside.mjs", "../gone.mjs", "./link.mjs",
             str(outside), outside.as_uri(), f" {outside.as_uri()}", "../node_modules/above/i.js",
             "old/../../../outside.mjs"]  # fmt: skip
    results = await run(*(Check(js_import=name) for name in names), of=subject(javascript))
    assert [each.detail for each in results] == [f"{name} leads out of the workspace" for name in names]
    results = await run(*(Check(js_import=name) for name in names[:1]), of=subject(javascript, is_closed=False))
    assert [each.detail for each in results] == [None]


async def test_a_check_without_a_place_runs_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await fault(Check(command=("touch", "here")), subject()) is None
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
