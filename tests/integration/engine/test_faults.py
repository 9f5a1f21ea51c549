"""Faults that a runtime survives: crashes at every point, frozen processes, code that misbehaves in every way."""

import json
import os
import select
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.engine import crash_program, functions, pause_program
from tests.integration.engine.world import (
    AT_ONCE,
    HANG_S,
    LOOP,
    ONCE,
    PROCESS,
    THREADS,
    call,
    faults,
    opened,
    start,
)
from understudy.actors.engine import messages as m
from understudy.actors.engine.task import TaskActor
from understudy.runtime import Limits, TaskFailed, WorkerDefinition, WorkerKind, WorkstreamFailed

POINTS = ("before commit", "after commit", "before dispatch", "after effect", "before result", "after result")
CONTRACT = "tests.contract.tools.functions"


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_a_named_point_loses_nothing_and_repeats_only_what_was_in_flight(tmp_path: Path, point: str) -> None:
    database, effects = tmp_path / "state.db", tmp_path / "effects"
    for count in (1, 2, 3):
        process = start("crash_program", database, effects, point, count)
        output, _ = process.communicate(timeout=HANG_S)
        assert process.returncode == -signal.SIGKILL, output
        assert faults(database) == []
    output, _ = start("crash_program", database, effects, "none", 0).communicate(timeout=HANG_S)
    state, recovery = json.loads(output)
    assert state == "completed"
    assert recovery.startswith(("Recovered", "Nothing"))
    assert faults(database) == []
    runs = Counter(token.split("/")[1] for token in effects.read_text().split())
    assert sorted(runs) == [f"t{number}" for number in range(crash_program.TASKS)]
    assert sum(runs.values()) - len(runs) <= 3  # at most what was in flight, once for each crash
    assert len(set(effects.read_text().split())) == sum(runs.values())  # each execution was an attempt of its own


async def test_a_frozen_worker_loses_its_task_and_its_late_result_is_fenced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    workers = WorkerDefinition("w", WorkerKind.PROCESS, count=2, heartbeat=0.2, missed_checks_max=3)
    async with opened(tmp_path / "state.db", workers) as world:
        handle = await world.submit(call("wait_at_pipe", "task", path=str(pipe)))
        frozen = await world.lines.wait_for("progress", attempt=1)
        os.kill(int(frozen["note"]), signal.SIGSTOP)
        try:
            with anyio.fail_after(HANG_S):
                assert await handle.result() == {"task": "second"}
        finally:
            os.kill(int(frozen["note"]), signal.SIGCONT)
        await anyio.to_thread.run_sync(pipe.write_text, "first")
        late = await world.lines.wait_for("late result ignored")
        assert (late["task"], late["attempt"], late["workstream"]) == ("task", 1, handle.id)
        outcomes = [(each.attempt, each.outcome, each.worker_id) for each in await world.attempts(handle, "task")]
        (_, lost, first), (_, done, second) = (each for each in outcomes if each[1] != "late")
        assert (lost, done) == ("lost", "completed")
        assert first != second
        with anyio.fail_after(HANG_S):
            assert await world.run(call("double", number=1)) == {"double": 2}
        attempts = await world.attempts(handle, "task")
        assert (1, "late", first) in [(each.attempt, each.outcome, each.worker_id) for each in attempts]
        assert (await handle.task("task")).output == "second"
    assert faults(tmp_path / "state.db") == []


def test_a_runtime_that_was_stopped_as_a_whole_times_nothing_out(tmp_path: Path) -> None:
    process = start("pause_program", tmp_path / "state.db")
    assert process.stdout is not None
    assert process.stdin is not None
    started = 0
    while started < 2 * pause_program.TASKS:
        started += "holds" in process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    select.select([], [], [], 3 * pause_program.TIMEOUT_S)  # the fault itself: a time in which it is stopped
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate("\n" * 100, timeout=HANG_S)
    assert "ended completed" in output
    assert "paused" in output
    assert "timers moved" in output
    assert "timed_out" not in output


async def test_a_task_that_kills_its_workers_is_failed_after_three(tmp_path: Path) -> None:
    limits = Limits(respawn_s=0.05)
    async with opened(tmp_path / "state.db", PROCESS, limits=limits) as world:
        handle = await world.submit(call("kill_own_process"))
        with anyio.fail_after(HANG_S), pytest.raises(TaskFailed, match="killed 3 workers"):
            await handle.output("kill_own_process")
        assert [each.outcome for each in await world.attempts(handle, "kill_own_process")] == ["lost"] * 3
        with anyio.fail_after(HANG_S):
            assert await world.run(call("double", number=2)) == {"double": 4}
    assert faults(tmp_path / "state.db") == []


async def test_an_actor_that_crashes_in_a_loop_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = TaskActor.receive

    def poisoned(self: TaskActor, message: Any) -> None:
        if isinstance(message, m.Assigned) and self.context.name.endswith("/poisoned"):
            raise RuntimeError("a bug of ours")
        receive(self, message)

    monkeypatch.setattr(TaskActor, "receive", poisoned)
    async with opened(tmp_path / "state.db", LOOP, limits=Limits(sweep_s=0.05)) as world:
        handle = await world.submit(call("add", "poisoned", a=1), call("add", a=1))
        with anyio.fail_after(HANG_S):
            assert await handle.output("add") == 2
            for _ in range(200):
                if world.runtime.health() != "ok":
                    break
                await world.run(call("add", a=1))
            assert world.runtime.health().startswith("degraded")
            assert f"{handle.id}/poisoned crashed" in world.runtime.health()
            assert "a bug of ours" in world.runtime.health()
            assert await world.run(call("add", a=2)) == {"add": 3}


async def test_a_blocked_loop_is_reported_while_it_lasts_and_times_nobody_out(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db", LOOP, THREADS) as world:
        others = await world.submit(
            *(call("wait_at", f"w{number}", gate="unblocked", timeout=2.0, retry=ONCE) for number in range(20)),
        )
        for number in range(20):
            await world.lines.wait_for("progress", task=f"w{number}")
        world.lines.when("the loop is blocked", functions.gates.thread_gate("reported").set)
        blocking = await world.submit(call("block_the_loop", gate="reported", beyond_s=2.0))
        with anyio.fail_after(HANG_S):
            assert await blocking.result() == {"block_the_loop": "blocked"}
            functions.gates.open("unblocked")
            assert len(await others.result()) == 20
        [report] = world.lines.having("the loop is blocked")
        assert "block_the_loop" in report["stack"]
        [moved] = world.lines.having("timers moved")
        assert moved["stalled_s"] > 2.0  # it knows what it has given back
        assert world.lines.having("timed_out") == []


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_whatever_code_raises_is_a_failed_attempt_and_no_more(tmp_path: Path, kind: str) -> None:
    function = f"{CONTRACT}:fail" + ("_async" if kind == "async" else "")
    said = {
        "exit": "exited with SystemExit(3)",
        "interrupt": "exited with KeyboardInterrupt()",
        "generator": "exited with GeneratorExit()",
        "own": "exited with Own('mine')",
    }
    async with opened(tmp_path / "state.db", {"async": LOOP, "thread": THREADS, "process": PROCESS}[kind]) as world:
        for how, error in said.items():
            handle = await world.submit(call(function, "a", how=how, retry=AT_ONCE_TWICE))
            with anyio.fail_after(HANG_S), pytest.raises(WorkstreamFailed):
                await handle.result()
            attempts = await world.attempts(handle, "a")
            assert [(each.outcome, each.error) for each in attempts] == [("failed", error)] * 2
        with anyio.fail_after(HANG_S):
            assert await world.run(
                call(f"{CONTRACT}:double", "a", number=1) if kind != "async" else call("add", "a", a=1)
            ) == {"a": 2}
        assert world.runtime.health() == "ok"
        assert {(each.state, each.generation) for each in await world.runtime.workers()} <= {("idle", 1), ("busy", 1)}


AT_ONCE_TWICE = type(AT_ONCE)(max_attempts=2, base_delay=0, jitter=0)


@pytest.mark.parametrize(
    ("function", "worker"),
    [
        ("ignore_cancel", WorkerDefinition("one")),
        ("ignore_cancel_in_thread", WorkerDefinition("one", WorkerKind.THREAD)),
    ],
)
async def test_a_swallowed_cancel_is_abandoned_and_its_late_result_dropped(
    tmp_path: Path, function: str, worker: WorkerDefinition
) -> None:
    gate = f"ignored by {function}"
    after = call("add", a=1) if worker.kind is WorkerKind.ASYNC else call("double", "add", number=1)
    async with opened(tmp_path / "state.db", worker, limits=Limits(cancel_grace_s=0.05)) as world:
        handle = await world.submit(call(function, "stubborn", gate=gate))
        await world.lines.wait_for("progress", task="stubborn")
        with anyio.fail_after(HANG_S):
            assert (await handle.cancel()).state == "cancelled"
            assert await world.run(after) == {"add": 2}  # its slot is free although it goes on
        if worker.kind is WorkerKind.ASYNC:
            line = await world.lines.wait_for("task ignored its cancellation")
            assert (line["workstream"], line["task"]) == (handle.id, "stubborn")
        functions.gates.open(gate)
        if worker.kind is WorkerKind.ASYNC:
            await world.lines.wait_for("late result ignored")
        record = await handle.task("stubborn")
        assert (record.state, record.output) == ("cancelled", None)


async def test_a_process_that_swallows_its_cancel_is_killed_and_replaced(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db", PROCESS) as world:
        handle = await world.submit(call("ignore_for_ever"))
        pid = int((await world.lines.wait_for("progress"))["note"])
        with anyio.fail_after(HANG_S):
            await handle.cancel()
            assert await world.run(call("double", number=1)) == {"double": 2}
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert (await handle.task("ignore_for_ever")).state == "cancelled"
        [worker] = await world.runtime.workers()
        assert worker.generation == 2
    assert faults(tmp_path / "state.db") == []


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_results_beyond_the_cap_are_refused_in_words_and_cost_no_memory(tmp_path: Path, kind: str) -> None:
    output, _ = start("output_program", tmp_path / "state.db", kind).communicate(timeout=HANG_S)
    told = json.loads(output)
    errors = {int(size): error for size, error in told["errors"].items()}
    for size, error in errors.items():
        if size + 2 <= 2**20:
            assert error is None
        else:
            assert "> 1 MiB: return a file" in error
    assert "result 67.1 MB > 1 MiB: return a file" in errors[2**26]
    own = 0 if kind == "process" else 2**26 // 1024  # a thread makes its result here
    assert told["grown_kib"] < 50 * 1024 + own


@pytest.mark.parametrize(
    ("what", "offender"),
    [
        ("nan", "$.items[1]"),
        ("struct", "$[0].y"),
        ("cycle", "$[0]"),
        ("object", "$.a"),
        ("key", "$.a"),
        ("big", "$.n"),
        ("surrogate", "$[0]"),
    ],
)
async def test_what_cannot_be_stored_is_a_failed_attempt_with_its_path(
    tmp_path: Path, what: str, offender: str
) -> None:
    async with opened(tmp_path / "state.db") as world:
        handle = await world.submit(call(f"{CONTRACT}:odd_async", "a", what=what, retry=ONCE))
        with anyio.fail_after(HANG_S), pytest.raises(WorkstreamFailed):
            await handle.result()
        assert offender in ((await handle.task("a")).last_error or "")
        assert world.runtime.health() == "ok"
