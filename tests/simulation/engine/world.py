"""The engine in virtual time: its own actors, a store in memory, and a workplace whose tasks do what a script says."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from understudy.actors.definition import Check, RetryPolicy, Task, WorkerDefinition, Workspace, Workstream
from understudy.actors.engine.engine import Engine, Recovery
from understudy.actors.engine.house import GATHER, House, Limits
from understudy.actors.engine.requests import Done, Operation, Request
from understudy.actors.journal import Book
from understudy.actors.kernel import Promise, SimulatedKernel
from understudy.actors.lifecycle import MACHINES, Entity
from understudy.actors.lifecycle.invariants import check_history, check_task, check_worker, check_workstream
from understudy.actors.ports.checks import Subject
from understudy.actors.ports.store import Batch, StoreUnavailable
from understudy.actors.ports.workplace import Hearing, Order, Report
from understudy.actors.ports.workspaces import MergePlan, WorkspaceError
from understudy.actors.records import Attempt, CheckResult, TaskRecord, Transition, WorkerRecord, WorkstreamRecord
from understudy.adapters.stores.memory import MemoryStore

Script = Callable[[Order], Any]  # gives what an attempt gives, raises what it raises, or answers with `Takes`

EPOCH_US = 1_800_000_000_000_000


class Refused(Exception):
    """What a script raises for a failed attempt, with more said of it."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.report = Report(error=error, kinds=("Refused",), text=error, **more)


class Takes:
    """What a script answers for an attempt that takes its time. `gives` may be an error to raise at the end."""

    def __init__(self, seconds: float, gives: Any = None, *, ignores_cancel: bool = False) -> None:
        self.seconds = seconds
        self.gives = gives
        self.ignores_cancel = ignores_cancel

    async def on(self, kernel: SimulatedKernel) -> Any:
        ends_at = kernel.clock.now() + self.seconds
        while (left := ends_at - kernel.clock.now()) > 0:
            try:
                await kernel.sleep(left)
            except CancelledError:
                if not self.ignores_cancel:
                    raise
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


class MortalStore(MemoryStore):
    """Its disk takes so many commits and no more: what comes after them never happened."""

    def __init__(self, commits_max: float = inf) -> None:
        super().__init__()
        self.commits_max = commits_max
        self.commits = 0
        self.refused = 0

    async def commit(self, batch: Batch) -> None:
        if self.commits >= self.commits_max:
            self.refused += 1
            raise StoreUnavailable("the process is dead", "dead")
        self.commits += 1
        await super().commit(batch)


class ScriptedPlace:
    """A workplace of the world."""

    def __init__(self, world: "World", worker_id: str) -> None:
        self.world = world
        self.worker_id = worker_id
        self.hearing: Hearing | None = None

    async def open(self, hearing: Hearing) -> None:
        await self.world.opening.on(self.world.kernel)
        self.hearing = hearing
        self.world.places[self.worker_id] = self

    async def run(self, order: Order) -> Report:
        self.world.runs.append(order)
        if order.call == GATHER:
            return Report(order.inputs["items"], 1)
        try:
            given = self.world.script(order)
            output = await given.on(self.world.kernel) if isinstance(given, Takes) else given
        except Refused as refused:
            return refused.report
        return output if isinstance(output, Report) else Report(output, 1)

    async def close(self) -> None: ...

    def kill(self) -> None: ...


class ScriptedChecks:
    """Finds what the world says of each check by its name: nothing, or what is wrong."""

    def __init__(self, world: "World") -> None:
        self.world = world

    async def run(self, checks: tuple[Check, ...], subject: Subject) -> list[CheckResult]:
        self.world.subjects.append((checks, subject))
        task_id, generation, attempt = subject.task_id, subject.generation, subject.attempt
        if self.world.checks_take_s:
            await self.world.kernel.sleep(self.world.checks_take_s)
        now = EPOCH_US + int(self.world.kernel.clock.now() * 1e6)
        found = [self.world.faults(check.name or "", attempt) for check in checks]
        return [
            CheckResult(
                task_id, generation, attempt, position, checks[position].name or "", fault is None, now, now, fault
            )
            for position, fault in enumerate(found)
        ]


class ScriptedWorkspaces:
    """Keeps what was asked for, and does what the world says: a conflict, or an error by the name of the step."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.given: list[Workspace] = []  # with each of these
        self.conflicts: tuple[str, ...] = ()
        self.broken: set[str] = set()  # steps that fail
        self.held: set[str] = set()  # workstreams whose turn it is to merge

    def _ask(self, step: str, workstream_id: str, workspace: Workspace) -> None:
        self.given.append(workspace)
        self.asked.append(f"{step} {workstream_id}")
        if step in self.broken:
            raise WorkspaceError(f"cannot {step}")

    async def prepare(self, workstream_id: str, workspace: Workspace, directory: str | None) -> str:
        self._ask("prepare", workstream_id, workspace)
        return f"/work/{workstream_id}"

    async def plan_merge(self, workstream_id: str, workspace: Workspace, path: str) -> MergePlan:
        self._ask("plan", workstream_id, workspace)
        if not self.conflicts:
            self.held.add(workstream_id)
        return MergePlan("understudy/ws", "main", 1, ("a.py",), self.conflicts)

    async def merge(self, workstream_id: str, workspace: Workspace, path: str) -> str:
        self._ask("merge", workstream_id, workspace)
        return "c0ffee"

    def let_go(self, workstream_id: str) -> None:
        self.held.discard(workstream_id)

    async def remove(self, workstream_id: str, workspace: Workspace, path: str) -> None:
        self._ask("remove", workstream_id, workspace)


class World:
    def __init__(
        self,
        script: Script = lambda order: order.key,
        *,
        seed: int = 1,
        workers: Sequence[WorkerDefinition] = (WorkerDefinition("w", max_concurrent_tasks=10),),
        store: MemoryStore | None = None,
        at: float = 0.0,
        limits: Limits | None = None,
        secrets: dict[str, str] | None = None,
        opening: Takes | None = None,
        workspaces: ScriptedWorkspaces | None = None,
    ) -> None:
        self.script = script
        self.workers = workers
        self.faults: Callable[[str, int], str | None] = lambda name, attempt: None  # that checks find
        self.checks_take_s = 0.0
        self.subjects: list[tuple[tuple[Check, ...], Subject]] = []  # that checks were run on
        self.workspaces = workspaces or ScriptedWorkspaces()
        self.kernel = SimulatedKernel(seed)
        self.store = store or MemoryStore()
        self.runs: list[Order] = []
        self.silent: set[str] = set()  # workers that show no sign of life
        self.crashes_expected = 0  # of actors
        self.repairs_expected = 0  # by the sweep
        self.places: dict[str, ScriptedPlace] = {}
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self._at = at
        self.opening = opening or Takes(0)  # of workplaces
        self._limits = limits or Limits(sweep_s=1e9)  # whatever moves, moves without being repaired
        self._secrets = {"TOKEN": "hunter2"} if secrets is None else secrets
        self.recovery = self._open()

    def _open(self) -> Recovery:
        def now_us() -> int:
            return EPOCH_US + int((self._at + self.kernel.clock.now()) * 1e6)

        book = Book(max((each for each in self.store._moves), default=0), now_us)
        house = House(
            book=book,
            store=self.store,
            workplaces=self,
            checks=ScriptedChecks(self),
            workspaces=self.workspaces,
            secret=self._secrets.get,
            note=lambda event, **fields: self.notes.append((event, fields)),
            owner=f"runtime-{self._at}",
            limits=self._limits,
            spawn=lambda build, seat, name: self.kernel.spawn(build, seat, name=name),
        )
        self.engine = Engine(self.kernel, house)
        recovered: Recovery = self.wait(self.engine.recover(self.workers))
        return recovered

    def wait(self, coroutine: Any) -> Any:
        """Run a coroutine that never really waits."""
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("it waited")

    # What the engine asks for

    def make(self, worker_id: str, definition: WorkerDefinition) -> ScriptedPlace:
        return ScriptedPlace(self, worker_id)

    def kinds_for(self, call: str) -> frozenset[str]:
        if call == "shop:missing":
            raise LookupError("there is no function shop:missing")
        return frozenset({"async", "process"})

    # What tests do

    def submit(self, definition: Workstream, **more: Any) -> Promise[Done]:
        request = Request(Operation.SUBMIT, definition.id or "ws", **more)
        promise = self.engine.ask(request, definition)
        self.kernel.run(until=self.kernel.clock.now())
        return promise

    def ask(self, operation: Operation, target: str, **more: Any) -> Promise[Done]:
        return self.engine.ask(Request(operation, target, **more))

    def do(self, operation: Operation, target: str, **more: Any) -> Done:
        promise = self.ask(operation, target, **more)
        self.kernel.run(until=self.kernel.clock.now())
        return promise.result()

    def run(self, until: float = 100_000.0) -> "World":
        """Let time pass until nothing is alive any more, or until then."""
        while self.kernel.clock.now() < until and self.engine.house.workstreams:
            self.pass_time(min(1.0, until - self.kernel.clock.now()))
        self.check()
        return self

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass, with signs of life from workers that are not silent."""
        ends_at = self.kernel.clock.now() + seconds
        while True:
            for worker_id in self.places.keys() - self.silent:
                hearing = self.places[worker_id].hearing
                if hearing is not None:
                    hearing.beat()
            self.kernel.run(until=min(self.kernel.clock.now() + 1, ends_at))
            if self.kernel.clock.now() >= ends_at:
                return

    def step_until(self, found: Callable[[], bool], *, until: float = 1_000.0) -> None:
        """Step by step, until something is so."""
        while not found():
            assert self.kernel.run(until=until, steps_max=1), "it never came to be"

    def crash(self, **changes: Any) -> "World":
        """The process ends without a word, and another one opens what it had stored."""
        elapsed = self._at + self.kernel.clock.now()
        for fiber in list(self.kernel._fibers):
            fiber._coroutine.close()
        if isinstance(self.store, MortalStore):
            self.store.commits_max = inf
        again = {"seed": 2, "workers": self.workers, "limits": self._limits, "workspaces": self.workspaces}
        given: dict[str, Any] = {**again, **changes}
        return World(self.script, store=self.store, at=elapsed, **given)

    def workstream(self, workstream_id: str = "ws") -> WorkstreamRecord:
        record = self.wait(self.store.load(Entity.WORKSTREAM, workstream_id))
        assert isinstance(record, WorkstreamRecord)
        return record

    def task(self, key: str, workstream_id: str = "ws") -> TaskRecord:
        record = self.wait(self.store.load(Entity.TASK, f"{workstream_id}/{key}"))
        assert isinstance(record, TaskRecord), key
        return record

    def states(self, workstream_id: str = "ws") -> dict[str, str]:
        page = self.wait(self.store.page(Entity.TASK, workstream_id=workstream_id, limit=1_000_000))
        return {record.key: record.state.value for record in page}

    def moves(self, entity: Entity, record_id: str) -> list[Transition]:
        found: list[Transition] = self.wait(self.store.history(entity, record_id))
        return found

    def path(self, entity: Entity, record_id: str) -> list[str]:
        """The states that a record went through."""
        return [each.to_state for each in self.moves(entity, record_id)]

    def attempts(self) -> list[Attempt]:
        return list(self.store._tries.values())

    def check(self) -> None:
        """Everything that must always be true of what is stored."""
        records = self.store._records
        trails: dict[tuple[Entity, str], list[Transition]] = {}
        for each in self.store._moves.values():
            trails.setdefault((each.entity, each.record_id), []).append(each)
        breaches = [
            breach for (entity, _), moves in trails.items() for breach in check_history(MACHINES[entity], moves)
        ]
        tasks: dict[str, list[TaskRecord]] = {}
        for (entity, record_id), record in records.items():
            assert trails[entity, record_id][-1].to_state == record.state
            if isinstance(record, TaskRecord):
                tasks.setdefault(record.workstream_id, []).append(record)
        for record in records.values():
            if isinstance(record, TaskRecord):
                by_key = {task.key: task.state.value for task in tasks[record.workstream_id]}
                breaches += check_task(record, by_key.get)
            elif isinstance(record, WorkstreamRecord):
                breaches += check_workstream(record, tasks.get(record.id, []))
            elif isinstance(record, WorkerRecord):
                breaches += check_worker(record)
        unfit = {
            (each.task_id, each.generation, each.attempt) for each in self.store._results.values() if not each.passed
        }
        accepted = [
            (each.task_id, each.generation)
            for each in self.attempts()
            if each.success and (each.task_id, each.generation, each.attempt) not in unfit
        ]
        assert len(accepted) == len(set(accepted)), "one accepted result per task and generation"
        assert not breaches, "\n".join(str(breach) for breach in breaches)
        assert len(self.kernel.poison) <= self.crashes_expected, self.kernel.poison[-1].traceback
        repairs = [note for note in self.notes if note[0].startswith("repaired")]
        assert len(repairs) <= self.repairs_expected, repairs


def stream(*tasks: Task, **fields: Any) -> Workstream:
    return Workstream(tasks=tasks, **{"id": "ws", **fields})


def step(key: str, *after: str, **fields: Any) -> Task:
    return Task(key, call="shop:work", after=after, **fields)


QUICK = RetryPolicy(max_attempts=3, base_delay=1, max_delay=10, jitter=0)
