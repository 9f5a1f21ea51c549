"""The runtime inside a program: work goes in, results, records and events come out, and it can be closed and opened."""

import asyncio
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.engine import functions
from tests.integration.engine.world import AT_ONCE, HANG_S, LOOP, ONCE, PROCESS, THREADS, call, faults, opened
from understudy.actors.errors import UnderstudyError
from understudy.actors.idempotency import RequestConflict
from understudy.actors.lifecycle import MACHINES
from understudy.actors.lifecycle.invariants import check_history
from understudy.actors.ports.store import StoreRefused
from understudy.actors.records import Transition
from understudy.runtime import (
    Check,
    Conflict,
    DefinitionError,
    Flow,
    NotFound,
    Runtime,
    RuntimeClosed,
    Task,
    TaskFailed,
    Tool,
    Workstream,
    WorkstreamFailed,
)
from understudy.runtime.runtime import DEFAULT_WORKERS


async def test_a_workstream_that_is_submitted_gives_its_result(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        assert await world.run(call("add", a=1, b=2)) == {"add": 3}
        assert world.runtime.health() == "ok"
    assert faults(tmp_path / "state.db") == []


async def test_outputs_flow_from_task_to_task_and_through_a_map(tmp_path: Path) -> None:
    flow = Flow()
    first = flow.add(functions.add, 1, 2)
    second = flow.add(functions.double, first.output)
    each = flow.map(functions.double, [1, 2, 3])
    flow.having(id="sum").add(functions.total, each.output)
    flow.having(id="last").add(functions.add, second.output, first.output)
    async with opened(tmp_path / "state.db") as world:
        with anyio.fail_after(HANG_S):
            result = await (await world.runtime.submit(flow)).result()
    assert result == {"add": 3, "double": 6, "double-2": [2, 4, 6], "sum": 12, "last": 9}
    assert faults(tmp_path / "state.db") == []


async def test_each_kind_of_worker_runs_its_functions_where_it_says(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db", LOOP, THREADS) as world:
        result = await world.run(call("where"), call("where_async"))
        assert result["where"][0] == result["where_async"][0] == os.getpid()
        assert result["where"][1] != result["where_async"][1]
    async with opened(tmp_path / "state.db", PROCESS) as world:
        result = await world.run(call("where"), call("where_async"))
        assert result["where"][0] == result["where_async"][0] != os.getpid()


async def test_the_same_request_gives_the_same_workstream_now_and_after_a_restart(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    work = Workstream((call("note", path=str(effects), text="once"),))
    async with opened(tmp_path / "state.db") as world:
        both = await asyncio.gather(*(world.runtime.submit(work, request_id="order-1") for _ in range(2)))
        await both[0].wait()
        third = await world.runtime.submit(work, request_id="order-1")
        assert {both[0].id, both[1].id} == {third.id}
    async with opened(tmp_path / "state.db") as world:
        again = await world.runtime.submit(work, request_id="order-1")
        assert again.id == third.id
        assert await again.result() == {"note": None}
    assert effects.read_text() == "once\n"


async def test_a_request_id_that_was_used_for_something_else_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        await world.runtime.submit(Workstream((call("add", a=1),)), request_id="order-1")
        with pytest.raises(RequestConflict):
            await world.runtime.submit(Workstream((call("add", a=2),)), request_id="order-1")


async def test_an_id_that_is_taken_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        await world.run(call("add", a=1), id="mine")
        with pytest.raises(Conflict, match="mine already"):
            await world.submit(call("add", a=1), id="mine")


async def test_the_output_of_one_task_is_there_before_the_workstream_ends(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("add", a=1), call("wait_at", gate="outputs"))
        with anyio.fail_after(HANG_S):
            assert await handle.output("add") == 2
            assert (await handle.record()).state == "executing"
            functions.gates.open("outputs")
            assert await handle.output("wait_at") == "outputs was open"
            await handle.wait()


async def test_params_are_given_at_the_submit_and_unknown_ones_refused(tmp_path: Path) -> None:
    flow = Flow(params={"number": 1})
    flow.add(functions.double, "${params.number}")  # type: ignore[call-overload]
    async with opened(tmp_path / "state.db") as world:
        assert await (await world.runtime.submit(flow, params={"number": 4})).result() == {"double": 8}
        with pytest.raises(DefinitionError, match=r"\$\.params\.numbre"):
            await world.runtime.submit(flow, params={"numbre": 4})


# Events


async def test_events_stream_from_submitted_to_completed_and_end(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(
            call("add", a=1), call("double", number="${add.output}"), call("wait_at", gate="ev")
        )
        seen: list[Transition] = []
        with anyio.fail_after(HANG_S):
            async for event in handle.events():
                seen.append(event)
                if event.record_id.endswith("/double") and event.to_state == "completed":
                    functions.gates.open("ev")  # the rest happens while somebody listens
        assert (seen[0].trigger, seen[0].record_id) == ("submitted", handle.id)
        assert (seen[-1].to_state, seen[-1].record_id) == ("completed", handle.id)
        assert [each.sequence for each in seen] == sorted({each.sequence for each in seen})
        assert all(each.workstream_id == handle.id for each in seen)
        records = {(each.entity, each.record_id) for each in seen}
        assert len(records) == 4
        for entity, record_id in records:
            own = [each for each in seen if each.record_id == record_id]
            assert own == await world.runtime.history(entity, record_id)
            assert list(check_history(MACHINES[entity], own)) == []


async def test_events_resume_behind_a_sequence_and_also_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("add", a=1), call("double", number="${add.output}"))
        seen = [event async for event in handle.events()]
    for position in (0, 3, len(seen) - 2):
        async with opened(tmp_path / "state.db") as world:
            with anyio.fail_after(HANG_S):
                rest = [event async for event in world.runtime.handle(handle.id).events(after=seen[position].sequence)]
            assert rest == seen[position + 1 :]


async def test_events_of_an_ended_workstream_behind_its_end_are_none(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("add", a=1))
        seen = [event async for event in handle.events()]
        with anyio.fail_after(HANG_S):
            assert [event async for event in handle.events(after=seen[-1].sequence)] == []


# Failures


async def test_a_failed_task_is_told_with_its_error_and_fails_its_workstream(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("fail", why="the printer is on fire"), call("add", a=1, after=("fail",)))
        with anyio.fail_after(HANG_S):
            with pytest.raises(TaskFailed, match="the printer is on fire") as task_failed:
                await handle.output("fail")
            with pytest.raises(WorkstreamFailed, match="task fail did not succeed") as failed:
                await handle.result()
        assert task_failed.value.record.attempts == 1
        assert failed.value.record.state == "failed"
        assert (await handle.task("add")).state == "skipped"
        with pytest.raises(TaskFailed, match="is skipped"):
            await handle.output("add")


async def test_a_flaky_task_is_tried_again_with_a_cause(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("fail_until", name="flaky", attempt=3, retry=AT_ONCE))
        with anyio.fail_after(HANG_S):
            assert await handle.result() == {"fail_until": 3}
        attempts = await world.attempts(handle, "fail_until")
    assert [(each.outcome, each.cause) for each in attempts] == [
        ("failed", None),
        ("failed", "retry after: ValueError: not yet flaky"),
        ("completed", "retry after: ValueError: not yet flaky"),
    ]


# Runtimes


async def test_two_runtimes_live_in_one_process_each_with_its_file(tmp_path: Path) -> None:
    async with opened(tmp_path / "one.db") as one, opened(tmp_path / "two.db") as two:
        first, second = await asyncio.gather(one.run(call("add", a=1), id="same"), two.run(call("add", a=2), id="same"))
        assert (first, second) == ({"add": 2}, {"add": 3})
        assert [len(await each.runtime.workstreams()) for each in (one, two)] == [1, 1]


async def test_a_second_runtime_on_the_same_file_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        with pytest.raises(StoreRefused, match=f"in use by pid {os.getpid()}"):
            async with Runtime(tmp_path / "state.db"):
                pass
        assert await world.run(call("add", a=1)) == {"add": 2}
    async with opened(tmp_path / "state.db") as world:
        assert await world.run(call("add", a=1)) == {"add": 2}


async def test_who_waits_for_a_runtime_that_closes_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("wait_at", gate="never"))
        waiting = [
            asyncio.create_task(handle.result()),
            asyncio.create_task(handle.output("wait_at")),
        ]
        events = asyncio.create_task(anext_all(handle.events()))
        await world.lines.wait_for("progress", task="wait_at")
        await world.runtime.close()
        with anyio.fail_after(HANG_S):
            for each in waiting:
                with pytest.raises(RuntimeClosed):
                    await each
            assert next(event.to_state for event in await events) == "planned"
            with pytest.raises(UnderstudyError):
                await world.submit(call("add", a=1))


async def anext_all(events: Any) -> list[Transition]:
    return [event async for event in events]


async def test_what_was_running_at_the_close_runs_again_as_a_new_attempt(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("wait_at", gate="reopened"))
        await world.lines.wait_for("progress", task="wait_at")
    functions.gates.open("reopened")
    async with opened(tmp_path / "state.db") as world:
        assert str(world.runtime.recovery).startswith("Recovered 1 tasks of 1 workstreams")
        again = world.runtime.handle(handle.id)
        with anyio.fail_after(HANG_S):
            assert await again.result() == {"wait_at": "reopened was open"}
        first, second = await world.attempts(again, "wait_at")
        assert (first.outcome, second.outcome) == ("lost", "completed")
        assert second.cause is not None
    assert faults(tmp_path / "state.db") == []


# Queries


async def test_records_are_asked_for_in_pages(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        tasks = [call("add", f"t{number:02}", a=number) for number in range(25)]
        for name in ("a", "b", "c"):
            await world.run(*tasks, id=name)
        pages: list[list[str]] = []
        after = ""
        while page := await world.runtime.tasks("b", after=after, limit=10):
            pages.append([each.key for each in page])
            after = page[-1].id
        assert [len(page) for page in pages] == [10, 10, 5]
        assert [key for page in pages for key in page] == [each.id for each in tasks]
        assert [each.id for each in await world.runtime.workstreams(after="a", limit=1)] == ["b"]
        assert await world.runtime.workstreams(states=["failed"]) == []
        assert len([each async for each in world.runtime.all_tasks("c")]) == 25
        assert {each.id for each in await world.runtime.workers()} == {"loop", "threads"}
        with pytest.raises(NotFound, match="no workstream z"):
            await world.runtime.workstream("z")


async def test_explain_says_why_a_thing_is_not_moving(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db", LOOP) as world:
        handle = await world.submit(
            call("wait_at", gate="explained"),
            call("add", a=1, after=("wait_at",)),
            call("add", "far", a=1, capabilities=("gpu",)),
        )
        await world.lines.wait_for("progress", task="wait_at")
        assert (await handle.explain("wait_at")).why == "attempt 1 runs on loop"
        waiting = await handle.explain("add")
        assert (waiting.why, waiting.waits_for) == ("it waits for wait_at", ("wait_at",))
        assert "no async or process worker that offers gpu takes tasks" in (await handle.explain("far")).why
        assert "0 of 3 tasks have ended" in (await handle.explain()).why
        await handle.cancel()
        assert (await handle.explain()).why.startswith("it has ended")
        with pytest.raises(NotFound):
            await handle.explain("nowhere")


# Definitions that this runtime cannot run


async def test_what_cannot_run_is_refused_at_the_submit_with_its_path(tmp_path: Path) -> None:
    work = Workstream(
        (
            call("add", a=1),
            call("ad", a=1),
            Task("list", argv=("ls",), checks=(Check(call="nowhere:f"),)),
            Task("tool", tool="git", checks=(Check(output_schema={"type": "lists"}),)),
            Task("lost", call="nowhere:f"),
        ),
        tools={"git": Tool(argv=("git", "status"))},
    )
    async with opened(tmp_path / "state.db") as world:
        with pytest.raises(DefinitionError) as refused:
            await world.runtime.submit(work)
        assert await world.runtime.workstreams() == []
    found = {problem.path: str(problem) for problem in refused.value.problems}
    assert sorted(found) == [
        "$.tasks[1].call",
        "$.tasks[2].checks[0].call",
        "$.tasks[3].checks[0].output_schema",
        "$.tasks[4].call",
    ]
    assert "did you mean 'add'" in found["$.tasks[1].call"]
    assert "'lists'" in found["$.tasks[3].checks[0].output_schema"]


async def test_an_unsound_graph_is_refused_at_the_submit(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        with pytest.raises(DefinitionError, match="a -> b -> a"):
            await world.submit(call("add", "a", a=1, after=("b",)), call("add", "b", a=1, after=("a",)))


async def test_a_task_without_retries_fails_at_its_first_error(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call("fail_until", name="once", attempt=2, retry=ONCE))
        with anyio.fail_after(HANG_S), pytest.raises(TaskFailed, match="attempt 1, no retry left"):
            await handle.output("fail_until")


async def test_a_runtime_that_runs_no_programs_leaves_nothing_beside_its_database(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db", *DEFAULT_WORKERS) as world:
        handle = await world.submit(call("add", a=1))
        await handle.wait()
    assert not (tmp_path / "state.db.files").exists()
