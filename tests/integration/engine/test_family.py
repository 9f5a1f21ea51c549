"""What running tasks ask of their runtime: children, more tasks, a log; and what never leaves it, secrets."""

import os
from pathlib import Path

import anyio
import pytest
import structlog

from tests.integration.engine import functions
from tests.integration.engine.world import HANG_S, LOOP, ONCE, PROCESS, THREADS, call, faults, opened
from understudy.actors.definition.limits import DEPTH_MAX
from understudy.runtime import DefinitionError, TaskFailed, WorkstreamFailed

CANARY = 'canary-5f0e1c-"quoted"-secret'


async def test_a_child_gives_its_result_to_the_task_that_spawned_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("raise_a_child"))
        with anyio.fail_after(HANG_S):
            child, result = (await handle.result())["raise_a_child"]
        assert result == {"inner": 2}
        record = await world.runtime.workstream(child)
        assert (record.parent_id, record.depth, record.state) == (handle.id, 1, "completed")
    assert faults(tmp_path / "state.db") == []


async def test_the_next_attempt_finds_the_child_of_the_one_before(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("raise_a_child", gate="child-again"))
        await world.lines.wait_for("progress", task="inner")
    functions.gates.open("child-again")
    async with opened(tmp_path / "state.db") as world:
        with anyio.fail_after(HANG_S):
            child, result = (await world.runtime.handle(handle.id).result())["raise_a_child"]
        assert result == {"inner": "child-again was open"}
        assert [each.id for each in await world.runtime.workstreams()] == [handle.id, child]


async def test_a_cancel_reaches_the_children_of_children(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("raise_a_child", gate="never-opened"))
        child = (await world.lines.wait_for("progress", task="raise_a_child"))["note"]
        await world.lines.wait_for("progress", task="inner")
        with anyio.fail_after(HANG_S):
            done = await handle.cancel(who="tests", why="no more")
            assert done.state == "cancelled"
            record = await world.runtime.handle(child).wait()
        assert record.state == "cancelled"
        assert {each.state for each in await world.runtime.tasks()} == {"cancelled"}
    assert faults(tmp_path / "state.db") == []


async def test_workstreams_nest_to_a_depth_and_no_deeper(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("nest", retry=ONCE))
        with anyio.fail_after(HANG_S), pytest.raises(WorkstreamFailed):
            await handle.result()
        streams = await world.runtime.workstreams()
        assert sorted(each.depth for each in streams) == list(range(DEPTH_MAX + 1))
        deepest = max(streams, key=lambda each: each.depth)
        with pytest.raises(TaskFailed, match=f"nested {DEPTH_MAX} deep at most"):
            await world.runtime.handle(deepest.id).output("nest")


async def test_a_task_adds_tasks_to_its_own_graph(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        result = await world.run(call("add_tasks", count=3), call("add", a=0, after=("add_tasks",)))
        assert result == {"add_tasks": 3, "add": 1, "added-0": 1, "added-1": 2, "added-2": 3}
    assert faults(tmp_path / "state.db") == []


async def test_many_tasks_that_are_added_at_once_all_run(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        assert len(await world.run(call("add_tasks", count=1_200))) == 1_201


@pytest.mark.parametrize("worker", [THREADS, PROCESS], ids=["thread", "process"])
async def test_plain_functions_have_children_too(tmp_path: Path, worker: object) -> None:
    async with opened(tmp_path / "state.db", LOOP, THREADS if worker is THREADS else PROCESS) as world:
        handle = await world.submit(call("raise_a_child_by_hand"))
        with anyio.fail_after(HANG_S):
            _, result = (await handle.result())["raise_a_child_by_hand"]
        assert result == {"inner": 2}


async def test_a_log_line_of_a_task_knows_where_it_comes_from(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        with structlog.testing.capture_logs() as lines:
            handle = await world.submit(call("log_a_line", "logging"))
            await handle.wait()
    [line] = [each for each in lines if each["event"] == "a line"]
    assert (line["workstream"], line["task"], line["attempt"]) == (handle.id, "logging", 1)


async def test_a_line_of_the_runtime_about_a_task_says_which(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("fail", "failing"))
        await handle.wait()
        line = await world.lines.wait_for("task failed")
        assert (line["workstream"], line["record"], line["attempt"]) == (handle.id, f"{handle.id}/failing", 1)


@pytest.mark.parametrize("how", ["raise", "return"])
@pytest.mark.parametrize("kind", ["async", "process"])
async def test_a_secret_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], how: str, kind: str
) -> None:
    monkeypatch.setenv("TOKEN_OF_ENGINE", CANARY)
    worker = LOOP if kind == "async" else PROCESS
    async with opened(tmp_path / "state.db", worker) as world:
        with structlog.testing.capture_logs() as lines:
            handle = await world.submit(
                call("speak", secret="${secrets.TOKEN_OF_ENGINE}", how=how, retry=ONCE), secrets=("TOKEN_OF_ENGINE",)
            )
            await world.lines.wait_for("progress")
            record = await handle.wait()
        assert record.state == ("failed" if how == "raise" else "completed")
        events = [event async for event in handle.events()]
        shown = [repr(lines), repr(world.lines.all), repr(events), repr(await handle.task("speak"))]
        shown += [repr(await world.attempts(handle, "speak")), repr(await handle.explain("speak"))]
    captured = capfd.readouterr()
    shown += [captured.out, captured.err]
    assert [text for text in shown if CANARY in text or "canary-5f0e1c" in text] == []
    assert any("***" in text for text in shown)
    for path in tmp_path.iterdir():
        assert b"canary-5f0e1c" not in path.read_bytes(), path


async def test_a_secret_that_is_not_set_fails_the_task_by_name(tmp_path: Path) -> None:
    assert "TOKEN_OF_NOBODY" not in os.environ
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(
            call("speak", secret="${secrets.TOKEN_OF_NOBODY}", how="raise"), secrets=("TOKEN_OF_NOBODY",)
        )
        with anyio.fail_after(HANG_S), pytest.raises(WorkstreamFailed):
            await handle.result()
        assert "TOKEN_OF_NOBODY is not set" in ((await handle.task("speak")).last_error or "")


async def test_a_secret_that_was_not_declared_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        with pytest.raises(DefinitionError, match="TOKEN_OF_ENGINE"):
            await world.submit(call("speak", secret="${secrets.TOKEN_OF_ENGINE}", how="raise"))
