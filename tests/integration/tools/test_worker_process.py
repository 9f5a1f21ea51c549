"""A worker's process: how it may die, be stopped and go on, and what is left of it. Nothing is."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.contract.tools.places import HANG_S, Engine, Heard, Place, working
from tests.meta.house import ROOT
from understudy.actors.definition import WorkerDefinition, WorkerKind
from understudy.adapters.tools import in_process
from understudy.adapters.tools.in_process import ProcessWorkplace, WorkplaceDied

HERE = Path(__file__).parent
PROCESS = WorkerKind.PROCESS


async def start(place: Place, name: str) -> "asyncio.Task[object]":
    running = asyncio.create_task(place.run(name))
    with anyio.fail_after(HANG_S):
        await place.engine.started.wait()
    return running


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_killed_process_is_heard_of_and_its_attempts_raise() -> None:
    async with working(PROCESS) as place:
        running = await start(place, "ignore")
        os.kill(place.pid, signal.SIGKILL)
        with pytest.raises(WorkplaceDied, match=r"^was killed by SIGKILL$"):
            await running
        assert place.heard.deaths == ["was killed by SIGKILL"]


async def test_code_that_ends_the_process_is_heard_of_with_the_exit_code() -> None:
    async with working(PROCESS) as place:
        with pytest.raises(WorkplaceDied, match=r"^exited with code 3$"):
            await place.run("leave", code=3)
        assert place.heard.deaths == ["exited with code 3"]


async def beats(place: Place, count: int) -> None:
    wanted = place.heard.beats + count
    while place.heard.beats < wanted:
        await place.heard.next()


async def test_a_stopped_process_beats_no_more_and_its_result_arrives_late() -> None:
    async with working(PROCESS, heartbeat=0.02) as place, working(PROCESS, heartbeat=0.02) as other:
        with anyio.fail_after(HANG_S):
            await beats(place, 2)
            os.kill(place.pid, signal.SIGSTOP)
            await anyio.to_thread.run_sync(os.waitid, os.P_PID, place.pid, os.WSTOPPED | os.WNOWAIT)
            await beats(other, 2)  # meanwhile what it had sent before has been read
            heard = place.heard.beats
            running = asyncio.create_task(place.run("double", number=2))
            await beats(other, 10)
            assert (place.heard.beats, running.done()) == (heard, False)
            os.kill(place.pid, signal.SIGCONT)
            assert (await running).output == 4
            await beats(place, 2)
        assert place.heard.deaths == []


async def test_a_stopped_process_can_be_killed() -> None:
    async with working(PROCESS) as place:
        running = await start(place, "ignore")
        os.kill(place.pid, signal.SIGSTOP)
        place.workplace.kill()
        with pytest.raises(WorkplaceDied, match=r"^was killed$"):
            await running
        assert place.heard.deaths == []  # its end was wanted


def test_the_death_of_the_parent_ends_the_process_although_its_code_never_ends() -> None:
    command = [sys.executable, str(HERE / "parent_program.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            assert select.select([child], [], [], HANG_S)[0] == [child]
        finally:
            os.close(child)


def test_a_thread_that_never_ends_does_not_keep_the_process_from_exiting() -> None:
    command = [sys.executable, str(HERE / "thread_program.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG_S, check=False)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("over\n", "", 0)


async def test_what_code_prints_does_not_disturb_the_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    async with working(PROCESS) as place:
        assert (await place.run("shout")).output == "done"
    assert capfd.readouterr().out == "to stdout\n"


async def test_closing_leaves_no_process_and_no_open_file() -> None:
    async with working(PROCESS) as first:  # whatever the loop opens for its first process
        await first.run("double", number=1)
    before = open_files()
    async with working(PROCESS) as place:
        await place.run("double", number=1)
        pid = place.pid
    assert is_gone(pid)
    assert place.heard.deaths == []
    assert open_files() == before


async def test_a_death_leaves_no_open_file() -> None:
    async with working(PROCESS) as first:
        await first.run("double", number=1)
    before = open_files()
    async with working(PROCESS) as place:
        os.kill(place.pid, signal.SIGKILL)
        with anyio.fail_after(HANG_S):
            while not place.heard.deaths:
                await place.heard.next()
    assert open_files() == before


async def test_a_process_that_cannot_start_is_refused_with_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "PROGRAM", "tests.no_such_program")
    heard = Heard()
    workplace = ProcessWorkplace("w-1", WorkerDefinition(id="w", kind=PROCESS), Engine())
    with pytest.raises(WorkplaceDied, match="exited with code 1 before it was ready"):
        await workplace.open(heard)
    assert heard.deaths == []


async def test_a_process_that_does_not_get_ready_in_time_is_refused_and_leaves_nothing() -> None:
    async with working(PROCESS) as first:
        await first.run("double", number=1)
    before = open_files()
    workplace = ProcessWorkplace("w-1", WorkerDefinition(id="w", kind=PROCESS), Engine(), start_s_max=0.0)
    with pytest.raises(WorkplaceDied, match="did not start within 0 s"):
        await workplace.open(Heard())
    assert open_files() == before


async def test_a_death_is_heard_of_although_a_process_that_was_started_there_holds_the_pipe_open() -> None:
    async with working(PROCESS) as place:
        with pytest.raises(WorkplaceDied, match="exited with code 3"):
            await place.run("fork_and_leave")
        [(_, left_behind)] = place.engine.notes  # said before the end, and not lost with it
        os.kill(int(left_behind or ""), signal.SIGKILL)


async def test_what_a_thread_waits_for_is_given_up_with_its_attempt() -> None:
    for kind in (WorkerKind.THREAD, PROCESS):
        async with working(kind) as place:
            running = await start(place, "wait_for_ever")
            with anyio.fail_after(HANG_S):
                await place.engine.asked.wait()
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                await place.engine.given_up.wait()
        assert place.heard.deaths == []


async def test_what_is_killed_while_it_opens_does_not_open_and_leaves_nothing() -> None:
    async with working(PROCESS) as first:
        await first.run("double", number=1)
    before = open_files()
    workplace = ProcessWorkplace("w-1", WorkerDefinition(id="w", kind=PROCESS), Engine())
    opening = asyncio.create_task(workplace.open(Heard()))
    workplace.kill()
    with pytest.raises(WorkplaceDied, match="was killed before it was ready"):
        await opening
    assert open_files() == before


def test_a_loop_that_ends_takes_the_process_with_it() -> None:
    command = [sys.executable, "-W", "error", str(HERE / "careless_program.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG_S, check=False)
    assert (finished.stderr, finished.returncode) == ("", 0)
    assert is_gone(int(finished.stdout))


async def test_killing_twice_and_closing_twice_is_no_harm() -> None:
    async with working(PROCESS) as place:
        place.workplace.kill()
        place.workplace.kill()
        await place.workplace.close()
        place.workplace.kill()
    assert place.heard.deaths == []
