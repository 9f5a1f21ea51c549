"""The four recoveries of docs/recovery.md: a database is broken that way, seen by commands, and mended by them."""

import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.integration.cli.databases import failed_workstream, guarded_workstream, make, running
from tests.integration.cli.shell import Shell
from tests.integration.cli.test_commands import COMMAND
from understudy.actors.lifecycle import Entity, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.records import WorkstreamRecord
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.runtime import Runtime
from understudy.runtime.handles import Handle


def edit(path: Path, statement: str) -> None:
    """As somebody does with the shell of SQLite."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def go_on(path: Path, workstream_id: str) -> str:
    """Another process goes on with the work, to its end."""

    async def run() -> str:
        async with Runtime(path) as runtime:
            return (await Handle(runtime, workstream_id).wait()).state

    return anyio.run(run)


# 1: it stands in the middle of its work, and nobody works on it


def test_a_workstream_whose_process_was_killed_is_seen_and_its_task_done_by_hand(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state.db")
    with running(shell.database) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert shell.state("stuck") == "executing"
        told = shell("explain", "stuck", "--json").data
        assert told["why"].startswith("no process has this database open")
        assert told["remedies"][0]["command"].startswith("understudy run --resume stuck")
        said = shell("resolve", "stuck/hang", "--output", '"by hand"')
        assert said.out == "stuck/hang is resolved, and stuck is completed\n"
    assert shell("check").code == 0


def test_an_attempt_that_was_cut_off_waits_for_the_next_process(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state.db")
    with running(shell.database) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert shell("breaker", "trip", "nothing").code == 1  # any command opens the database
        assert shell.state("stuck/hang") == "queued"
        assert shell("cancel", "stuck").out == "stuck is cancelled\n"
    assert shell("check").code == 0


def test_a_program_that_a_killed_process_has_left_is_ended_with_its_attempt(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "left.yaml"
    os.mkfifo(pipe)
    file.write_text(f"id: left\ntasks:\n  - {{id: go-on, argv: [sh, -c, 'echo $$ > {pipe}; exec sleep 300']}}\n")
    shell = Shell(tmp_path / "state.db")
    with subprocess.Popen([COMMAND, "run", file, "--db", shell.database], stdout=subprocess.DEVNULL) as process:
        program = int(pipe.read_text())
        process.kill()
    assert is_running(program)
    assert shell("cancel", "left").out == "left is cancelled\n"
    assert not is_running(program)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# 2: a task has failed, and nothing tries again


def test_a_task_without_attempts_left_is_reset(tmp_path: Path) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    told = shell("explain", "failed/fix", "--json").data
    assert told["why"].startswith("it has ended: ")
    assert [each["command"].split()[1] for each in told["remedies"]] == ["reset", "skip", "resolve", "logs"]
    assert shell("reset", "failed/fix").code == 0
    assert (shell.state("failed"), shell.state("failed/fix")) == ("ready", "queued")
    task = shell("show", "failed/fix", "--json").data["task"]
    assert (task["generation"], task.get("retry_count", 0)) == (2, 0)


def test_a_task_without_attempts_left_is_skipped(tmp_path: Path) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    assert shell("skip", "failed/fix").code == 0
    assert go_on(shell.database, "failed") == "completed"
    assert shell("check").code == 0


# 3: a breaker keeps everybody from a tool that works again


def test_an_open_breaker_is_reset_and_the_work_goes_on(tmp_path: Path) -> None:
    shell = Shell(make(tmp_path / "state.db", guarded_workstream(), "circuit_open"))
    assert "the breaker of api is not closed" in shell("explain", "guarded/ask").out
    assert "moves     in 59 m " in shell("explain", "breaker:api").out
    assert shell("breaker", "reset", "api").out == "api is closed\n"
    assert go_on(shell.database, "guarded") == "completed"
    assert shell("check").code == 0


# 4: somebody has changed a row by hand


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE workstreams SET state = 'completed' WHERE id = 'failed'",
        "UPDATE workstreams SET state = 'S_SUCCESS' WHERE id = 'failed'",
        "UPDATE workstreams SET snapshot = json_set(snapshot, '$.state', 'completed') WHERE id = 'failed'",
        "UPDATE workstreams SET state = 'completed', snapshot = json_set(snapshot, '$.state', 'completed')",
        "UPDATE workstreams SET generation = 7",
    ],
)
def test_a_row_that_was_changed_by_hand_says_again_what_its_history_says(tmp_path: Path, statement: str) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    before = shell("show", "failed", "--json").data
    edit(shell.database, statement)
    assert shell("show", "failed").code == 1
    assert f"mend it with: understudy repair failed --db {shell.database}\n" in shell("check").out
    assert shell("repair", "failed", typed="n\n").code == 2
    assert shell("check").code == 1
    said = shell("repair", "failed", "--who", "ada", typed="y\n")
    assert said.out.endswith("failed is failed, as its history says\n")
    assert shell("show", "failed", "--json").data == before
    assert shell("check").out == f"{shell.database}: all is well\n"
    [(note,)] = _notes(shell.database)
    assert msgspec.json.decode(note)["who"] == "ada"
    assert msgspec.json.decode(note)["before"]["id"] == "failed"


def _notes(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT value FROM meta WHERE name LIKE 'repaired workstream failed %'").fetchall()


def put_completed(path: Path) -> None:
    """A whole row with a right checksum, but without a move that leads to it."""

    async def write() -> None:
        async with SqliteStore(path) as store:
            record = await store.load(Entity.WORKSTREAM, "failed")
            assert isinstance(record, WorkstreamRecord)
            wrong = msgspec.structs.replace(record, state=WorkstreamState.COMPLETED)
            await store.commit(Batch(snapshots={(Entity.WORKSTREAM, "failed"): wrong}))

    anyio.run(write)


@pytest.mark.parametrize("words", [("repair", "failed", "--yes"), ("reset", "failed/fix"), ("skip", "failed/fix")])
def test_a_completed_workstream_with_a_failed_task_is_found_and_mended(tmp_path: Path, words: tuple[str, ...]) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    put_completed(shell.database)
    found = shell("check").out
    suffix = f" --db {shell.database}\n"
    assert (
        f"is completed, but task failed/fix is failed (workstream agrees with its tasks); mend it with: understudy reset failed/fix{suffix}"
        in found
    )
    assert f"but its last move led to failed; mend it with: understudy repair failed{suffix}" in found
    assert shell(*words).code == 0
    assert shell("check").out == f"{shell.database}: all is well\n"


def test_what_is_whole_is_not_repaired(tmp_path: Path) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    assert shell("repair", "failed").out == "failed says what its history says: nothing is to be repaired\n"
    assert shell("repair", "failed/fix", "--json").data == {"target": "failed/fix", "state": "failed"}
    assert shell("repair", "nothing").code == 2


def test_what_cannot_be_known_is_not_made_up(tmp_path: Path) -> None:
    shell = Shell(make(tmp_path / "state.db", failed_workstream(), "failed"))
    edit(shell.database, "UPDATE workstreams SET snapshot = '{' WHERE id = 'failed'")
    said = shell("repair", "failed", "--yes")
    assert said.code == 1
    assert "restore a copy" in said.err
