"""What every store does: what was committed is read back, in order, by any of its questions."""

from typing import Any

import pytest

from tests.contract.stores.samples import answer, attempt, batch, breaker, move, result, task, worker, workstream
from understudy.actors.lifecycle import Entity, TaskState, WorkstreamState
from understudy.actors.ports.store import AttemptQuery, Store
from understudy.actors.records import Record


@pytest.mark.parametrize(
    ("entity", "record"),
    [
        (Entity.WORKSTREAM, workstream(definition={"tasks": [{"id": "ä"}]}, name="Ω", parent_id="p", depth=1)),
        (Entity.TASK, task(output={"deep": [1, 2.5, None, "x" * 1_000]}, depends_on=("a", "b"), worker_id="worker-1")),
        (Entity.WORKER, worker(capabilities=("gpu",), has_run=True, task_ids=("w/t",))),
        (Entity.BREAKER, breaker(failures=3, due_at=99, last_error="boom")),
    ],
)
async def test_record_is_read_back_as_it_was_written(store: Store, entity: Entity, record: Record) -> None:
    await store.commit(batch(record))
    assert await store.load(entity, record.id) == record
    assert await store.load(entity, "another") is None


async def test_last_snapshot_counts(store: Store) -> None:
    await store.commit(batch(task(state=TaskState.PENDING)))
    await store.commit(batch(task(state=TaskState.QUEUED, previous_state="pending")))
    assert await store.load(Entity.TASK, "w/t") == task(state=TaskState.QUEUED, previous_state="pending")


async def test_new_store_is_empty(store: Store) -> None:
    assert await store.last_sequence() == 0
    assert await store.page(Entity.TASK) == []
    assert await store.trail() == []


async def test_pages_go_in_the_order_of_ids(store: Store) -> None:
    records = [task(f"w/{number:03}") for number in range(25)]
    await store.commit(batch(*reversed(records)))
    seen: list[Record] = []
    while found := await store.page(Entity.TASK, after=seen[-1].id if seen else "", limit=10):
        seen += found
    assert seen == records


async def test_page_can_be_of_some_states_and_of_one_workstream(store: Store) -> None:
    mine = [task("w/a", TaskState.RUNNING), task("w/b", TaskState.PENDING), task("w/c", TaskState.COMPLETED)]
    await store.commit(batch(*mine, task("x/a", TaskState.RUNNING), workstream("w", WorkstreamState.EXECUTING)))
    assert await store.page(Entity.TASK, states=["running", "pending"], workstream_id="w") == mine[:2]
    assert await store.page(Entity.TASK, states=[]) == []
    assert await store.page(Entity.WORKSTREAM, states=["executing"]) == [workstream("w", WorkstreamState.EXECUTING)]


async def test_history_is_one_records_and_the_trail_everybodys(store: Store) -> None:
    moves = [
        move(1, "w/a"),
        move(
            2,
            "w/b",
            metadata={"n": [1, None]},
            reason="because",
            who="ada",
            worker_id="w1",
            attempt=2,
            correlation_id="c",
        ),
        move(3, "w/a", from_state="pending", to_state="queued", trigger="scheduler_assigned"),
        move(4, "w", entity=Entity.WORKSTREAM, to_state="planned", trigger="submitted"),
    ]
    await store.commit(batch(*moves))
    assert await store.history(Entity.TASK, "w/a") == [moves[0], moves[2]]
    assert await store.history(Entity.TASK, "w/a", after=1) == [moves[2]]
    assert await store.history(Entity.TASK, "w") == []
    assert await store.trail(after=1, limit=2) == moves[1:3]
    assert [each async for each in store.follow(after=2)] == moves[2:]
    assert await store.last_sequence() == 4


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, [4, 3, 2, 1]),
        ({"task_id": "w/a"}, [2, 1]),
        ({"workstream_id": "x"}, [4]),
        ({"worker_id": "w1"}, [3, 1]),
        ({"correlation_id": "c"}, [3]),
        ({"success": False}, [2]),
        ({"since": 200, "until": 400}, [3, 2]),
        ({"worker_id": "w1", "success": True, "since": 150}, [3]),
        ({"limit": 2}, [4, 3]),
    ],
)
async def test_attempts_are_found_newest_first(store: Store, query: dict[str, Any], numbers: list[int]) -> None:
    await store.commit(
        batch(
            attempt(1, "w/a", worker_id="w1"),
            attempt(2, "w/a", success=False, outcome="failed", error="boom", exit_code=1),
            attempt(3, "w/b", worker_id="w1", correlation_id="c"),
            attempt(4, "x/a", output_bytes=7, cause="crash"),
        )
    )
    assert [each.attempt for each in await store.attempts(AttemptQuery(**query))] == numbers


async def test_attempt_is_read_back_as_it_was_written(store: Store) -> None:
    written = attempt(2, success=False, outcome="failed", error="boom", exit_code=1, output_bytes=7, cause="crash")
    await store.commit(batch(written))
    assert await store.attempts(AttemptQuery()) == [written]
    assert written.duration_us == 50


async def test_results_of_checks_are_read_back_in_order(store: Store) -> None:
    results = [result(0), result(1, passed=False, detail="no such file"), result(0, attempt=2)]
    await store.commit(batch(*reversed(results), result(0, "w/other")))
    assert await store.checks("w/t") == results
    assert await store.checks("w/none") == []


async def test_answer_is_given_again_until_its_time_is_over(store: Store) -> None:
    await store.commit(batch(answer("r-1", expires_at=100), answer("r-2", expires_at=200)))
    assert await store.answer_to("r-1", now=99) == answer("r-1", expires_at=100)
    assert await store.answer_to("r-1", now=100) is None
    assert await store.answer_to("r-3", now=0) is None
    assert await store.forget_answers(now=150) == 1
    assert await store.answer_to("r-2", now=150) == answer("r-2", expires_at=200)


async def test_removed_workstream_leaves_nothing_and_others_alone(store: Store) -> None:
    for name in ("w", "x"):
        await store.commit(
            batch(
                workstream(name),
                task(f"{name}/t"),
                attempt(1, f"{name}/t"),
                result(0, f"{name}/t"),
                move(1 if name == "w" else 3, f"{name}/t"),
                move(2 if name == "w" else 4, name, entity=Entity.WORKSTREAM),
            )
        )
    assert not await store.remove_workstream(workstream("w", name="changed meanwhile"))
    assert await store.remove_workstream(workstream("w"))
    assert not await store.remove_workstream(workstream("w"))
    assert await store.load(Entity.WORKSTREAM, "w") is None
    assert [record.id for record in await store.page(Entity.TASK)] == ["x/t"]
    assert [each.sequence for each in await store.trail()] == [3, 4]
    assert [each.task_id for each in await store.attempts(AttemptQuery())] == ["x/t"]
    assert (await store.checks("w/t"), len(await store.checks("x/t"))) == ([], 1)
    await store.remove_workstream(workstream("x"))
    assert (await store.trail(), await store.last_sequence()) == ([], 4)  # a sequence is never given twice


async def test_batch_that_is_tried_again_says_the_same(store: Store) -> None:
    tried = batch(task(), move(1), attempt(1), result(0), answer())
    await store.commit(tried)
    await store.commit(tried)
    assert (len(await store.trail()), len(await store.attempts(AttemptQuery())), len(await store.checks("w/t"))) == (
        1,
        1,
        1,
    )
