"""Programs: what they are given, what they give, and how they fail."""

import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tools.program_place import ProgramPlace, running_programs
from understudy.actors.definition import Gives
from understudy.actors.ports.workplace import Program
from understudy.actors.ports.workspaces import Place

SHOW_ARGUMENTS = "import json, sys; print(json.dumps(sys.argv[1:]))"
SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ProgramPlace]:
    async with running_programs(tmp_path) as made:
        yield made


def payloads(canary: Path) -> list[str]:
    """What would make a file if a shell, or anything else, took it for more than a text."""
    touch = f"touch {canary}"
    frames = [
        "; {}", "&& {}", "|| {}", "| {}", "& {}", "\n{}\n", "\r\n{}", "$({})", "`{}`", "${{IFS}}$({})",
        "'; {}; '", '"; {}; "', "'$({})'", '"$({})"', "\\'; {}; \\'", "a; {} #", "a\t;\t{}", "<({})", ">({})", "$(({}))",
        "{}", "sh -c '{}'", "-c {}", "--; {}", "!{}", "%0a{}", "\x1b[0m; {}", "é; {}", "\u2028{}", "\uff1b {}",
        "$0; {}", "$1; {}", "${{x:-$({})}}", "$'\\n{}'", "'\"'\"'; {}; '", "(({}))", "{{ {}; }}", "( {} )", "if true; then {}; fi", "eval {}",
        "exec {}", "\\; {}", "\\\n; {}", ";;{};;", "*; {}", "?; {}", "[a]; {}", "~; {}", "=; {}", "a=b {}",
    ]  # fmt: skip
    return [frame.format(touch) for frame in frames]


async def test_arguments_arrive_as_they_are_whatever_a_shell_would_make_of_them(
    place: ProgramPlace, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    given = [*payloads(canary), f"> {canary}", "", " ", "-n"]
    assert len(given) >= 50
    report = await place.python(SHOW_ARGUMENTS, *given, gives=Gives.JSON)
    assert (report.output, report.error) == (given, None)
    assert not canary.exists()


async def test_a_shell_script_finds_arguments_in_its_parameters_and_runs_none_of_them(
    place: ProgramPlace, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    given = payloads(canary)
    script = f"exec {sys.executable} -c '{SHOW_ARGUMENTS}' \"$@\""
    report = await place.script(script, *given, gives=Gives.JSON)
    assert (report.output, report.error) == (given, None)
    assert (await place.script('printf %s "$1"', given[0])).output == given[0]
    assert not canary.exists()


async def test_without_a_shell_nothing_is_expanded(place: ProgramPlace) -> None:
    assert (await place.run("echo", "$HOME", "*", "`id`")).output == "$HOME * `id`"


async def test_a_program_knows_its_attempt(place: ProgramPlace, tmp_path: Path) -> None:
    program = Program((sys.executable, "-c", SHOW_ENVIRONMENT), gives=Gives.JSON, env={"MINE": "yes"})
    order = place.order(program, place=Place(str(tmp_path)), previous_error="exit code 1: \0no")
    found = (await place.workplace.run(order)).output
    assert {name: value for name, value in found.items() if name.startswith("UNDERSTUDY_")} == {
        "UNDERSTUDY_TOKEN": "flow/a/1/1",
        "UNDERSTUDY_WORKSTREAM": "flow",
        "UNDERSTUDY_TASK": "a",
        "UNDERSTUDY_ATTEMPT": "1",
        "UNDERSTUDY_PREVIOUS_ERROR": "exit code 1: no",
        "UNDERSTUDY_WORKSPACE": str(tmp_path),
        "UNDERSTUDY_OUTPUT": found["UNDERSTUDY_OUTPUT"],
    }
    assert (found["MINE"], found["PATH"]) == ("yes", os.environ["PATH"])


async def test_a_program_does_not_inherit_what_an_outer_attempt_was_told(
    place: ProgramPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_PREVIOUS_ERROR", "of another")
    assert "UNDERSTUDY_PREVIOUS_ERROR" not in (await place.python(SHOW_ENVIRONMENT, gives=Gives.JSON)).output


async def test_what_is_written_to_stdin_is_read_however_long(place: ProgramPlace) -> None:
    text = "0123456789" * 100_000
    assert (await place.run("wc", "-c", stdin=text)).output.strip() == "1000000"
    assert (await place.run("cat", stdin="")).output == ""
    assert (await place.run("true", stdin=text)).error is None  # it reads nothing of it


async def test_without_stdin_there_is_nothing_to_read(place: ProgramPlace) -> None:
    assert (await place.run("cat")).output == ""


@pytest.mark.parametrize(
    ("script", "gives", "output"),
    [
        ("printf 'a\\nb\\n\\n'", Gives.TEXT, "a\nb"),
        ("printf '\\377 \\303\\251'", Gives.TEXT, "\N{REPLACEMENT CHARACTER} \N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("true", Gives.TEXT, ""),
        ("echo '{\"a\": [1, null]}'", Gives.JSON, {"a": [1, None]}),
        ("echo aside; printf '[1]' > $UNDERSTUDY_OUTPUT", Gives.TEXT, [1]),
        ("echo aside; echo 7 >> $UNDERSTUDY_OUTPUT", Gives.JSON, 7),
        (": > $UNDERSTUDY_OUTPUT; echo text", Gives.TEXT, "text"),
    ],
)
async def test_output_is_the_file_that_was_written_or_stdout(
    place: ProgramPlace, script: str, gives: Gives, output: Any
) -> None:
    report = await place.script(script, gives=gives)
    assert (report.output, report.error, report.exit_code) == (output, None, 0)
    assert report.output_bytes == len(json.dumps(output, separators=(",", ":"), ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("script", "gives", "says"),
    [
        ("echo nonsense", Gives.JSON, "stdout is not the JSON that was expected: JSON is malformed"),
        ("true", Gives.JSON, "stdout is not the JSON that was expected: there is nothing"),
        ("echo '{' > $UNDERSTUDY_OUTPUT", Gives.TEXT, "what was written to $UNDERSTUDY_OUTPUT is not the JSON"),
        ("head -c 2000000 /dev/zero > $UNDERSTUDY_OUTPUT", Gives.TEXT, "result 2.0 MB > 1 MiB: return a file"),
        ("head -c 3000000 /dev/zero", Gives.JSON, "result 3.0 MB > 1 MiB: return a file"),
        ("printf %065d 0 | tr 0 [", Gives.JSON, "stdout is not the JSON"),
    ],
)
async def test_output_that_cannot_be_taken_is_a_permanent_failure(
    place: ProgramPlace, script: str, gives: Gives, says: str
) -> None:
    report = await place.script(script, gives=gives)
    assert says in (report.error or "")
    assert (report.permanent, report.exit_code, report.output) == (True, 0, None)


async def test_nothing_is_left_of_the_file_that_was_written(place: ProgramPlace) -> None:
    for script in ("echo 1 > $UNDERSTUDY_OUTPUT", "echo 1 > $UNDERSTUDY_OUTPUT; exit 3"):
        await place.script(script)
    assert list(place.folders.outputs.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "code", "error"),
    [
        ("echo first >&2; echo out; echo why >&2; echo >&2; exit 3", 3, "exit code 3: why"),
        ("echo out; exit 4", 4, "exit code 4: out"),
        ("exit 5", 5, "exit code 5"),
        ("kill -KILL $$", -signal.SIGKILL, "killed by SIGKILL"),
        ("echo oh >&2; kill -ABRT $$", -signal.SIGABRT, "killed by SIGABRT: oh"),
        ("kill -40 $$", -40, "killed by signal 40"),
    ],
)
async def test_a_program_that_fails_says_how_and_its_last_line(
    place: ProgramPlace, script: str, code: int, error: str
) -> None:
    report = await place.script(script)
    assert (report.exit_code, report.error, report.output, report.permanent) == (code, error, None, False)


async def test_the_text_of_a_failure_holds_both_streams_for_the_rules_to_search(place: ProgramPlace) -> None:
    report = await place.script("echo rate limit; echo overloaded >&2; exit 1")
    assert "rate limit" in report.text
    assert "overloaded" in report.text


async def test_a_long_last_line_is_cut_short_in_the_error(place: ProgramPlace) -> None:
    report = await place.script("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
    assert len(report.error or "") < 400


async def test_an_exit_code_that_was_expected_is_a_success(place: ProgramPlace) -> None:
    report = await place.script("echo found nothing; exit 1", expected_exit_codes=(0, 1))
    assert (report.output, report.error, report.exit_code) == ("found nothing", None, 1)
    assert (await place.script("exit 0", expected_exit_codes=(1,))).error == "exit code 0"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["no-such-program-here"], "there is no program 'no-such-program-here' on PATH"),
        (["./missing"], "there is no program './missing' in "),
        (["./plain"], "'./plain' may not be executed"),
        (["./shapeless"], "'./shapeless' is no program for this machine"),
        (["./astray"], "or the program that its first line names is missing"),
        (["echo", "a\0b"], "holds a NUL character"),
        (["echo", "x" * 3_000_000], "arguments and environment are too long"),
        (["echo", "\ud800"], "'echo' cannot be started"),
    ],
)
async def test_what_cannot_be_started_is_a_permanent_failure(
    place: ProgramPlace, tmp_path: Path, argv: list[str], says: str
) -> None:
    for name, mode, text in (
        ("plain", 0o600, "#!/bin/sh\n"),
        ("shapeless", 0o700, "\x01"),
        ("astray", 0o700, "#!/no/such\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    report = await place.run(*argv, place=Place(str(tmp_path)))
    assert says in (report.error or "")
    assert (report.permanent, report.exit_code) == (True, None)


async def test_a_variable_that_no_environment_can_hold_is_a_permanent_failure(place: ProgramPlace) -> None:
    assert (await place.run("true", env={"A=B": "c"})).permanent
    assert "NUL" in ((await place.run("true", env={"A": "\0"})).error or "")


async def test_every_line_of_both_streams_is_logged_and_told(place: ProgramPlace) -> None:
    await place.script("echo one; echo two >&2; echo; printf three")
    [log] = place.logs()
    assert sorted(log.splitlines()) == ["", "one", "three", "two"]
    assert log.endswith("\n")
    assert place.ears.lines == log.splitlines()


async def test_the_log_can_be_followed_while_the_program_runs_and_only_by_its_owner(
    place: ProgramPlace, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    running = place.start('echo ready; read line < "$1"; echo $line >&2', str(gate), shell=True)
    assert await place.ears.hear() == ["ready"]
    [log] = place.folders.logs("flow")
    assert log.path.read_text() == "ready\n"
    gate.write_text("go on\n")
    await running
    assert log.path.read_text() == "ready\ngo on\n"
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (log.path, log.path.parent, place.folders.root)]
    assert modes == [0o600, 0o700, 0o700]


async def test_an_attempt_without_output_leaves_no_log(place: ProgramPlace) -> None:
    await place.run("true")
    assert place.logs() == []


async def test_long_output_is_kept_as_head_and_tail(place: ProgramPlace) -> None:
    report = await place.python("print('head', 'x' * 50_000, 'y' * 50_000, 'tail')")
    assert report.output.startswith("head x")
    assert report.output.endswith("y tail")
    assert "\n[... 34.5 kB left out ...]\n" in report.output
    assert len(report.output) < 66_000


async def test_programs_run_beside_each_other(place: ProgramPlace, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    reading = place.start("cat", str(gate))
    writing = place.start('echo met > "$1"', str(gate), shell=True)
    assert ((await reading).output, (await writing).error) == ("met", None)


async def test_nothing_is_left_open(place: ProgramPlace) -> None:
    await place.run("echo", "a", stdin="b")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await place.run("echo", "a", stdin="b")
        await place.run("no-such-program-here")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
