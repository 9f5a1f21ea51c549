"""The commands that look: what they show of databases at rest and at work, for people and for programs."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.databases import (
    blocked_workstream,
    failed_workstream,
    guarded_workstream,
    make,
    running,
    write_log,
)
from tests.integration.cli.shell import Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    path = tmp_path_factory.mktemp("looking") / "state.db"
    make(path, blocked_workstream(), "blocked")
    make(path, failed_workstream(), "failed")
    make(path, guarded_workstream(), "circuit_open")
    write_log(path, "release", "build", 1, "built")
    write_log(path, "release", "fix", 1, "first")
    write_log(path, "release", "fix", 2, *(f"line {number}" for number in range(20)))
    return Shell(path)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Shell]:
    with running(tmp_path / "state.db"):
        yield Shell(tmp_path / "state.db")


def test_ls_shows_the_newest_first_with_how_far_they_are(shell: Shell) -> None:
    found = shell("ls", "--json").data
    assert [(each["id"], each["state"], each["done"], each["total"]) for each in found] == [
        ("guarded", "waiting_for_dependencies", 0, 1),
        ("failed", "failed", 2, 2),
        ("release", "blocked", 2, 3),
    ]
    assert "task fix did not succeed" in shell("ls").out


def test_ls_can_be_of_some_states_and_of_a_few(shell: Shell) -> None:
    assert [each["id"] for each in shell("ls", "--state", "failed", "--json").data] == ["failed"]
    assert [each["id"] for each in shell("ls", "--limit", "1", "--json").data] == ["guarded"]
    assert len(shell("ls", "--limit", "1", "--all", "--json").data) == 3


def test_ls_speaks_and_understands_a_documents_words(shell: Shell) -> None:
    found = shell("ls", "--as", "pipeline", "--state", "S_FAILED", "--json").data
    assert [(each["id"], each["state"]) for each in found] == [("release", "S_FAILED")]
    assert shell("ls", "--as", "lifecycle").err == "understudy: lifecycle does not know a workstream; it knows task\n"


def test_a_state_that_nothing_can_be_in_is_bad_use(shell: Shell) -> None:
    said = shell("ls", "--state", "faild")
    assert said.code == 2
    assert "no workstream is ever 'faild'; it can be planned, ready" in said.err


def test_show_of_a_workstream_lists_its_tasks(shell: Shell) -> None:
    shown = shell("show", "release", "--json").data
    assert [(each["key"], each["state"]) for each in shown["tasks"]] == [
        ("build", "completed"), ("fix", "failed"), ("publish", "pending"),
    ]  # fmt: skip
    assert "ValueError: not yet fix (attempt 2, no retry left)" in shell("show", "release").out
    assert "Error" in shell("show", "release", "--as", "tasker").out


def test_show_of_a_task_has_its_definition_output_attempts_and_checks(shell: Shell) -> None:
    shown = shell("show", "release/build", "--json").data
    assert shown["task"]["definition"]["with"] == {"a": 1}
    assert (shown["task"]["output"], len(shown["attempts"]), shown["checks"][0]["name"]) == (2, 1, "a number")
    told = shell("show", "release/build").out
    assert "a number" in told
    assert "passed" in told


@pytest.mark.parametrize("target", ["nothing", "release/nothing", "worker:nobody", "breaker:nothing"])
def test_what_is_not_there_is_refused(shell: Shell, target: str) -> None:
    said = shell("explain", target)
    assert said.code == 1
    assert said.err.startswith("understudy: there is no ")


def test_a_missing_database_is_bad_use(tmp_path: Path) -> None:
    said = Shell(tmp_path / "none.db")("ls")
    assert (said.code, said.err) == (2, f"understudy: {tmp_path / 'none.db'} is not there\n")


def test_history_tells_every_move_with_its_reason(shell: Shell) -> None:
    moves = shell("history", "release/fix", "--json").data
    assert [move["to_state"] for move in moves][-3:] == ["running", "errored", "failed"]
    assert "retries_exhausted" in shell("history", "release/fix").out
    assert shell("history", "release").out.count("release/") == 0
    assert "release/publish" in shell("history", "release", "--all").out
    assert len(shell("history", "release", "--all", "--limit", "2", "--json").data) == 2


def test_history_in_a_documents_words_leaves_out_what_it_does_not_tell(shell: Shell) -> None:
    moves = shell("history", "release/fix", "--as", "pipeline", "--json").data
    words = [move["to_state"] for move in moves]
    assert set(words) <= {"S_PENDING", "S_RUNNING", "S_FAILED", "S_RETRYING", "S_SUCCESS", "S_ABANDONED"}
    assert all(move["from_state"] != move["to_state"] for move in moves)


@pytest.mark.parametrize("target", ["worker:loop", "breaker:api"])
def test_history_and_explanation_of_workers_and_breakers(shell: Shell, target: str) -> None:
    assert shell("history", target, "--json").data
    assert shell("explain", target, "--json").data["target"] == target


def test_workers_and_breakers_are_listed(shell: Shell) -> None:
    assert {each["id"] for each in shell("worker", "ls", "--json").data} >= {"loop", "threads"}
    [api] = shell("breaker", "ls", "--as", "pipeline", "--json").data
    assert (api["id"], api["state"]) == ("api", "OPEN")
    assert "loop" in shell("worker", "ls").out
    assert "api" in shell("breaker", "ls").out
    assert shell("worker", "ls", "--as", "pipeline").code == 2


# Why


def test_explain_of_a_failed_task_says_why_and_what_to_do(shell: Shell) -> None:
    told = shell("explain", "release/fix").out
    assert "release/fix is failed since " in told
    assert "no attempt is left after 2, the last one: ValueError: not yet fix" in told
    assert "attempt   2 failed after" in told
    assert "| line 19\n" in told
    assert "| line 9\n" not in told  # the last ten only
    assert f"understudy reset release/fix --db {shell.database}\n" in told


def test_explain_as_json_has_the_remedies(shell: Shell) -> None:
    told = shell("explain", "release", "--json").data
    assert (told["state"], told["waits_for"], told["owner_pid"]) == ("blocked", ["fix"], None)
    commands = [remedy["command"].split(" --db")[0] for remedy in told["remedies"]]
    assert commands[0] == "understudy reset release/fix"
    assert commands[-1] == "understudy run --resume release"  # a blocked one waits for an operator first


def test_explain_of_a_held_task_names_what_holds_it(shell: Shell) -> None:
    told = shell("explain", "release/publish", "--json").data
    assert told["why"] == "it is held until fix is reset, skipped or resolved"


def test_explain_of_a_live_task_at_rest_says_that_no_process_is_there(shell: Shell) -> None:
    told = shell("explain", "guarded/ask", "--json").data
    assert told["why"] == (
        "no process has this database open: nothing moves until one does; "
        "when it was left: the breaker of api is not closed"
    )
    commands = [remedy["command"].split(" --db")[0] for remedy in told["remedies"]]
    assert commands[:2] == ["understudy run --resume guarded", "understudy breaker reset api"]


def test_explain_of_an_open_breaker_counts_down(shell: Shell) -> None:
    assert "moves     in 59 m " in shell("explain", "breaker:api").out


def test_a_database_is_looked_at_while_another_process_writes_it(busy: Shell) -> None:
    [line] = busy("ls", "--json").data
    assert (line["id"], line["state"]) == ("stuck", "executing")
    told = busy("explain", "stuck/hang")
    assert "attempt 1 runs on loop" in told.out
    assert "has the database open: stop it before you change something" in told.out
    assert busy("history", "stuck/hang").code == 0
    assert busy("check").code == 0


def test_a_database_of_a_process_that_was_killed_is_looked_at(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state.db")
    with running(shell.database) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        told = shell("explain", "stuck/hang", "--json").data
    assert told["state"] == "running"
    assert told["why"].startswith("no process has this database open")


# Logs


def test_logs_of_a_task_are_those_of_its_newest_attempt(shell: Shell) -> None:
    assert shell("logs", "release/fix", "--tail", "2").out == "line 18\nline 19\n"
    assert shell("logs", "release/fix", "--attempt", "1").out == "first\n"
    assert shell("logs", "release/fix").out.count("\n") == 20


def test_logs_of_a_workstream_name_the_task_in_every_line(shell: Shell) -> None:
    assert shell("logs", "release", "--tail", "1").out == "build | built\nfix | line 19\n"


def test_following_a_log_ends_with_the_task(shell: Shell) -> None:
    assert shell("logs", "release/fix", "--follow", "--tail", "1").out == "line 19\n"


def test_a_task_that_wrote_nothing_has_no_log_and_one_that_is_not_there_is_refused(shell: Shell) -> None:
    said = shell("logs", "release/publish")
    assert (said.code, said.out, said.err) == (
        0,
        "",
        "understudy: no attempt of release/publish has written anything\n",
    )
    assert shell("logs", "release/nothing").code == 1
