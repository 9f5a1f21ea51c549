"""A database with a life in it: a workstream whose first task failed once, was retried and completed, and a second that waits."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tests.contract.stores.samples import attempt, breaker, result, task, worker, workstream
from understudy.actors.journal import Book
from understudy.actors.lifecycle import BreakerState, Entity, TaskState, WorkerState, WorkstreamState
from understudy.actors.records import Record
from understudy.adapters.stores.sqlite import SqliteStore

DAY_US = 86_400_000_000
LONG_AGO_US = 20_000 * DAY_US  # in October 2024


def ask(path: Path, statement: str, *values: Any) -> list[Any]:
    """Run a statement past the store, as a careless hand with a tool would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


class Story:
    """Writes moves into a book, one after the other, a second apart."""

    def __init__(self) -> None:
        self.now = LONG_AGO_US
        self.book = Book(0, lambda: self.now)
        self.records: dict[tuple[Entity, str], Record] = {}

    def tell(self, entity: Entity, record: Record, trigger: str, **said: Any) -> None:
        self.now += 1_000_000
        before = self.records.get((entity, record.id))
        previous = None if before is None else before.state.value
        after = msgspec.structs.replace(record, updated_at=self.now, previous_state=previous)
        self.book.move(entity, before, after, trigger, **said)
        self.records[entity, record.id] = after


def tell_story() -> Story:
    story = Story()
    stream = workstream("WS-001", definition={"tasks": []})
    one, two = task("WS-001/s1", max_retries=4), task("WS-001/s2", depends_on=("s1",))
    for state, trigger in (
        ("planned", "submitted"),
        ("ready", "all_tasks_created"),
        ("executing", "first_task_started"),
    ):
        story.tell(Entity.WORKSTREAM, msgspec.structs.replace(stream, state=WorkstreamState(state)), trigger)
    story.tell(Entity.TASK, two, "created")
    for number, (state, trigger) in enumerate(
        [
            ("pending", "created"),
            ("queued", "scheduler_assigned"),
            ("running", "worker_started"),
            ("errored", "execution_failed"),
            ("retrying", "retry_scheduled"),
            ("queued", "retry_delay_elapsed"),
            ("running", "worker_started"),
            ("validating", "execution_completed"),
            ("completed", "validation_passed"),
        ]
    ):
        holder = "worker-1" if state == "running" else None
        retries = 1 if number >= 4 else 0
        record = msgspec.structs.replace(one, state=TaskState(state), worker_id=holder, retry_count=retries)
        story.tell(Entity.TASK, record, trigger, reason=f"because {number}", metadata={"number": number})
    for state, trigger in (("initializing", "spawned"), ("idle", "registration_complete"), ("busy", "task_assigned")):
        hand = msgspec.structs.replace(worker(), state=WorkerState(state), has_run=state == "busy")
        story.tell(Entity.WORKER, hand, trigger)
    for breaker_state, trigger in (("closed", "created"), ("open", "failure_threshold_exceeded")):
        story.tell(Entity.BREAKER, msgspec.structs.replace(breaker(), state=BreakerState(breaker_state)), trigger)
    story.book.add_attempt(attempt(1, "WS-001/s1", success=False, outcome="failed", worker_id="worker-1"))
    story.book.add_check(result(0, "WS-001/s1", passed=False, detail="no such file"))
    story.book.add_attempt(attempt(2, "WS-001/s1", worker_id="worker-1", correlation_id="c-1"))
    return story


async def write_story(path: Path, story: Story | None = None) -> Story:
    story = story or tell_story()
    taken = story.book.take()
    async with SqliteStore(path) as store:
        if taken is not None:
            await store.commit(taken[0])
    return story
