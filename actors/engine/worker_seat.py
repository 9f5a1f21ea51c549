"""A worker's record, how it is changed, what runs there, and what else a worker is rebuilt from."""

from typing import Any

from msgspec.structs import replace

from understudy.actors.definition import WorkerDefinition
from understudy.actors.engine import messages as m
from understudy.actors.engine.house import House
from understudy.actors.engine.requests import Answer, Request
from understudy.actors.errors import InternalError
from understudy.actors.kernel import Outcome, Ref, Succeeded, Work
from understudy.actors.lifecycle import Entity, WorkerState
from understudy.actors.ports.workplace import Order, Report, Workplace
from understudy.actors.records import Attempt, WorkerRecord

S = WorkerState
TAKES_TASKS = frozenset({S.IDLE, S.BUSY})


class Running:
    """One attempt at a worker."""

    __slots__ = ("left_to_itself", "order", "task", "unwanted", "work")

    def __init__(self, order: Order, task: Ref[Any]) -> None:
        self.order = order
        self.task = task
        self.work: Work | None = None  # None until it may begin
        self.unwanted: str | None = None  # why nobody waits for it
        self.left_to_itself = False  # its slot has been given to others


class WorkerSeat:
    """What a worker is rebuilt from."""

    __slots__ = ("definition", "drains", "house", "id", "occupied", "record", "running", "workplace")

    def __init__(self, house: House, worker_id: str, definition: WorkerDefinition, record: WorkerRecord | None) -> None:
        self.house = house
        self.id = worker_id
        self.definition = definition
        self.record = record
        self.workplace: Workplace | None = None
        self.running: dict[str, Running] = {}  # by token
        self.occupied = 0  # slots
        self.drains: list[tuple[Request, Answer]] = []  # it is to end when nothing runs here any more, and who asked

    @property
    def current(self) -> WorkerRecord:
        """Its record, which it has from its start on."""
        if self.record is None:
            raise InternalError(f"worker {self.id} has not begun")
        return self.record

    def note_late(self, running: Running, outcome: Outcome[Report]) -> None:
        """A result that nobody wants any more."""
        if not isinstance(outcome, Succeeded):
            return
        order, report, now = running.order, outcome.value, self.house.book.now_us()
        self.house.book.add_attempt(
            Attempt(
                order.task_id,
                order.generation,
                order.attempt,
                order.workstream_id,
                order.deadline_at - int(order.timeout_s * 1e6),
                now,
                False,
                "late",
                self.id,
                order.correlation_id,
                report.exit_code,
                report.error or f"ignored: {running.unwanted}",
                report.output_bytes,
            )
        )
        self.house.note(
            "late result ignored",
            workstream=order.workstream_id,
            task=order.key,
            attempt=order.attempt,
            worker=self.id,
            why=running.unwanted,
        )

    def note_tasks(self) -> None:
        """What runs here changes all the time: it is written down once for each commit."""
        self.house.book.put_late(Entity.WORKER, self.id, self._with_tasks)

    def _with_tasks(self) -> WorkerRecord:
        record = self.current
        if record.state in TAKES_TASKS or record.state is S.PAUSED:
            ids = tuple(each.order.task_id for each in self.running.values() if each.unwanted is None)
            self.record = record = replace(record, task_ids=ids, updated_at=self.house.book.now_us())
        return record

    def move(
        self, state: WorkerState, trigger: str, *, reason: str | None = None, who: str | None = None, **changes: Any
    ) -> None:
        before = self.current
        after = replace(
            before, state=state, previous_state=before.state._value_, updated_at=self.house.book.now_us(), **changes
        )
        self.house.book.move(Entity.WORKER, before, after, trigger, reason=reason, who=who, worker_id=self.id)
        self.record = after

    def lost(self, running: Running, why: str, counted: bool) -> m.WorkerLost:
        order = running.order
        return m.WorkerLost(order.generation, order.attempt, f"worker {self.id} {why}", counted)
