"""A run that is told to stop: once it cancels in order, twice it ends at once, and either way it can be gone on with."""

import json
import signal
from pathlib import Path

import anyio
import pytest

from tests.integration.cli.runs import HANG_S, ask, living, running, shell, state_of, until, wait_for, write
from tests.integration.cli.terminal import needs_tmux, terminal

POLITE = f"trap 'echo tidied > tidied; exit 1' TERM; echo on; {wait_for('never')}"
STUBBORN = f"trap '' TERM; echo on; {wait_for('never')}"


def write_work(folder: Path, script: str, more: str = "") -> None:
    first = shell("first", "echo once >> first")
    second = shell("second", f"[ -e go ] && exit 0; {script}; : {folder}", f", after: [first]{more}")
    write(folder, "id: w", "tasks:", first, second, shell("third", "true", ", after: [second]"))


async def resume(folder: Path) -> str:
    (folder / "go").touch()
    async with running(folder, "--resume", "w") as run:
        assert await run.end() == 0
    assert ask(folder, "check").returncode == 0
    return run.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_cancels_in_order_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    write_work(tmp_path, POLITE)
    async with running(tmp_path, "work.yaml") as run:
        await run.says("second | on")
        run.send(number)
        assert await run.end() == 3
    assert (tmp_path / "tidied").exists()
    assert f"{number.name}: cancelling; once more to stop at once" in run.text
    assert "w cancelled: 1 completed, 2 cancelled" in run.text
    assert "    understudy run --resume w --db state.db" in run.text
    assert not living(f": {tmp_path}")
    await resume(tmp_path)
    assert (tmp_path / "first").read_text() == "once\n"


async def test_a_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    write_work(tmp_path, STUBBORN)
    async with running(tmp_path, "work.yaml") as run:
        await run.says("second | on")
        run.send(signal.SIGINT)
        await run.says("cancelling")
        run.send(signal.SIGINT)
        assert await run.end() == 130
    assert not living(f": {tmp_path}")
    assert "    understudy run --resume w --db state.db" in run.text
    assert ask(tmp_path, "check").returncode == 0
    await resume(tmp_path)
    assert state_of(tmp_path, "w/second")["state"] == "completed"
    assert (tmp_path / "first").read_text() == "once\n"


async def test_a_signal_during_a_backoff_waits_for_nothing(tmp_path: Path) -> None:
    write_work(tmp_path, "exit 1", ", retry: {base_delay: 1000, max_delay: 1000, jitter: 0}")
    async with running(tmp_path, "work.yaml") as run:
        await run.says("second retrying")
        run.send(signal.SIGINT)
        assert await run.end() == 3
    await resume(tmp_path)


async def test_a_signal_while_a_breaker_is_open_waits_for_nothing(tmp_path: Path) -> None:
    policy = "breaker: {failure_threshold: 1, cooldown: 1000}, retry: {base_delay: 0, jitter: 0}"
    write(tmp_path, "id: w", f"tools: {{api: {{argv: [sh, -c, exit 1], {policy}}}}}", "tasks: [{id: ask, tool: api}]")
    async with running(tmp_path, "work.yaml") as run:
        await run.says("ask circuit open")
        run.send(signal.SIGINT)
        assert await run.end() == 3
    async with running(tmp_path, "--resume", "w", "--json") as run:
        await run.says('"to_state":"queued"')
        assert "breaker" in ask(tmp_path, "explain", "w/ask").stdout  # it is open still
        run.send(signal.SIGINT)
        assert await run.end() == 3


async def test_a_signal_before_anything_has_begun_changes_nothing(tmp_path: Path) -> None:
    """What a killed run has left is ended before anything begins, which gives it time to be told to stop."""
    deaf = f"exec 2> /dev/null; [ -e told ] || trap 'echo on > told' TERM; echo on; {wait_for('never')}; : {tmp_path}"
    write(tmp_path, "id: w", "tasks:", shell("hang", deaf))
    async with running(tmp_path, "work.yaml") as run:
        await run.says("hang | on")
        run.send(signal.SIGKILL)
        await run.end()
    write(tmp_path, "id: other", "tasks:", shell("a", "true"))
    async with running(tmp_path, "work.yaml") as run:
        await until(tmp_path / "told")
        run.send(signal.SIGINT)
        assert await run.end() == 130
    assert not living(f": {tmp_path}")
    assert [each["id"] for each in json.loads(ask(tmp_path, "ls", "--all", "--json").stdout)] == ["w"]


@needs_tmux
async def test_ctrl_c_on_a_terminal_once_and_twice(tmp_path: Path) -> None:
    write_work(tmp_path, STUBBORN)
    async with terminal(tmp_path) as window:
        await window.type("understudy run work.yaml --db state.db")
        await window.shows("second │ on")
        await window.press("C-c")
        await window.shows("SIGINT: cancelling; once more to stop at once")
        await window.press("C-c")
        assert await window.exit_code() == 130
        everything = await window.everything()
        assert everything.count("second │ on") == 1
        assert "Traceback" not in everything
        (tmp_path / "go").touch()
        await window.type("understudy run --resume w --db state.db")
        assert await window.exit_code() == 0
        await window.shows("w completed: 3 completed")
    assert not living(f": {tmp_path}")


@needs_tmux
async def test_a_terminal_that_is_closed_is_a_signal_too(tmp_path: Path) -> None:
    write_work(tmp_path, POLITE)
    async with terminal(tmp_path) as window:
        await window.type("understudy run work.yaml --db state.db")
        await window.shows("second │ on")
    await until(tmp_path / "tidied")
    with anyio.fail_after(HANG_S):
        while (
            living("understudy run work.yaml --db state.db") or ask(tmp_path, "show", "w").stdout.count("cancelled") < 2
        ):
            await anyio.lowlevel.checkpoint()
    assert state_of(tmp_path, "w")["state"] == "cancelled"
    await resume(tmp_path)
