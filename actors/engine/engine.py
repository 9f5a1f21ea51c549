"""The engine as a whole: its actors brought up, everything live claimed from the store, and an order to stop in."""

from collections.abc import Sequence
from typing import Any

import msgspec

from understudy.actors.definition import BreakerPolicy, WorkerDefinition, Workstream
from understudy.actors.engine import messages as m
from understudy.actors.engine.breaker import Breaker, BreakerSeat
from understudy.actors.engine.house import House
from understudy.actors.engine.reading import read_all, read_workstream, seat_of
from understudy.actors.engine.reception import Reception, Wish, open_workstream
from understudy.actors.engine.requests import Request
from understudy.actors.engine.scheduler import Scheduler, SchedulerState
from understudy.actors.engine.supervisor import Supervisor, SupervisorState
from understudy.actors.engine.worker_seat import WorkerSeat
from understudy.actors.journal import Journal
from understudy.actors.kernel import Kernel, Promise
from understudy.actors.lifecycle import TASK, WORKSTREAM, BreakerState, Entity, TaskState, Trait, WorkerState
from understudy.actors.records import BreakerRecord, TaskRecord, WorkerRecord, WorkstreamRecord

ROOM = 100  # tasks of a workstream that may wait in the queue beyond those that can run
_LIVE = tuple(sorted(set(WORKSTREAM.states) - WORKSTREAM.having(Trait.TERMINAL)))


class Recovery(msgspec.Struct, frozen=True):
    """What was found unfinished, and goes on."""

    workstreams: int = 0
    tasks: int = 0  # that had not ended
    run_again: int = 0  # of these, attempts that were cut off: each is run again as a new attempt
    waiting: int = 0  # for a retry or for their tool
    breakers: int = 0  # that are not closed
    damaged: tuple[str, ...] = ()  # what could not be read

    def __str__(self) -> str:
        if not self.workstreams:
            return "Nothing to recover"
        again = f"; {self.run_again} run again (crash)" if self.run_again else ""
        return f"Recovered {self.tasks} tasks of {self.workstreams} workstreams{again}"


class Engine:
    """Spawns the actors of a house in a kernel. `recover` then brings back what the store holds."""

    def __init__(self, kernel: Kernel, house: House) -> None:
        self._kernel = kernel
        self.house = house
        self._seats: list[WorkerSeat] = []
        kernel.spawn(Journal, (house.book, house.store), name="journal")
        house.scheduler = kernel.spawn(Scheduler, SchedulerState(house), name="scheduler")
        house.reception = kernel.spawn(Reception, house, name="reception")

    async def recover(self, workers: Sequence[WorkerDefinition]) -> Recovery:
        """Claim everything live and let it go on; then start the workers."""
        before = {record.id: record async for record in read_all(self.house.store, Entity.WORKER)}
        breakers = await self._recover_breakers()
        counted = await self._recover_workstreams()
        self._seats = seats = self._make_seats(workers, before)
        slots = sum(seat.definition.max_concurrent_tasks for seat in seats)
        self.house.room = min(slots + ROOM, self.house.limits.active_tasks)
        self.house.supervisor = self._kernel.spawn(Supervisor, SupervisorState(self.house, seats), name="supervisor")
        return msgspec.structs.replace(counted, breakers=breakers)

    def _make_seats(self, workers: Sequence[WorkerDefinition], before: dict[str, Any]) -> list[WorkerSeat]:
        seats: list[WorkerSeat] = []
        for definition in workers:
            for number in range(1, definition.count + 1):
                worker_id = definition.id if definition.count == 1 else f"{definition.id}-{number}"
                record = before.pop(worker_id, None)
                seats.append(WorkerSeat(self.house, worker_id, definition, record))
        for record in before.values():
            if isinstance(record, WorkerRecord) and record.state not in _ENDED_WORKERS:
                now = self.house.book.now_us()
                ended = msgspec.structs.replace(
                    record, state=WorkerState.TERMINATED, previous_state=record.state.value, updated_at=now, task_ids=()
                )
                self.house.book.move(Entity.WORKER, record, ended, "terminate", reason="its runtime has ended")
        return seats

    async def _recover_breakers(self) -> int:
        found = 0
        async for record in read_all(self.house.store, Entity.BREAKER):
            if isinstance(record, BreakerRecord):
                seat = BreakerSeat(self.house, record.id, BreakerPolicy(), record)
                self.house.breakers[record.id] = self.house.spawn(Breaker, seat, f"breaker {record.id}")
                found += record.state is not BreakerState.CLOSED
        return found

    async def _recover_workstreams(self) -> Recovery:
        house = self.house
        counted = Recovery()
        async for record in read_all(house.store, Entity.WORKSTREAM, states=_LIVE):
            found = await read_workstream(house.store, record.id)
            if found is not None and record.id not in house.workstreams:
                stream, tasks = found
                claimed = msgspec.structs.replace(stream, owner=house.owner)
                house.book.put(Entity.WORKSTREAM, claimed)
                open_workstream(house, seat_of(house, claimed, tasks))
                counted = _count(counted, claimed, tasks)
        return counted

    def ask(
        self,
        request: Request,
        definition: Workstream | None = None,
        parent_id: str | None = None,
        depth: int = 0,
    ) -> Promise[Any]:
        """Hand in a request. Raises `MailboxFull` where too many wait."""
        return self.house.reception.ask(
            lambda reply: Wish(request, reply.send, reply.fail, definition, parent_id, depth),
            urgent=definition is None,  # what operators want overtakes what waits to be taken in
        )

    async def close_workplaces(self) -> None:
        """When the actors have ended: nothing that they started may stay."""
        for seat in self._seats:
            if seat.workplace is not None:
                await seat.workplace.close()

    def kill_workplaces(self) -> None:
        """End everything that runs, without waiting for it."""
        for seat in self._seats:
            if seat.workplace is not None:
                seat.workplace.kill()

    def stop_assigning(self) -> None:
        """No new attempts begin; those under way may end."""
        self.house.scheduler.tell(m.StopAssigning())


def _count(counted: Recovery, record: WorkstreamRecord, tasks: list[TaskRecord]) -> Recovery:
    live = [task for task in tasks if not TASK.is_terminal(task.state)]
    again = sum(task.state is TaskState.RUNNING for task in live)
    waiting = sum(task.state in _WAITING for task in live)
    return Recovery(
        counted.workstreams + 1, counted.tasks + len(live), counted.run_again + again, counted.waiting + waiting
    )


_WAITING = frozenset({TaskState.RETRYING, TaskState.CIRCUIT_OPEN, TaskState.HALF_OPEN})
_ENDED_WORKERS = frozenset({WorkerState.SHUTDOWN, WorkerState.FAILED, WorkerState.TERMINATED})
