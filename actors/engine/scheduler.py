"""Matches queued tasks with workers: by what they need, by priority, and fairly between workstreams.

A lane whose breaker is open is held: its tasks wait and spend no attempts. Slots that a workstream has reserved are
left to it.
"""

from typing import Any, assert_never

import msgspec

from understudy.actors.engine import messages as m
from understudy.actors.engine import remedies
from understudy.actors.engine.explaining import Explanation
from understudy.actors.engine.house import House
from understudy.actors.engine.lanes import Key, Lane, Lanes, WorkerClass
from understudy.actors.kernel import Actor
from understudy.actors.lifecycle import TaskState


class _Return(msgspec.Struct, frozen=True):
    """A task that was held comes back, after its jitter."""

    entry: m.Enqueue


class Reservation:
    """Slots that a workstream has to itself, once it has been given them."""

    __slots__ = ("granted", "queued", "running", "slots")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.granted = False
        self.queued = 0  # its tasks that wait
        self.running = 0

    @property
    def unused(self) -> int:
        return max(self.slots - self.running, 0) if self.granted else 0


class SchedulerState:
    """What the scheduler is rebuilt from."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.lanes = Lanes()
        self.held: dict[str, int] = {}  # breakers that are not closed, with the probes that may pass
        self.reservations: dict[str, Reservation] = {}
        self.returning: dict[str, m.Enqueue] = {}  # tasks that were held and come back, each at its own moment
        self.stopping = False
        self.has_lived = False


class Scheduler(Actor[Any]):
    """Its mailbox is bounded by the tasks that are actors, each of which has at most a few messages under way."""

    __slots__ = ("_house", "_lanes", "_state")

    mailbox_capacity = 10_000_000

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._house = state.house
        self._lanes = state.lanes

    def started(self) -> None:
        """In a new life: what was to come back comes now, and workers say again what they have free."""
        if not self._state.has_lived:
            self._state.has_lived = True
            return
        returning, self._state.returning = self._state.returning, {}
        for entry in returning.values():
            self.context.tell(_Return(entry))
        for worker in self._house.workers.values():
            worker.tell(m.Recheck())

    def receive(self, message: Any) -> None:
        match message:
            case m.Enqueue():
                self._enqueue(message)
            case m.Freed():
                self._free(message)
            case m.Withdraw():
                self._withdraw(message)
            case m.Joined():
                of = self._lanes.join(message)
                if self._grant():
                    self._fill_all()
                else:
                    self._fill_class(of)
            case m.Left():
                self._lanes.leave(message.worker_id)
            case m.HoldLane():
                self._state.held[message.breaker] = 0
            case m.ProbeLane():
                self._probe(message.breaker)
            case m.OpenLane():
                self._open(message.breaker)
            case _Return(entry):
                self._state.returning.pop(entry.task_id, None)
                if self._lanes.entries.get(entry.task_id) is entry:
                    self._lanes.remove(entry.task_id)
                    self._put(entry)
            case m.Reserve():
                self._state.reservations.setdefault(message.workstream_id, Reservation(message.slots))
                self._grant()
            case m.Unreserve():
                self._state.reservations.pop(message.workstream_id, None)
                self._grant()
                self._fill_all()
            case m.WhyQueued():
                message.reply.send(self._explain(message.task_id))
            case m.StopAssigning():
                self._state.stopping = True
            case _:
                assert_never(message)

    def _enqueue(self, entry: m.Enqueue) -> None:
        reservation = self._state.reservations.get(entry.workstream_id)
        if reservation is not None and entry.task_id not in self._lanes.entries:
            reservation.queued += 1
        self._put(entry)

    def _put(self, entry: m.Enqueue) -> None:
        self._fill_lane(self._lanes.put(entry))
        if entry.breaker in self._state.held and entry.task_id in self._lanes.entries:
            self._house.breakers[entry.breaker].tell(m.Knocking())

    def _withdraw(self, message: m.Withdraw) -> None:
        entry = self._lanes.remove(message.task_id)
        reservation = None if entry is None else self._state.reservations.get(entry.workstream_id)
        if reservation is not None:
            reservation.queued -= 1
        if entry is not None and entry.breaker is not None and self._state.held.get(entry.breaker):
            self._probe(entry.breaker)
        message.task.tell(m.Withdrawn())

    def _probe(self, breaker: str) -> None:
        """Let the next task of a held tool pass, as soon as there is a worker; say so where there is no such task."""
        self._state.held[breaker] = 1
        lanes = [lane for lane in self._lanes.guarded_by(breaker) if self._lanes.head(lane) is not None]
        for lane in lanes:
            self._fill_lane(lane)
        if not lanes:
            self._state.held[breaker] = 0
            self._house.breakers[breaker].tell(m.NoProbe())

    def _fill_lane(self, lane: Lane) -> None:
        """Give tasks of one lane to whoever is free."""
        for of in lane.classes:
            while of.free and (found := self._next(lane)) is not None:
                self._assign(lane, found, of)

    def _fill_class(self, of: WorkerClass) -> None:
        """Give the workers of one class what comes next in any of its lanes."""
        while of.free:
            best: tuple[Key, m.Enqueue, Lane] | None = None
            for lane in of.lanes:
                key = self._lanes.head(lane)
                if key is None or (best is not None and best[0] < key):
                    continue
                found = self._next(lane)
                if found is not None and (best is None or found[0] < best[0]):
                    best = *found, lane
            if best is None:
                return
            self._assign(best[2], best[:2], of)

    def _fill_all(self) -> None:
        for of in self._lanes.classes():
            self._fill_class(of)

    def _next(self, lane: Lane) -> tuple[Key, m.Enqueue] | None:
        """The task of a lane that starts next, where one may start now."""
        if self._state.stopping or self._lanes.head(lane) is None:
            return None
        first = lane.heap[0]
        if lane.breaker is not None and not first[1].is_probe and self._state.held.get(lane.breaker, 1) < 1:
            return None
        if self._has_slot(first[1]):
            return first
        reservations = self._state.reservations
        is_alone = first[1].workstream_id in reservations  # then the slots that it waits for are no matter to others
        if not is_alone and not any(each.granted and each.queued for each in reservations.values()):
            return None
        waiting = self._lanes.entries  # the first one finds no slot, maybe one behind it does
        free = (each for each in lane.heap if waiting.get(each[1].task_id) is each[1] and self._has_slot(each[1]))
        return min(free, default=None, key=lambda each: each[0])

    def _has_slot(self, entry: m.Enqueue) -> bool:
        """Whether reservations leave a task a slot."""
        if not self._state.reservations:
            return True
        own = self._state.reservations.get(entry.workstream_id)
        if own is not None:
            return own.granted and (own.unused > 0 or self._unreserved() > 0)
        return self._unreserved() > 0

    def _unreserved(self) -> int:
        return self._lanes.free - sum(each.unused for each in self._state.reservations.values())

    def _assign(self, lane: Lane, found: tuple[Key, m.Enqueue], of: WorkerClass) -> None:
        entry = found[1]
        if lane.heap[0][1] is entry:
            self._lanes.take(lane)
        else:
            self._lanes.remove(entry.task_id)
        slots = self._lanes.occupy(of)
        if lane.breaker is not None and lane.breaker in self._state.held and not entry.is_probe:
            self._state.held[lane.breaker] = 0
            self._house.breakers[lane.breaker].tell(m.Probing(entry.task_id))
        reservation = self._state.reservations.get(entry.workstream_id)
        if reservation is not None:
            reservation.running += 1
            reservation.queued -= 1
        entry.task.tell(m.Assigned(slots.join.worker_id, slots.join.worker))

    def _free(self, message: m.Freed) -> None:
        reservation = self._state.reservations.get(message.workstream_id)
        if reservation is not None:
            reservation.running -= 1
        of = self._lanes.release(message.worker_id)
        if self._state.reservations and self._grant():
            self._fill_all()
        elif of is not None:
            self._fill_class(of)

    def _open(self, breaker: str) -> None:
        """Let held tasks go, each at a moment of its own: a tool that has just come back is not to be run over."""
        if self._state.held.pop(breaker, None) is None:
            return
        spread_s = self._house.limits.release_spread_s
        for lane in self._lanes.guarded_by(breaker):
            for entry in self._lanes.drain(lane):
                self._lanes.entries[entry.task_id] = entry  # it still waits, and can be withdrawn
                self._state.returning[entry.task_id] = entry
                self.context.after(self.context.entropy.random() * spread_s, _Return(entry))

    def _grant(self) -> bool:
        """Give reservations, in the order in which they were asked for, as long as there are slots for them.

        Answers whether one was given: its tasks may start now.
        """
        before = sum(each.granted for each in self._state.reservations.values())
        taken = sum(each.slots for each in self._state.reservations.values() if each.granted)
        capacity = sum(each.join.slots for each in self._lanes.workers.values())
        for each in self._state.reservations.values():
            if not each.granted:
                if taken + each.slots > capacity:
                    break
                each.granted = True
                taken += each.slots
        return sum(each.granted for each in self._state.reservations.values()) > before

    def _explain(self, task_id: str) -> Explanation:
        entry = self._lanes.entries.get(task_id)
        breaker = None if entry is None or entry.breaker not in self._state.held else entry.breaker
        helps = remedies.for_task(task_id, TaskState.QUEUED, breaker=breaker)
        return Explanation(task_id, TaskState.QUEUED, self._why(task_id), remedies=helps)

    def _why(self, task_id: str) -> str:
        """What a queued task waits for."""
        entry = self._lanes.entries.get(task_id)
        if entry is None:
            return "a worker has just been given to it"
        if entry.breaker in self._state.held:
            return f"the breaker of {entry.breaker} is not closed"
        reservation = self._state.reservations.get(entry.workstream_id)
        if reservation is not None and not reservation.granted:
            return f"its workstream waits for {reservation.slots} reserved slots"
        workers = [each.join for each in self._lanes.workers.values()]
        able = [each for each in workers if each.kind in entry.kinds and entry.needs <= each.capabilities]
        if not able:
            kinds = " or ".join(sorted(entry.kinds))
            needs = f" that offers {', '.join(sorted(entry.needs))}" if entry.needs else ""
            return f"no {kinds} worker{needs} takes tasks: start or resume one"
        slots = sum(each.slots for each in able)
        return f"all {slots} slots that could run it are taken; {len(self._lanes.entries)} tasks wait"
