"""How a run tells its end: exit codes, lines, JSON, and what it refuses before it begins."""

import os
import re
from pathlib import Path

import pytest

from tests.integration.cli.runs import ask, running, shell, state_of, wait_for, write

AT_ONCE = ", retry: {max_attempts: 1}"
PARAMS = "params: {count: 1, text: a, flag: true, items: [1]}"
ECHO = "  - {id: a, argv: [echo, '${params.count} ${params.text} ${params.flag} ${params.items}']}"


async def test_a_run_that_completes_exits_with_0_and_tells_each_step_on_a_line(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", "echo hello; echo there >&2"), shell("b", "true", ", after: [a]"))
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 0
    told = [re.sub(r"^\d\d:\d\d:\d\d ", "", line.rstrip("\n")) for line in run.said]
    assert [line for line in told if line.startswith(("a ", "b "))] == [
        "a running (attempt 1 on programs)", "a | hello", "a | there", "a completed",
        "b running (attempt 1 on programs)", "b completed",
    ]  # fmt: skip
    assert told[-1] == "w completed: 2 completed"
    assert "\x1b" not in run.text


async def test_a_run_that_fails_exits_with_1_and_says_where_to_look(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", "echo dust; exit 7", AT_ONCE), shell("b", "true", ", after: [a]"))
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 1
    assert "  a: exit code 7: dust" in run.text
    [path] = re.findall(r"its output is in (.*)", run.text)
    assert Path(path).read_text().endswith("dust\n")
    assert "    understudy explain w --db state.db\n" in f"{run.text}\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["work.yaml", "--resume", "w"],
        ["--resume", "w", "-p", "a=1"],
        ["--resume", "nobody"],
        ["work.yaml", "--workers", "0"],
    ],
)
async def test_bad_use_exits_with_2(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", "true"))
    async with running(tmp_path, *words) as run:
        assert await run.end() == 2


async def test_a_blocked_run_exits_with_4_and_its_remedy_works(tmp_path: Path) -> None:
    write(
        tmp_path,
        "id: w",
        "on_failure: block",
        "tasks:",
        shell("a", "[ -e go ]", AT_ONCE),
        shell("b", "true", ", after: [a]"),
    )
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 4
    remedies = re.findall(r"^    understudy (.*)$", run.text, re.MULTILINE)
    explained = ask(tmp_path, *remedies[0].split())
    assert explained.returncode == 0
    assert "what to do" in explained.stdout
    (tmp_path / "go").touch()
    resumed = ask(tmp_path, *remedies[1].split())
    assert resumed.returncode == 0
    assert "w completed: 2 completed" in resumed.stdout


async def test_a_bad_definition_exits_with_5_and_shows_the_place(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", "  - {id: a, argv: [true], aftr: [b]}")
    finished = ask(tmp_path, "run", "work.yaml")
    assert finished.returncode == 5
    assert re.search(r"work.yaml:3:\d+: .*aftr", finished.stderr)
    assert re.search(r"^ +\^$", finished.stderr, re.MULTILINE)
    assert "did you mean 'after'?" in finished.stderr
    assert not (tmp_path / "state.db").exists()


async def test_a_function_that_is_not_there_is_a_bad_definition(tmp_path: Path) -> None:
    write(tmp_path, "tasks: [{id: a, call: 'nowhere:to_be_found'}]")
    finished = ask(tmp_path, "run", "work.yaml")
    assert finished.returncode == 5
    assert "there is no module 'nowhere'" in finished.stderr
    assert "Traceback" not in finished.stderr


async def test_json_is_an_object_to_a_line_and_ends_with_the_end(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", "echo '{}'; exit 1", AT_ONCE))
    async with running(tmp_path, "work.yaml", "--json") as run:
        assert await run.end() == 1
    assert {each["type"] for each in run.told} == {"transition", "output", "end"}
    assert [each["line"] for each in run.told if each["type"] == "output"] == ["{}"]
    end = run.told[-1]
    assert (end["type"], end["workstream_id"], end["state"], end["exit_code"]) == ("end", "w", "failed", 1)


async def test_one_worker_runs_one_program_at_a_time(tmp_path: Path) -> None:
    lock = "mkdir busy || exit 1; sleep 0.02; rmdir busy"
    write(tmp_path, "tasks:", *(shell(f"a{index}", lock, AT_ONCE) for index in range(6)))
    async with running(tmp_path, "work.yaml", "--workers", "1") as run:
        assert await run.end() == 0


async def test_params_have_the_types_of_those_that_they_replace(tmp_path: Path) -> None:
    write(tmp_path, PARAMS, "tasks:", ECHO)
    async with running(
        tmp_path, "work.yaml", "-p", "count=2", "-p", "text=3", "-p", "flag=false", "-p", "items=[4,5]"
    ) as run:
        assert await run.end() == 0
    assert "a | 2 3 false [4,5]" in run.text


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("count", 2, "--param count: write NAME=VALUE"),
        ("count=x", 2, "--param count: 'x' is not JSON, and 1 is no text"),
        ("cuont=1", 5, "--param cuont: there is no such param (did you mean 'count'?)"),
    ],
)
def test_a_param_that_cannot_be_is_refused(tmp_path: Path, given: str, code: int, said: str) -> None:
    write(tmp_path, PARAMS, "tasks:", ECHO)
    finished = ask(tmp_path, "run", "work.yaml", "--param", given)
    assert finished.returncode == code
    assert said in finished.stderr


def test_a_file_with_an_id_that_is_run_twice_is_told_to_resume(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", "true"))
    assert ask(tmp_path, "run", "work.yaml").returncode == 0
    finished = ask(tmp_path, "run", "work.yaml")
    assert finished.returncode == 2
    assert finished.stderr.startswith(
        "understudy: there is a workstream w already: go on with it by `understudy run --resume w`"
    )
    assert finished.stdout == ""


def test_the_folder_of_a_database_is_made(tmp_path: Path) -> None:
    write(tmp_path, "tasks:", shell("a", "true"))
    assert ask(tmp_path, "run", "work.yaml", "--db", "not/yet/state.db").returncode == 0
    assert (tmp_path / "not" / "yet" / "state.db").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, "tasks:", shell("a", "true"))
    finished = ask(tmp_path, "run", "work.yaml", "--db", f"{path.name}/state.db")
    assert finished.returncode == 2
    assert finished.stderr.startswith("understudy: there is no folder work.yaml for the database")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_database_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    write(tmp_path, "tasks:", shell("a", "true"))
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    finished = ask(tmp_path, "run", "work.yaml", "--db", "closed/state.db")
    assert finished.returncode == 2
    assert "cannot be opened" in finished.stderr
    assert "Traceback" not in finished.stderr


async def test_a_run_whose_output_nobody_reads_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", f"echo on; {wait_for('go')}; echo and on"))
    async with running(tmp_path, "work.yaml") as run:
        await run.says("a | on")
        await run.stop_listening()
        (tmp_path / "go").touch()
        assert await run.exit_code() == 0
    assert state_of(tmp_path, "w")["state"] == "completed"
