"""What operators do from a shell: to a database at rest, with an answer that says what became of it."""

import getpass
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.databases import blocked_workstream, failed_workstream, guarded_workstream, make, running
from tests.integration.cli.shell import Shell


@pytest.fixture
def blocked(tmp_path: Path) -> Shell:
    return Shell(make(tmp_path / "state.db", blocked_workstream(), "blocked"))


@pytest.fixture
def guarded(tmp_path: Path) -> Shell:
    return Shell(make(tmp_path / "state.db", guarded_workstream(), "circuit_open"))


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Shell]:
    with running(tmp_path / "state.db"):
        yield Shell(tmp_path / "state.db")


def test_reset_begins_the_next_generation_and_says_how_to_go_on(blocked: Shell) -> None:
    said = blocked("reset", "release/fix", "--why", "the disk is new")
    go_on = f"understudy run --resume release --db {blocked.database}"
    assert (said.code, said.out) == (0, f"release/fix is reset (generation 2); go on with: {go_on}\n")
    assert blocked.state("release") == "executing"
    [reset] = [move for move in blocked("history", "release/fix", "--json").data if move["trigger"] == "reset"]
    assert (reset["who"], reset["generation"]) == (getpass.getuser(), 2)


def test_skip_lets_what_depends_on_a_task_go_on(blocked: Shell) -> None:
    assert blocked("skip", "release/fix", "--json").data == {
        "target": "release/fix", "state": "skipped", "generation": 2,
    }  # fmt: skip
    assert blocked.state("release/publish") == "queued"


def test_resolve_keeps_what_was_done_by_hand(blocked: Shell) -> None:
    assert blocked("resolve", "release/fix", "--output", '{"by": "hand"}', "--who", "ada").code == 0
    task = blocked("show", "release/fix", "--json").data["task"]
    assert (task["state"], task["output"]) == ("resolved", {"by": "hand"})
    assert blocked("history", "release/fix", "--json").data[-1]["who"] == "ada"


def test_an_output_that_is_no_json_is_bad_use_and_changes_nothing(blocked: Shell) -> None:
    said = blocked("resolve", "release/fix", "--output", "done")
    assert said.code == 2
    assert "--output is not JSON" in said.err
    assert blocked.state("release/fix") == "failed"


def test_a_workstream_is_cancelled_given_up_or_resolved(blocked: Shell, tmp_path: Path) -> None:
    assert blocked("give-up", "release", "--why", "nobody comes").out == "release is failed\n"
    other = Shell(make(tmp_path / "other.db", blocked_workstream(), "blocked"))
    assert other("resolve", "release").out == "release is resolved\n"
    third = Shell(make(tmp_path / "third.db", blocked_workstream(), "blocked"))
    assert third("cancel", "release").out == "release is cancelled\n"
    assert third.state("release/publish") == "cancelled"


def test_the_same_request_is_carried_out_once(blocked: Shell) -> None:
    first = blocked("reset", "release/fix", "--request-id", "r-1", "--json").data
    assert blocked("reset", "release/fix", "--request-id", "r-1", "--json").data == first
    assert blocked("reset", "release/fix", "--request-id", "r-2").code == 1  # it has not ended


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("reset", "nothing"), "there is no workstream nothing"),
        (("reset", "release/nothing"), "there is no task release/nothing"),
        (("give-up", "release/build"), "it is terminal: reset it to start a new generation"),
        (("skip", "release"), "skip is not for a workstream"),
        (("worker", "pause", "loop"), "worker loop lives in a process, and none has this database open"),
        (("breaker", "reset", "nothing"), "there is no breaker nothing"),
    ],
)
def test_what_cannot_be_done_is_refused_and_says_why(blocked: Shell, words: tuple[str, ...], part: str) -> None:
    said = blocked(*words)
    assert said.code == 1
    assert part in said.err


@pytest.mark.parametrize("words", [("cancel", "stuck"), ("repair", "stuck", "--yes"), ("worker", "pause", "loop")])
def test_a_database_in_use_is_left_alone_and_its_owner_named(busy: Shell, words: tuple[str, ...]) -> None:
    owner = busy("doctor", "--json").data["owner_pid"]
    if words[0] == "repair":
        assert "nothing is to be repaired" in busy(*words).out
        return
    said = busy(*words)
    assert said.code == 2
    assert f"is in use by pid {owner}; stop that process" in said.err


def test_a_missing_database_is_bad_use_and_is_not_made(tmp_path: Path) -> None:
    said = Shell(tmp_path / "none.db")("cancel", "x")
    assert (said.code, said.err) == (2, f"understudy: {tmp_path / 'none.db'} is not there\n")
    assert not (tmp_path / "none.db").exists()


def test_a_task_that_waits_for_its_breaker_is_given_up(guarded: Shell) -> None:
    assert guarded("give-up", "guarded/ask", "--why", "no use").out == "guarded/ask is failed, and guarded is failed\n"
    assert guarded.state("guarded") == "failed"


def test_a_breaker_is_reset_and_tripped(guarded: Shell) -> None:
    assert guarded("breaker", "reset", "api").out == "api is closed\n"
    assert guarded("breaker", "trip", "api", "--why", "maintenance", "--json").data["state"] == "open"
    assert json.loads(guarded("history", "breaker:api", "--json").out)[-1]["reason"] == "maintenance"


def test_nothing_is_run_and_nothing_is_looked_up_by_an_operator(tmp_path: Path) -> None:
    """Neither functions nor secrets need to be there where an operator types."""
    from understudy.runtime import Task, Workstream

    lost = Workstream(
        (
            Task("fix", call="tests.integration.engine.functions:fail"),
            Task("next", call="tests.integration.engine.functions:add", inputs={"a": "${secrets.KEY}"}, after=("fix",)),
        ),
        id="lost",
        secrets=("KEY",),
        on_failure=blocked_workstream().on_failure,
    )
    shell = Shell(make(tmp_path / "state.db", lost, "blocked"))
    assert shell("skip", "lost/fix").code == 0
    assert shell.state("lost/next") == "queued"  # with its secret unset it would have failed


def test_a_failed_workstream_is_reset(tmp_path: Path) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    assert shell("reset", "failed").out.startswith(
        "failed is reset (generation 2); go on with: understudy run --resume"
    )
    assert shell.state("failed/build") == "completed"
    assert shell.state("failed/fix") == "queued"
