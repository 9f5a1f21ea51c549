"""How programs end: by themselves, when they are cancelled, and at once. Nothing of them is left."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.integration.tools.program_place import HANG_S, ProgramPlace, is_running, running_programs, wait_for_end
from understudy.adapters.folders import make_private
from understudy.adapters.tools.in_process import WorkplaceDied
from understudy.adapters.tools.running import run_to_end

LONG = 1_000.0  # a grace that never ends within a test
POLITE = """
import signal, sys
def leave(number, frame):
    print("last words", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
signal.pause()
"""
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, lambda number, frame: print("no", flush=True))
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""
SLOW = """
import signal, sys
def leave(number, frame):
    print("told", flush=True)
    open(sys.argv[1]).read()
    print("over")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ProgramPlace]:
    async with running_programs(tmp_path) as made:
        yield made


async def cancel(attempt: "asyncio.Task[object]") -> None:
    attempt.cancel()
    with anyio.fail_after(HANG_S), pytest.raises(asyncio.CancelledError):
        await attempt


async def test_a_cancelled_program_that_ends_on_term_keeps_its_output(place: ProgramPlace) -> None:
    attempt = place.start(sys.executable, "-c", POLITE, grace_s=LONG)
    await place.ears.hear()
    await cancel(attempt)
    assert place.logs() == ["ready\nlast words\n"]


async def test_a_cancelled_program_that_ignores_term_is_killed_after_the_grace(place: ProgramPlace) -> None:
    attempt = place.start(sys.executable, "-c", STUBBORN, grace_s=0.1)
    [pid] = await place.ears.hear()
    await cancel(attempt)
    assert not Path(f"/proc/{pid}").exists()  # it was reaped, too
    assert place.logs() == [f"{pid}\nno\n"]


async def test_a_second_cancellation_does_not_cut_the_grace_short(place: ProgramPlace, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    attempt = place.start(sys.executable, "-c", SLOW, str(gate), grace_s=LONG)
    await place.ears.hear()
    attempt.cancel()
    await place.ears.hear(2)
    attempt.cancel()
    await asyncio.to_thread(gate.write_text, "")
    await cancel(attempt)
    assert place.logs() == ["ready\ntold\nover\n"]


async def test_a_program_that_is_stopped_is_killed_after_the_grace(place: ProgramPlace) -> None:
    attempt = place.start("echo $$; kill -STOP $$", shell=True, grace_s=0.1)
    [pid] = await place.ears.hear()
    await cancel(attempt)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"], ids=["willing", "unwilling"])
async def test_what_a_cancelled_program_has_started_ends_with_it(place: ProgramPlace, trap: str) -> None:
    script = f"{trap} sleep 1000 & echo $!; sh -c 'sleep 1000 & echo $!; wait' & wait"
    attempt = place.start(script, shell=True, grace_s=0.1)
    pids = [int(each) for each in await place.ears.hear(2)]
    await cancel(attempt)
    for pid in pids:
        assert not is_running(pid)


async def test_what_a_program_leaves_behind_is_ended_although_it_holds_stdout(place: ProgramPlace) -> None:
    report = await place.script("sleep 1000 & echo $!", grace_s=LONG)
    assert report.error is None
    assert not is_running(int(report.output))


async def test_what_a_program_leaves_behind_is_ended_where_it_holds_nothing_and_ignores_term(
    place: ProgramPlace,
) -> None:
    script = "(trap '' TERM; exec sleep 1000 >/dev/null 2>&1 </dev/null) & echo $!"
    report = await place.script(script, grace_s=0.1)
    assert report.error is None
    assert not is_running(int(report.output))


async def test_the_last_one_in_a_pipeline_may_finish_what_it_does(place: ProgramPlace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    report = await place.script('cat "$1" & exec > "$1"; echo through', str(tmp_path / "pipe"))
    assert report.output == "through"


async def test_a_program_outside_the_group_that_holds_stdout_does_not_keep_the_attempt(place: ProgramPlace) -> None:
    report = await place.script('setsid sleep 1000 & echo "$!"')
    pid = int(report.output)
    try:
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        await wait_for_end(pid)


async def test_a_killed_workplace_kills_at_once_and_its_attempts_raise(place: ProgramPlace) -> None:
    attempts = [place.start("trap '' TERM; sleep 1000 & echo $!; wait", shell=True, grace_s=LONG) for _ in range(2)]
    pids = [int(each) for each in await place.ears.hear(2)]
    place.workplace.kill()
    for attempt in attempts:
        with anyio.fail_after(HANG_S), pytest.raises(WorkplaceDied, match="was killed"):
            await attempt
    assert not any(is_running(pid) for pid in pids)
    with pytest.raises(WorkplaceDied, match="was killed"):
        await place.run("true")


async def test_closing_ends_what_is_left(place: ProgramPlace) -> None:
    attempt = place.start("trap '' TERM; sleep 1000 & echo $!; wait", shell=True, grace_s=LONG)
    [pid] = await place.ears.hear()
    attempt.cancel()
    with anyio.fail_after(HANG_S):
        await place.workplace.close()
    assert not is_running(int(pid))
    with pytest.raises(asyncio.CancelledError):
        await attempt


async def test_a_log_that_cannot_be_written_fails_the_attempt_and_ends_the_program(place: ProgramPlace) -> None:
    make_private(place.folders.root)
    (place.folders.root / "logs").write_text("in the way")
    report = await place.script("echo $$ > $UNDERSTUDY_OUTPUT; echo out; sleep 1000")
    assert "NotADirectoryError" in (report.error or "")
    assert not report.permanent


async def test_what_the_start_of_a_process_raises_is_raised_after_its_end(tmp_path: Path) -> None:
    seen: list[int] = []

    def refuse(pid: int) -> None:
        seen.append(pid)
        raise RuntimeError("not this one")

    with anyio.fail_after(HANG_S), pytest.raises(RuntimeError, match="not this one"):
        await run_to_end(
            ["sleep", "1000"],
            directory=tmp_path,
            env={},
            grace_s=LONG,
            heard=lambda data, is_stderr: None,
            began=refuse,
        )
    assert not is_running(seen[0])


async def test_the_end_of_a_process_is_seen_where_the_system_has_no_descriptors_of_processes(
    place: ProgramPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert (await place.script("echo out; exit 3")).error == "exit code 3: out"
    attempt = place.start("echo ready; exec sleep 1000", shell=True)
    await place.ears.hear(2)
    await cancel(attempt)
