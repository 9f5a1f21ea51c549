"""Commit before effect: what happened is gathered, committed in batches back to back, and only then released.

Actors write into the `Book` in their own turns. The `Journal` commits what has gathered while the last batch was
landing, and then calls back those who waited for it. A batch that does not land is tried again as it is, with intake
closed, until it does: the actors are ahead of the store, and nothing they did may be seen before it is durable.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from understudy.actors.kernel import Actor, Cancelled, Failed, Outcome, Succeeded
from understudy.actors.lifecycle import MACHINES, START, Entity, InvalidTransition
from understudy.actors.ports.store import Batch, Store, StoreUnavailable
from understudy.actors.records import Attempt, CheckResult, Record, StoredAnswer, Transition

RETRY_S: Final = 0.25  # between two tries at a batch that did not land
BATCH_MOVES_MAX: Final = 1_000  # one lands while what the last one released is being worked on: not too much at once
PENDING_MAX: Final = 50_000  # moves that may gather behind a slow disk before intake closes

Callback = Callable[[], None]


class Book:
    """What has happened and is not committed yet. It outlives a crash of the journal that empties it."""

    def __init__(self, last_sequence: int, wall_us: Callable[[], int]) -> None:
        self.sequence = last_sequence
        self.refused = 0  # illegal moves that were asked for
        self.trouble: StoreUnavailable | None = None
        self.landing: tuple[Batch, list[Callback]] | None = None
        self.notify: Callback | None = None
        self.published: Callable[[Batch], None] | None = None  # told of every batch that has landed
        self._wall_us = wall_us
        self._newest_us = 0
        self._batch = Batch()
        self._late: dict[tuple[Entity, str], Callable[[], Record]] = {}
        self._callbacks: list[Callback] = []
        self._sealed: deque[tuple[Batch, list[Callback]]] = deque()  # full batches, the oldest first

    @property
    def closed_because(self) -> str | None:
        """Why no new work may be taken in, while that is so."""
        if self.trouble is not None:
            return str(self.trouble)
        pending = len(self._sealed) * BATCH_MOVES_MAX + len(self._batch.transitions)
        if pending >= PENDING_MAX:
            return f"the disk is slow: {pending} moves wait to be stored"
        return None

    def now_us(self) -> int:
        """The time of day. It never goes back, although the wall clock may."""
        now = self._wall_us()
        if now > self._newest_us:
            self._newest_us = now
        return self._newest_us

    def move(
        self,
        entity: Entity,
        before: Record | None,
        after: Record,
        trigger: str,
        *,
        reason: str | None = None,
        who: str | None = None,
        worker_id: str | None = None,
        attempt: int | None = None,
        correlation_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Transition:
        """Write down a move and the record as it is now. An illegal one raises, and changes nothing."""
        is_first = before is None or (after.generation != before.generation and _is_reborn(before, after, entity))
        source = START if is_first else before.state._value_  # type: ignore[union-attr]  # the first is never before
        try:
            legal = MACHINES[entity].check(after.id, source, trigger, after.state)
        except InvalidTransition:
            self.refused += 1
            raise
        self.sequence += 1
        newest = self._newest_us
        transition = Transition(
            self.sequence,
            entity,
            after.id,
            after.generation,
            source,
            after.state._value_,
            str(trigger),
            newest if after.updated_at == newest else self.now_us(),  # as a rule the record was made just now
            legal.severity,
            after.id if entity is Entity.WORKSTREAM else getattr(after, "workstream_id", None),
            reason,
            who,
            worker_id,
            attempt,
            correlation_id,
            metadata,
        )
        batch = self._batch
        batch.transitions.append(transition)
        batch.snapshots[entity, after.id] = after
        if self.notify is not None:
            self._wake()
        return transition

    def put(self, entity: Entity, record: Record) -> None:
        """Write down how a record is now, where its state has not changed."""
        self._batch.snapshots[entity, record.id] = record
        self._wake()

    def put_late(self, entity: Entity, record_id: str, make: Callable[[], Record]) -> None:
        """Write down how a record is when the batch is closed: for what changes many times before that."""
        self._late[entity, record_id] = make
        self._wake()

    def add_attempt(self, attempt: Attempt) -> None:
        self._batch.attempts.append(attempt)
        self._wake()

    def add_check(self, result: CheckResult) -> None:
        self._batch.checks.append(result)
        self._wake()

    def add_answer(self, answer: StoredAnswer) -> None:
        self._batch.answers.append(answer)
        self._wake()

    def then(self, callback: Callback) -> None:
        """Call back when everything that has been written down so far is durable."""
        self._callbacks.append(callback)
        if len(self._batch.transitions) >= BATCH_MOVES_MAX:
            self._seal()
        self._wake()

    def take(self) -> tuple[Batch, list[Callback]] | None:
        """What is to land next: the batch that did not land, or what has gathered since."""
        if self.landing is None:
            if not self._sealed and (self._batch or self._late or self._callbacks):
                self._seal()
            if self._sealed:
                self.landing = self._sealed.popleft()
        return self.landing

    def _seal(self) -> None:
        for key, make in self._late.items():
            self._batch.snapshots[key] = make()
        self._late.clear()
        self._sealed.append((self._batch, self._callbacks))
        self._batch, self._callbacks = Batch(), []

    def landed(self, batch: Batch) -> list[Callback]:
        """A batch is durable. Answers who is to be called back: nobody if it had landed before."""
        if self.landing is None or self.landing[0] is not batch:
            return []
        _, callbacks = self.landing
        self.landing = self.trouble = None
        return callbacks

    def _wake(self) -> None:
        notify = self.notify
        if notify is not None:
            self.notify = None  # once is enough
            notify()


class _Flush(msgspec.Struct, frozen=True):
    """Something waits to be committed."""


class _Ended(msgspec.Struct, frozen=True):
    """A commit has ended, well or not."""

    batch: Batch
    outcome: Outcome[None]


class Journal(Actor["_Flush | _Ended"]):
    """Commits what the book holds, one batch at a time."""

    __slots__ = ("_book", "_committing", "_store")

    def __init__(self, parts: tuple[Book, Store]) -> None:
        self._book, self._store = parts
        self._committing = False

    def started(self) -> None:
        self._flush()

    def receive(self, message: "_Flush | _Ended") -> None:
        match message:
            case _Flush():
                self._flush()
            case _Ended(batch, outcome):
                self._committing = False
                self._end(batch, outcome)

    def stopped(self) -> None:
        self._book.notify = None

    def _end(self, batch: Batch, outcome: Outcome[None]) -> None:
        match outcome:
            case Succeeded():
                waiting = self._book.landed(batch)
                self._flush()
                if self._book.published is not None:
                    self._book.published(batch)
                _call_all(waiting)
            case Failed(StoreUnavailable() as trouble):
                self._book.trouble = trouble
                self.context.after(RETRY_S, _Flush())
            case Failed(error):
                self._book.trouble = StoreUnavailable(f"a commit failed: {error!r}", "failed")
                raise error  # a fault of ours: supervision restarts the journal, which tries the batch again
            case Cancelled():
                self._flush()

    def _wake(self) -> None:
        """Work of no time ends when all mail is done or the slice is over: what follows at once lands together."""
        self.context.start(_nothing, lambda _: _Flush())

    def _flush(self) -> None:
        """Commit what is next. With nothing to do, be woken by the next thing that happens."""
        if self._committing:
            return
        taken = self._book.take()
        if taken is None:
            self._book.notify = self._wake
            return
        batch, _ = taken
        self._committing = True
        self.context.start(lambda: self._store.commit(batch), lambda outcome: _Ended(batch, outcome))


async def _nothing() -> None:
    """Takes a turn of the loop."""


def _is_reborn(before: Record, after: Record, entity: Entity) -> bool:
    """A record that has ended begins its next generation; nothing else leads back to the start."""
    return after.generation == before.generation + 1 and MACHINES[entity].is_terminal(before.state)


def _call_all(callbacks: list[Callback]) -> None:
    """One that raises does not keep the others from hearing: it is raised when all have been called."""
    errors: list[BaseException] = []
    for callback in callbacks:
        try:
            callback()
        except BaseException as error:
            errors.append(error)
    if errors:
        raise errors[0]
