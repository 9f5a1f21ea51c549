"""The commands that look into a database and a log, as users run them."""

import json
from pathlib import Path

import anyio
import pytest

from tests.integration.cli.test_commands import run
from tests.integration.stores.database import write_story
from understudy.adapters.sinks.transition_log import TransitionLog
from understudy.adapters.stores.sqlite import SqliteStore


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    anyio.run(write_story, path)
    return path


def test_check_says_that_all_is_well(database: Path) -> None:
    finished = run("check", database)
    assert (finished.returncode, finished.stdout) == (0, f"{database}: all is well\n")


def test_check_of_a_damaged_file_exits_with_1_and_without_a_traceback(database: Path) -> None:
    data = bytearray(database.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    database.write_bytes(data)
    finished = run("check", database, "--json")
    assert finished.returncode == 1
    assert all(finding["kind"] for finding in json.loads(finished.stdout))
    assert "Traceback" not in finished.stderr


def test_doctor_as_json(database: Path) -> None:
    told = json.loads(run("doctor", database, "--json").stdout)
    assert (told["schema"], told["durability"], told["transitions"]) == (1, "full", 18)


def test_doctor_of_a_missing_file_is_refused(tmp_path: Path) -> None:
    finished = run("doctor", tmp_path / "none.db")
    assert (finished.returncode, finished.stderr) == (1, f"understudy: {tmp_path / 'none.db'} is not there\n")


def test_sql_in_a_documents_words(database: Path) -> None:
    found = run("sql", database, "SELECT step_id, state FROM steps", "--as", "pipeline", "--json").stdout
    assert json.loads(found) == [{"step_id": "s1", "state": "S_SUCCESS"}, {"step_id": "s2", "state": "S_PENDING"}]


def test_sql_that_would_change_something_is_refused(database: Path) -> None:
    finished = run("sql", database, "DELETE FROM tasks")
    assert (finished.returncode, finished.stderr) == (
        2,
        "understudy: the statement cannot be run: only reading is allowed\n",
    )


def test_log_of_a_database_is_valid_and_a_changed_line_is_told(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"

    async def write() -> None:
        async with SqliteStore(database) as store:
            await TransitionLog(path, store).catch_up()

    anyio.run(write)
    assert run("validate-log", path).returncode == 0
    path.write_text(path.read_text().replace('"to_state":"validating"', '"to_state":"failed"'))
    finished = run("validate-log", path)
    assert finished.returncode == 1
    assert f"{path}:12: task WS-001/s1 in state running does not allow execution_completed -> failed" in finished.stdout


def test_log_in_a_documents_words_is_checked_against_that_document(tmp_path: Path) -> None:
    event = {"timestamp": "2024-01-15T10:30:00Z", "event_type": "workstream_state_transition", "severity": "info"}
    path = tmp_path / "pipeline.jsonl"
    moves = [("S_PENDING", "S_RUNNING"), ("S_RUNNING", "S_SUCCESS"), ("S_SUCCESS", "S_RUNNING")]
    lines = [
        json.dumps({**event, "entity_id": "w", "from_state": a, "to_state": b, "trigger": "x", "metadata": {}})
        for a, b in moves
    ]
    path.write_text("\n".join(lines) + "\n")
    finished = run("validate-log", path, "--as", "pipeline")
    assert finished.stdout.splitlines()[0] == (
        f"{path}:3: workstream w in state S_SUCCESS does not allow S_RUNNING; pipeline allows nothing: it is an end"
    )


def test_nothing_is_archived_that_has_not_ended(database: Path, tmp_path: Path) -> None:
    finished = run("archive", database, "--folder", tmp_path / "archive", "--older-than", "0")
    assert finished.stdout == "0 workstreams archived\n"


def test_what_sql_finds_is_shown_as_it_is(database: Path) -> None:
    assert "[/red] [error] hello" in run("sql", database, "SELECT '[/red] [error] hello'").stdout


@pytest.mark.parametrize("command", [["doctor"], ["sql", "--as", "pipeline"], ["archive"], ["check"]])
def test_damaged_file_never_ends_in_a_traceback(database: Path, command: list[str], tmp_path: Path) -> None:
    whole = database.read_bytes()
    for page in range(0, len(whole) // 4_096, 4):
        data = bytearray(whole)
        data[page * 4_096 : page * 4_096 + 200] = bytes(200)
        damaged = tmp_path / f"damaged-{page}.db"
        damaged.write_bytes(data)
        more = ["SELECT * FROM steps"] if command[0] == "sql" else []
        finished = run(command[0], damaged, *more, *command[1:])
        assert "Traceback" not in finished.stderr
