"""More work than there is room for, and graphs of every shape: bounded, nothing dropped in silence, no recursion."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.integration.engine.world import HANG_S, LOOP, call, faults, opened
from understudy.actors.lifecycle import TASK
from understudy.runtime import Durability, Handle, NotTakingWork, Task, Workstream

TASKS = 20_000
SUBMITS = 100_000
LONG_S = 10 * HANG_S


async def test_submits_beyond_the_bound_are_refused_and_none_is_dropped_and_a_cancel_is_answered(
    tmp_path: Path,
) -> None:
    work = Workstream((call("nothing", "a"),))
    async with opened(tmp_path / "state.db", LOOP, durability=Durability.NORMAL) as world:
        running = await world.submit(call("wait_at", gate="never under load"))
        await world.lines.wait_for("progress", task="wait_at")

        async def submit(number: int) -> Handle | NotTakingWork:
            if number == SUBMITS // 2:
                assert (await running.cancel()).state == "cancelled"
            try:
                return await world.runtime.submit(work)
            except NotTakingWork as refused:
                return refused

        with anyio.fail_after(LONG_S):
            answers = await asyncio.gather(*(submit(number) for number in range(SUBMITS)))
            taken = [each for each in answers if isinstance(each, Handle)]
            refused = [each for each in answers if isinstance(each, NotTakingWork)]
            assert len(taken) + len(refused) == SUBMITS
            assert len(taken) >= 1_000
            assert refused
            assert all(each.retry_after_s > 0 for each in refused)
            for each in taken:
                assert (await each.wait()).state == "completed"
        known = 0
        after = ""
        while page := await world.runtime.workstreams(after=after, limit=1_000):
            known += len(page)
            after = page[-1].id
        assert known == len(taken) + 1
        assert world.runtime.health() == "ok"


async def test_the_same_requests_in_a_flood_are_all_answered_and_stop_nobody(tmp_path: Path) -> None:
    work = Workstream((call("nothing", "a"),))
    async with opened(tmp_path / "state.db", LOOP, durability=Durability.NORMAL) as world:

        async def submit(number: int) -> str | None:
            try:
                return (await world.runtime.submit(work, request_id=f"request-{number // 3}")).id
            except NotTakingWork:
                return None

        asked: list[asyncio.Task[str | None]] = []
        for _ in range(30):  # the mailbox is full whenever an answer is given
            asked += [asyncio.create_task(submit(len(asked) + each)) for each in range(1_500)]
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(HANG_S):
            answers = await asyncio.gather(*asked)
            assert await world.run(call("add", a=1)) == {"add": 2}
        for first in range(0, len(answers), 3):
            assert len({each for each in answers[first : first + 3] if each}) <= 1
        assert world.runtime.health() == "ok"


def wide() -> list[Task]:
    return [call("nothing", f"t{number}") for number in range(TASKS)]


def chain() -> list[Task]:
    links = [call("nothing", f"t{number}", after=(f"t{number - 1}",)) for number in range(1, TASKS)]
    return [call("nothing", "t0"), *links]


def diamonds() -> list[Task]:
    """One, then three beside each other, then one again, and so on."""
    tasks: list[Task] = [call("nothing", "t0")]
    last = "t0"
    while len(tasks) + 4 <= TASKS:
        middle = [f"t{len(tasks) + number}" for number in range(3)]
        tasks += [call("nothing", key, after=(last,)) for key in middle]
        last = f"t{len(tasks)}"
        tasks.append(call("nothing", last, after=tuple(middle)))
    return tasks


@pytest.mark.parametrize("shape", [wide, chain, diamonds], ids=lambda shape: shape.__name__)
async def test_a_large_graph_completes_whatever_its_shape(tmp_path: Path, shape: Callable[[], list[Task]]) -> None:
    tasks = shape()
    async with opened(tmp_path / "state.db", LOOP, durability=Durability.NORMAL) as world:
        handle = await world.submit(*tasks)
        with anyio.fail_after(LONG_S):
            record = await handle.wait()
        assert record.state == "completed"
        states = Counter([each.state async for each in world.runtime.all_tasks(handle.id)])
        assert states == {"completed": len(tasks)}
        assert all(TASK.is_terminal(state) for state in states)
        assert world.runtime.health() == "ok"
    assert faults(tmp_path / "state.db") == []
