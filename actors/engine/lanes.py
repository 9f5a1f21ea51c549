"""Who is next: queued tasks in lanes, one for each set of needs, and workers in classes, one for each set of offers.

Pure state, owned by the scheduler. To put in and to take out is O(log n) in the tasks that wait, and a look at each
lane and class, of which there are few. Higher priority first; among equals the workstreams take turns, however many
tasks each has waiting.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from understudy.actors.engine.messages import Enqueue, Joined

Key = tuple[int, int, int]  # priority turned round, the workstream's turn, the order of arrival


class Lane:
    """Tasks that the same workers can run and the same breaker guards."""

    __slots__ = ("breaker", "classes", "heap", "kinds", "needs")

    def __init__(self, kinds: frozenset[str], needs: frozenset[str], breaker: str | None) -> None:
        self.kinds = kinds
        self.needs = needs
        self.breaker = breaker
        self.heap: list[tuple[Key, Enqueue]] = []
        self.classes: list[WorkerClass] = []

    def fits(self, kind: str, capabilities: frozenset[str]) -> bool:
        return kind in self.kinds and self.needs <= capabilities


class WorkerClass:
    """Workers that can be taken for each other. `free` holds those with a free slot, in the order of their turns."""

    __slots__ = ("capabilities", "free", "kind", "lanes")

    def __init__(self, kind: str, capabilities: frozenset[str]) -> None:
        self.kind = kind
        self.capabilities = capabilities
        self.free: dict[str, Slots] = {}
        self.lanes: list[Lane] = []


class Slots:
    """One worker's places."""

    __slots__ = ("join", "left", "of")

    def __init__(self, join: Joined, of: WorkerClass) -> None:
        self.join = join
        self.of = of
        self.left = join.slots - join.used


class Lanes:
    def __init__(self) -> None:
        self.entries: dict[str, Enqueue] = {}  # what waits, by task
        self.workers: dict[str, Slots] = {}
        self.free = 0  # slots of all workers
        self._lanes: dict[tuple[frozenset[str], frozenset[str], str | None], Lane] = {}
        self._classes: dict[tuple[str, frozenset[str]], WorkerClass] = {}
        self._turns: dict[str, int] = {}  # the last turn given to each workstream
        self._turn = 0  # the newest turn that was taken
        self._arrivals = 0

    def put(self, entry: Enqueue) -> Lane:
        """Add a task, unless it is waiting already."""
        lane = self._lane_for(entry)
        if entry.task_id not in self.entries:
            self.entries[entry.task_id] = entry
            turn = max(self._turns.get(entry.workstream_id, 0), self._turn) + 1
            self._turns[entry.workstream_id] = turn
            self._arrivals += 1
            heappush(lane.heap, ((-entry.priority, turn, self._arrivals), entry))
        return lane

    def remove(self, task_id: str) -> Enqueue | None:
        """Take a task out, if it is there; its place in the heap is passed over later."""
        return self.entries.pop(task_id, None)

    def head(self, lane: Lane) -> Key | None:
        """The key of the next task of a lane."""
        heap = lane.heap
        while heap:
            key, entry = heap[0]
            if self.entries.get(entry.task_id) is entry:
                return key
            heappop(heap)
        return None

    def take(self, lane: Lane) -> Enqueue:
        """The next task of a lane, which has one."""
        key, entry = heappop(lane.heap)
        del self.entries[entry.task_id]
        self._turn = max(self._turn, key[1])
        if self._turns.get(entry.workstream_id, 0) <= self._turn:
            self._turns.pop(entry.workstream_id, None)  # it has nothing left to wait for: its next turn is the newest
        return entry

    def drain(self, lane: Lane) -> list[Enqueue]:
        """Everything that waits in a lane."""
        found = [entry for _, entry in lane.heap if self.entries.get(entry.task_id) is entry]
        for entry in found:
            del self.entries[entry.task_id]
        lane.heap.clear()
        return found

    def guarded_by(self, breaker: str) -> Iterator[Lane]:
        return (lane for lane in self._lanes.values() if lane.breaker == breaker)

    def join(self, message: Joined) -> WorkerClass:
        """A worker is there, or is there again."""
        self.leave(message.worker_id)
        of = self._class_for(message.kind, message.capabilities)
        slots = self.workers[message.worker_id] = Slots(message, of)
        if slots.left > 0:
            of.free[message.worker_id] = slots
        self.free += max(slots.left, 0)
        return of

    def leave(self, worker_id: str) -> None:
        slots = self.workers.pop(worker_id, None)
        if slots is not None:
            slots.of.free.pop(worker_id, None)
            self.free -= max(slots.left, 0)

    def occupy(self, of: WorkerClass) -> Slots:
        """Use a slot of a class that has a free one: of the worker whose turn it is."""
        worker_id, slots = next(iter(of.free.items()))
        del of.free[worker_id]
        slots.left -= 1
        self.free -= 1
        if slots.left > 0:
            of.free[worker_id] = slots  # behind the others
        return slots

    def release(self, worker_id: str) -> WorkerClass | None:
        """A slot is free again, unless its worker has gone."""
        slots = self.workers.get(worker_id)
        if slots is None:
            return None
        slots.left += 1
        if slots.left > 0:
            self.free += 1
            slots.of.free[worker_id] = slots
        return slots.of

    def classes(self) -> Iterator[WorkerClass]:
        return iter(self._classes.values())

    def _lane_for(self, entry: Enqueue) -> Lane:
        key = (entry.kinds, entry.needs, entry.breaker)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(*key)
            for each in self._classes.values():
                if lane.fits(each.kind, each.capabilities):
                    _tie(lane, each)
        return lane

    def _class_for(self, kind: str, capabilities: frozenset[str]) -> WorkerClass:
        found = self._classes.get((kind, capabilities))
        if found is None:
            found = self._classes[kind, capabilities] = WorkerClass(kind, capabilities)
            for lane in self._lanes.values():
                if lane.fits(kind, capabilities):
                    _tie(lane, found)
        return found


def _tie(lane: Lane, of: WorkerClass) -> None:
    lane.classes.append(of)
    of.lanes.append(lane)
