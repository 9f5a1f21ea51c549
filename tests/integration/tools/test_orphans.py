"""What a killed runtime leaves behind: its programs are found and ended at the next start, and nobody else's."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.tools.program_place import HANG_S, ProgramPlace, is_running, running_programs, wait_for_end
from tests.meta.house import ROOT
from understudy.adapters.folders import Folders
from understudy.adapters.tools import orphans, processes
from understudy.adapters.tools.orphans import ProcessLedger, end_orphans

HERE = Path(__file__).parent
LONG = 1_000.0  # a grace that never ends within a test


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "state.db")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ProgramPlace]:
    async with running_programs(tmp_path) as made:
        yield made


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process with a session of its own that no runtime has started."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def leave_behind(folder: Path, script: str, lines: int) -> list[int]:
    """Have a runtime start a program, and kill the runtime. Answers what the program said."""
    command = [sys.executable, str(HERE / "program_runner.py"), str(folder), script, str(lines)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as runtime:
        assert runtime.stdout is not None
        said = [int(runtime.stdout.readline()) for _ in range(lines)]
        runtime.kill()
        runtime.wait(HANG_S)
    return said


def leave_session() -> tuple[int, int]:
    """Somebody's program in a session of its own, whose leader has ended. Answers the leader and who is left."""
    command = ["sh", "-c", "sleep 1000 >/dev/null & echo $!"]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True) as leader:
        return leader.pid, int(leader.communicate(timeout=HANG_S)[0])


def write_line(folders: Folders, pid: int, noted_at: int, boot: str, token: str = "flow/a/1/1") -> None:
    folders.root.mkdir(exist_ok=True)
    folders.processes.write_text(f"+ {pid} {noted_at} {boot} {token}\n")


async def test_a_program_that_a_killed_runtime_left_is_ended(tmp_path: Path, folders: Folders) -> None:
    pids = leave_behind(tmp_path, "echo $$; sleep 1000 & echo $!; wait", 2)
    assert all(map(is_running, pids))
    ended = await end_orphans(folders, LONG)
    assert [(each.pid, each.token) for each in ended] == [(pids[0], "flow/a/1/1")]
    for pid in pids:
        await wait_for_end(pid)
    assert not folders.processes.exists()
    assert await end_orphans(folders, LONG) == []


async def test_one_that_ignores_term_is_killed_after_the_grace(tmp_path: Path, folders: Folders) -> None:
    [pid] = leave_behind(tmp_path, "trap '' TERM; echo $$; while :; do sleep 1000; done", 1)
    assert len(await end_orphans(folders, 0.1)) == 1
    await wait_for_end(pid)


async def test_what_a_program_started_is_ended_though_the_program_itself_has_died(
    tmp_path: Path, folders: Folders
) -> None:
    leader, member = leave_behind(tmp_path, "echo $$; sleep 1000 & echo $!; wait", 2)
    os.kill(leader, signal.SIGKILL)
    await wait_for_end(leader)
    assert is_running(member)
    assert [each.pid for each in await end_orphans(folders, LONG)] == [leader]
    await wait_for_end(member)


async def test_a_number_that_was_given_to_somebody_else_is_left_alone(folders: Folders, stranger: int) -> None:
    found = processes.look_at(stranger)
    assert found is not None
    write_line(folders, stranger, found.started - 1, processes.boot())
    assert await end_orphans(folders, LONG) == []
    assert is_running(stranger)


async def test_a_number_of_another_boot_is_left_alone(folders: Folders, stranger: int) -> None:
    write_line(folders, stranger, processes.now(), "another")
    assert await end_orphans(folders, LONG) == []
    assert is_running(stranger)


async def test_somebody_in_the_session_of_a_dead_leader_without_the_token_is_left_alone(folders: Folders) -> None:
    leader, member = leave_session()
    try:
        write_line(folders, leader, processes.now(), processes.boot())
        assert await end_orphans(folders, LONG) == []
        assert is_running(member)
    finally:
        os.kill(member, signal.SIGKILL)


async def test_lines_that_make_no_sense_are_passed_over(folders: Folders, stranger: int) -> None:
    folders.root.mkdir()
    folders.processes.write_bytes(f"\n+ {stranger}\n+ x y z a\n- x\n\xff\n+ {stranger} 99".encode("latin-1"))
    assert await end_orphans(folders, LONG) == []
    assert is_running(stranger)


async def test_a_program_that_has_ended_is_nobodys_orphan(place: ProgramPlace) -> None:
    await place.run("true")
    started, ended = place.folders.processes.read_text().splitlines()
    assert started.split()[0::4] == ["+", "flow/a/1/1"]
    assert ended == f"- {started.split()[1]}"
    assert stat.S_IMODE(place.folders.processes.stat().st_mode) == 0o600
    assert await end_orphans(place.folders, LONG) == []


async def test_a_program_that_runs_can_be_told_by_its_number_and_the_time(place: ProgramPlace) -> None:
    attempt = place.start("echo $$; exec sleep 1000", shell=True)
    [pid] = await place.ears.hear()
    [line] = place.folders.processes.read_text().splitlines()
    found = processes.look_at(int(pid))
    assert found is not None
    assert (line.split()[1], found.was_there(int(line.split()[2]))) == (pid, True)
    attempt.cancel()


def test_the_ledger_does_not_grow_without_end(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "LEDGER_BYTES_MAX", 10_000)
    folders.root.mkdir()
    ledger = ProcessLedger(folders.processes)
    ledger.note_start(1, "flow/stays/1/1")
    for number in range(2, 1_000):
        ledger.note_start(number, "flow/a/1/1")
        ledger.note_end(number)
        assert folders.processes.stat().st_size < 11_000
    lines = folders.processes.read_text().splitlines()
    assert [line for line in lines if "stays" in line] == lines[:1]
    assert stat.S_IMODE(folders.processes.stat().st_mode) == 0o600


def test_ps_tells_the_same_as_proc_but_for_sessions(stranger: int) -> None:
    [by_ps] = [each for each in processes.ask_ps() if each.pid == stranger]
    by_proc = processes.look_at(stranger)
    assert by_proc is not None
    assert (by_ps.group, by_ps.is_alive) == (by_proc.group, by_proc.is_alive) == (stranger, True)
    assert by_ps.was_there(2**62)
