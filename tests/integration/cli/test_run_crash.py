"""A run that was killed in the middle: others can look on, nobody works twice, and --resume goes on where it was."""

import json
import signal
from pathlib import Path

from tests.integration.cli.runs import Run, ask, living, running, shell, state_of, wait_for, write


def write_work(folder: Path) -> str:
    """Answers what its program has in its command line."""
    mark = f": {folder}"
    second = shell("second", f"echo $$ >> pids; echo on; {wait_for('go')}; {mark}", ", after: [first]")
    write(folder, "id: w", "tasks:", shell("first", "echo once >> first"), second)
    return mark


async def kill_in_the_middle(run: Run) -> None:
    await run.says("second | on")
    run.send(signal.SIGKILL)
    assert await run.end() == -signal.SIGKILL


async def test_resume_after_a_kill_ends_the_orphan_and_runs_its_task_again(tmp_path: Path) -> None:
    mark = write_work(tmp_path)
    async with running(tmp_path, "work.yaml") as run:
        await kill_in_the_middle(run)
    assert living(mark), "its program is an orphan"
    async with running(tmp_path, "--resume", "w") as run:
        await run.says("second running (attempt 2")
        await run.says("second | on")
        first, second = (tmp_path / "pids").read_text().split()
        left = living(mark)
        assert int(first) not in left
        assert int(second) in left
        (tmp_path / "go").touch()
        assert await run.end() == 0
    assert "ended a program that a crashed runtime had left" in run.text
    assert f"pid: {first}" in run.text
    assert "Recovered 1 tasks of 1 workstreams; 1 run again (crash)" in run.text
    assert (tmp_path / "first").read_text() == "once\n"
    attempts = json.loads(ask(tmp_path, "show", "w/second", "--json").stdout)["attempts"]
    told = sorted((each["attempt"], each["outcome"], each.get("cause")) for each in attempts)
    assert told == [(1, "lost", None), (2, "completed", "the runtime had stopped while it ran")]
    logs = tmp_path / "state.db.files" / "logs" / "w"
    assert sorted(path.name for path in logs.glob("second*")) == ["second.1.1.log", "second.1.2.log"]
    assert ask(tmp_path, "check").returncode == 0


async def test_a_stranger_who_has_the_number_of_an_orphan_is_left_alone(tmp_path: Path) -> None:
    write_work(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write(other, "id: stranger", "tasks:", shell("work", f"echo on; {wait_for('go')}"))
    async with running(tmp_path, "work.yaml") as run:
        await kill_in_the_middle(run)
    async with running(other, "work.yaml") as stranger:
        await stranger.says("work | on")
        number = (other / "state.db.files" / "processes").read_text().split()[1]
        ledger = tmp_path / "state.db.files" / "processes"
        boot = ledger.read_text().split()[3]
        with ledger.open("a") as file:  # as if one of ours had it soon after the boot
            file.write(f"+ {number} 1 {boot} w/second/1/1\n")
        (tmp_path / "go").touch()
        async with running(tmp_path, "--resume", "w") as run:
            assert await run.end() == 0
        assert Path(f"/proc/{number}").exists()
        assert f"pid: {number}" not in run.text
        (other / "go").touch()
        assert await stranger.end() == 0


async def test_others_may_look_on_but_not_run_while_a_run_goes_on(tmp_path: Path) -> None:
    write_work(tmp_path)
    async with running(tmp_path, "work.yaml") as run:
        await run.says("second | on")
        assert "executing" in ask(tmp_path, "ls").stdout
        assert state_of(tmp_path, "w/second")["state"] == "running"
        assert "w/second is running" in ask(tmp_path, "explain", "w/second").stdout
        assert ask(tmp_path, "logs", "w/second").stdout.endswith("on\n")
        for words in (("run", "work.yaml"), ("run", "--resume", "w")):
            refused = ask(tmp_path, *words)
            assert refused.returncode == 2
            assert f"in use by pid {run.pid}" in refused.stderr
            assert "Traceback" not in refused.stderr
        (tmp_path / "go").touch()
        assert await run.end() == 0


async def test_looking_on_works_when_nobody_runs_it(tmp_path: Path) -> None:
    write_work(tmp_path)
    async with running(tmp_path, "work.yaml") as run:
        await kill_in_the_middle(run)
    assert "executing" in ask(tmp_path, "ls").stdout
    assert "run" in ask(tmp_path, "explain", "w/second").stdout
    assert ask(tmp_path, "logs", "w/second").stdout.endswith("on\n")
    (tmp_path / "go").touch()
    async with running(tmp_path, "--resume", "w") as run:
        assert await run.end() == 0
    async with running(tmp_path, "--resume", "w") as run:
        assert await run.end() == 0
    assert "w completed: 2 completed" in run.text
