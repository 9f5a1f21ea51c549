"""A store that keeps everything in memory: for simulations, and to compare the real one with."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import AttemptQuery, Batch
from understudy.actors.records import (
    Attempt,
    CheckResult,
    Record,
    StoredAnswer,
    TaskRecord,
    Transition,
    WorkstreamRecord,
)


class MemoryStore:
    def __init__(self) -> None:
        self._records: dict[tuple[Entity, str], Record] = {}
        self._moves: dict[int, Transition] = {}
        self._tries: dict[tuple[Any, ...], Attempt] = {}
        self._results: dict[tuple[Any, ...], CheckResult] = {}
        self._newest = 0
        self._answers: dict[str, StoredAnswer] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def commit(self, batch: Batch) -> None:
        self._records |= batch.snapshots
        self._moves |= {each.sequence: each for each in batch.transitions}
        if batch.transitions:
            self._newest = max(self._newest, batch.transitions[-1].sequence)
        self._tries |= {(each.task_id, each.generation, each.attempt, each.outcome): each for each in batch.attempts}
        self._results |= {(each.task_id, each.generation, each.attempt, each.position): each for each in batch.checks}
        self._answers |= {answer.request_id: answer for answer in batch.answers}

    async def last_sequence(self) -> int:
        return self._newest

    async def load(self, entity: Entity, record_id: str) -> Record | None:
        return self._records.get((entity, record_id))

    async def page(
        self,
        entity: Entity,
        *,
        states: Sequence[str] | None = None,
        workstream_id: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Record]:
        ids = sorted(record_id for kind, record_id in self._records if kind == entity and record_id > after)
        found = (self._records[entity, record_id] for record_id in ids)
        fitting = [
            record
            for record in found
            if (states is None or record.state in states)
            and (workstream_id is None or (isinstance(record, TaskRecord) and record.workstream_id == workstream_id))
        ]
        return fitting[:limit]

    async def history(self, entity: Entity, record_id: str, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        found = [each for each in self._moves.values() if each.entity == entity and each.record_id == record_id]
        return [each for each in found if each.sequence > after][:limit]

    async def trail(self, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        return [each for each in self._moves.values() if each.sequence > after][:limit]

    async def attempts(self, query: AttemptQuery) -> list[Attempt]:
        wanted: dict[str, Any] = {
            name: getattr(query, name)
            for name in ("task_id", "workstream_id", "worker_id", "correlation_id", "success")
            if getattr(query, name) is not None
        }
        found = [
            attempt
            for attempt in self._tries.values()
            if all(getattr(attempt, name) == value for name, value in wanted.items())
            and (query.since is None or attempt.started_at >= query.since)
            and (query.until is None or attempt.started_at < query.until)
        ]
        newest_first = sorted(found, key=lambda each: (each.started_at, each.task_id, each.attempt), reverse=True)
        return newest_first[: query.limit]

    async def checks(self, task_id: str) -> list[CheckResult]:
        found = [each for each in self._results.values() if each.task_id == task_id]
        return sorted(found, key=lambda each: (each.generation, each.attempt, each.position))

    async def answer_to(self, request_id: str, now: int) -> StoredAnswer | None:
        answer = self._answers.get(request_id)
        return answer if answer is not None and answer.expires_at > now else None

    async def forget_answers(self, now: int) -> int:
        kept = {name: answer for name, answer in self._answers.items() if answer.expires_at > now}
        dropped = len(self._answers) - len(kept)
        self._answers = kept
        return dropped

    async def remove_workstream(self, workstream: WorkstreamRecord) -> bool:
        if self._records.get((Entity.WORKSTREAM, workstream.id)) != workstream:
            return False
        tasks = {
            record.id
            for record in self._records.values()
            if isinstance(record, TaskRecord) and record.workstream_id == workstream.id
        }
        gone = {(Entity.TASK, task_id) for task_id in tasks} | {(Entity.WORKSTREAM, workstream.id)}
        self._records = {key: record for key, record in self._records.items() if key not in gone}
        self._moves = {n: each for n, each in self._moves.items() if (each.entity, each.record_id) not in gone}
        self._tries = {key: each for key, each in self._tries.items() if each.workstream_id != workstream.id}
        self._results = {key: each for key, each in self._results.items() if key[0] not in {*tasks, workstream.id}}
        return True

    async def follow(self, *, after: int = 0) -> AsyncIterator[Transition]:
        for each in await self.trail(after=after, limit=len(self._moves)):
            yield each
