"""The store: what is never lost once a commit has returned.

A commit is whole or not at all. Reading never blocks it. What cannot be decoded raises `DamagedRow`.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, Self

import msgspec

from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import Entity
from understudy.actors.records import Attempt, CheckResult, Record, StoredAnswer, Transition, WorkstreamRecord


class Batch(msgspec.Struct, frozen=True):
    """What lands in one commit. Of a record that changed several times there is one snapshot, the last."""

    transitions: list[Transition] = msgspec.field(default_factory=list[Transition])
    snapshots: dict[tuple[Entity, str], Record] = msgspec.field(default_factory=dict[tuple[Entity, str], Record])
    attempts: list[Attempt] = msgspec.field(default_factory=list[Attempt])
    checks: list[CheckResult] = msgspec.field(default_factory=list[CheckResult])
    answers: list[StoredAnswer] = msgspec.field(default_factory=list[StoredAnswer])

    def __bool__(self) -> bool:
        return bool(self.transitions or self.snapshots or self.attempts or self.checks or self.answers)


class AttemptQuery(msgspec.Struct, frozen=True):
    """Which attempts: by any of these together, newest first."""

    task_id: str | None = None
    workstream_id: str | None = None
    worker_id: str | None = None
    correlation_id: str | None = None
    success: bool | None = None
    since: int | None = None
    until: int | None = None
    limit: int = 100


class Store(Protocol):
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...

    async def commit(self, batch: Batch) -> None:
        """Make a batch durable. Raises `StoreUnavailable` when it did not land and may be tried again as it is.

        The same batch may land twice, and says the same: who tried it may not know that it had landed.
        """
        ...

    async def last_sequence(self) -> int:
        """The sequence of the newest transition that ever was, 0 when there was none."""
        ...

    async def load(self, entity: Entity, record_id: str) -> Record | None: ...

    async def page(
        self,
        entity: Entity,
        *,
        states: Sequence[str] | None = None,
        workstream_id: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Record]:
        """Records in the order of their ids, those after `after`."""
        ...

    async def history(self, entity: Entity, record_id: str, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        """A record's moves in order, those with a sequence after `after`."""
        ...

    async def trail(self, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
        """Everybody's moves in order, those with a sequence after `after`."""
        ...

    async def attempts(self, query: AttemptQuery) -> list[Attempt]: ...

    async def checks(self, task_id: str) -> list[CheckResult]:
        """The results of a task's checks, oldest first."""
        ...

    async def answer_to(self, request_id: str, now: int) -> StoredAnswer | None:
        """The answer stored for a request, unless its time is over."""
        ...

    async def forget_answers(self, now: int) -> int:
        """Drop answers whose time is over. Answers how many."""
        ...

    async def remove_workstream(self, workstream: WorkstreamRecord) -> bool:
        """Drop a workstream that was archived, with its tasks, moves and results. Not if it has changed since."""
        ...

    def follow(self, *, after: int = 0) -> AsyncIterator[Transition]:
        """All moves after a sequence, page by page, up to the newest."""
        ...


class StoreError(UnderstudyError):
    """Every error of a store."""


class StoreUnavailable(StoreError):
    """A commit did not land: the disk is full, the file is locked, a write failed. Try the same batch again."""

    def __init__(self, why: str, kind: str) -> None:
        super().__init__(why)
        self.kind = kind  # full, locked or failed


class StoreRefused(StoreError):
    """The store cannot be opened here and now. The message says why, and what to do."""


class DamagedRow(StoreError):
    """A row does not say what was written. Nothing is deleted: restore a copy, or look with `understudy check`."""

    def __init__(self, table: str, key: Any, why: str) -> None:
        super().__init__(f"{table} {key} is damaged: {why}; restore a copy of the database")
        self.table = table
        self.key = key
