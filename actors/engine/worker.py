"""A worker: runs attempts at its workplace, as many at once as it has slots, and answers for what became of each.

The actor stays for as long as the runtime does and leads the worker through its generations. A result that comes
after nobody wanted it any more is written down as late, and changes nothing.
"""

from typing import Any, assert_never

import msgspec

from understudy.actors.engine import messages as m
from understudy.actors.engine.requests import Answer, Conflict, Done, Operation, Request
from understudy.actors.engine.worker_seat import TAKES_TASKS, Running, WorkerSeat
from understudy.actors.kernel import Actor, Cancelled, Failed, Outcome, Ref, Succeeded
from understudy.actors.lifecycle import WORKER, Entity, InvalidTransition, WorkerState, WorkerTrigger
from understudy.actors.ports.workplace import Report, token_of
from understudy.actors.records import WorkerRecord

S, T = WorkerState, WorkerTrigger


class _Opened(msgspec.Struct, frozen=True):
    generation: int
    outcome: Outcome[None]


class _Ended(msgspec.Struct, frozen=True):
    running: Running
    outcome: Outcome[Report]


class _GraceOver(msgspec.Struct, frozen=True):
    running: Running


class _Died(msgspec.Struct, frozen=True):
    generation: int
    why: str


class _Hearing:
    """Passes on what a workplace says of itself, as messages."""

    def __init__(self, seat: WorkerSeat, worker: Ref[Any], generation: int) -> None:
        self._seat = seat
        self._worker = worker
        self._generation = generation

    def beat(self) -> None:
        self._seat.house.supervisor.signal(m.Beat(self._seat.id))

    def died(self, why: str) -> None:
        self._worker.signal(_Died(self._generation, why))


class Worker(Actor[Any]):
    __slots__ = ("_book", "_seat")

    mailbox_capacity = 10_000_000  # bounded by its slots, a few messages for each

    def __init__(self, seat: WorkerSeat) -> None:
        self._seat = seat
        self._book = seat.house.book

    def started(self) -> None:
        record = self._seat.record
        if record is not None and not WORKER.is_terminal(record.state):  # of the process before, or of the life before
            self._end(S.TERMINATED, T.TERMINATE, "its runtime has ended", counted=False)
        self._begin()

    def receive(self, message: Any) -> None:
        match message:
            case m.Take():
                self._take(message)
            case m.Run():
                self._run(message)
            case _Ended(running, outcome):
                self._ended(running, outcome)
            case m.Abort():
                self._abort(message)
            case m.Confirm():
                self._confirm(message)
            case _GraceOver(running):
                self._leave_to_itself(running)
            case _Opened(generation, outcome):
                if generation == self._seat.current.generation and self._seat.current.state is S.INITIALIZING:
                    self._opened(outcome)
            case _Died(generation, why):
                if generation == self._seat.current.generation and not WORKER.is_terminal(self._seat.current.state):
                    self._die(why)
            case m.Recheck():
                if self._seat.current.state in TAKES_TASKS and not self._seat.drains:
                    self._join()
            case m.Unresponsive() | m.Recovered() | m.GiveUpOn() | m.Respawn():
                self._obey_supervisor(message)
            case m.Act():
                self._act(message.request, message.answer)
            case _:
                assert_never(message)

    # Its life

    def _begin(self) -> None:
        seat, before = self._seat, self._seat.record
        now = self._book.now_us()
        generation = 1 if before is None else before.generation + 1
        definition = seat.definition
        seat.record = WorkerRecord(
            seat.id,
            S.INITIALIZING,
            now,
            now,
            generation=generation,
            kind=definition.kind.value,
            capabilities=definition.capabilities,
            max_concurrent_tasks=definition.max_concurrent_tasks,
            owner=seat.house.owner,
        )
        self._book.move(Entity.WORKER, before, seat.record, T.SPAWNED)
        workplace = seat.workplace = seat.house.workplaces.make(seat.id, definition)
        hearing = _Hearing(seat, self.context, generation)
        self.context.start(lambda: workplace.open(hearing), lambda outcome: _Opened(generation, outcome))

    def _opened(self, outcome: Outcome[None]) -> None:
        match outcome:
            case Succeeded():
                self._seat.move(S.IDLE, T.REGISTRATION_COMPLETE)
                self._join()
                self._seat.house.supervisor.tell(m.WorkerUp(self._seat.id))
            case Failed(error):
                self._seat.move(S.FAILED, T.REGISTRATION_FAILED, reason=str(error), last_error=str(error))
                self._seat.house.supervisor.tell(m.WorkerDown(self._seat.id))
            case Cancelled():
                pass  # the runtime stops

    def _join(self) -> None:
        seat, definition = self._seat, self._seat.definition
        seat.house.scheduler.tell(
            m.Joined(
                seat.id,
                self.context,
                definition.kind.value,
                frozenset(definition.capabilities),
                definition.max_concurrent_tasks,
                seat.occupied,
            )
        )

    def _die(self, why: str) -> None:
        if self._seat.current.state is S.BUSY:
            self._end(S.FAILED, T.ERROR_UNRECOVERABLE, why)
        else:
            self._end(S.TERMINATED, T.TERMINATE, why)
        self._report_end()

    def _report_end(self) -> None:
        """It has ended by itself: the supervisor starts it again, unless it was to end anyway."""
        if self._seat.drains:
            self._answer_drains()
        else:
            self._seat.house.supervisor.tell(m.WorkerDown(self._seat.id))

    def _end(
        self, state: WorkerState, trigger: str, why: str | None, who: str | None = None, *, counted: bool = True
    ) -> None:
        """End this generation. What ran here is lost; it is counted where the tasks may be to blame."""
        seat = self._seat
        self._seat.move(state, trigger, reason=why, who=who, task_ids=(), last_error=why)
        seat.house.scheduler.tell(m.Left(seat.id))
        running, seat.running, seat.occupied = seat.running, {}, 0
        for each in running.values():
            if not each.left_to_itself:
                seat.house.scheduler.tell(m.Freed(seat.id, each.order.workstream_id))
            if each.unwanted is None:
                each.task.tell(self._seat.lost(each, why or trigger, counted))
            if each.work is not None:
                each.work.cancel()
        if seat.workplace is not None:
            seat.workplace.kill()
            seat.workplace = None

    def _obey_supervisor(self, message: "m.Unresponsive | m.Recovered | m.GiveUpOn | m.Respawn") -> None:
        state = self._seat.current.state
        match message:
            case m.Unresponsive(missed) if state in TAKES_TASKS:
                why = f"did not answer {missed} health checks"
                self._seat.move(S.UNRESPONSIVE, T.HEALTH_CHECK_TIMEOUT, reason=why, task_ids=())
                self._seat.house.scheduler.tell(m.Left(self._seat.id))
                for each in list(self._seat.running.values()):
                    if each.unwanted is None:
                        each.task.tell(self._seat.lost(each, why, counted=True))
                        self._abandon(each, why)
            case m.Recovered() if state is S.UNRESPONSIVE:
                self._seat.move(S.IDLE, T.HEALTH_CHECK_RECOVERED)
                if self._seat.drains:
                    self._drain_if_done()
                else:
                    self._join()
            case m.GiveUpOn(after_s) if state is S.UNRESPONSIVE:
                why = f"did not come back within {after_s:g} s"
                self._end(S.TERMINATED, T.MAX_TIMEOUT_EXCEEDED, why)
                self._report_end()
            case m.Respawn() if WORKER.is_terminal(state):
                self._begin()
            case _:
                pass

    # Its tasks

    def _take(self, message: m.Take) -> None:
        running = Running(message.order, message.task)
        takes = self._seat.current.state in TAKES_TASKS or self._seat.current.state is S.PAUSED
        if not takes or self._seat.occupied >= self._seat.definition.max_concurrent_tasks:
            why = "has no free slot" if takes else f"is {self._seat.current.state}"
            message.task.tell(self._seat.lost(running, why, counted=False))
            if not takes:
                self._seat.house.scheduler.tell(m.Freed(self._seat.id, message.order.workstream_id))
            return
        self._seat.running[message.order.token] = running
        self._seat.occupied += 1
        if self._seat.current.state is S.IDLE:
            self._seat.move(S.BUSY, T.TASK_ASSIGNED, has_run=True, task_ids=(message.order.task_id,))
        else:
            self._seat.note_tasks()

    def _run(self, message: m.Run) -> None:
        running = self._seat.running.get(message.token)
        workplace = self._seat.workplace
        if running is not None and running.work is None and running.unwanted is None and workplace is not None:
            order = running.order
            running.work = self.context.start(lambda: workplace.run(order), lambda outcome: _Ended(running, outcome))

    def _ended(self, running: Running, outcome: Outcome[Report]) -> None:
        order = running.order
        if self._seat.running.pop(order.token, None) is None:
            return  # the generation that it ran in is over
        if running.unwanted is not None:
            self._seat.note_late(running, outcome)
        else:
            match outcome:
                case Succeeded(report):
                    running.task.tell(m.Finished(order.generation, order.attempt, report))
                case Failed(error):
                    running.task.tell(self._seat.lost(running, str(error), counted=True))
                case Cancelled():
                    running.task.tell(self._seat.lost(running, "stopped", counted=False))
        self._free(running)

    def _abort(self, message: m.Abort) -> None:
        running = self._seat.running.get(message.token)
        if running is None or running.unwanted is not None:
            return
        self._abandon(running, message.why)
        if running.work is not None:
            running.work.cancel()
            program = running.order.program
            grace_s = self._seat.house.limits.cancel_grace_s + (0.0 if program is None else program.grace_s)
            self.context.after(grace_s, _GraceOver(running))

    def _abandon(self, running: Running, why: str) -> None:
        """Nobody waits for it any more. One that has not begun never will."""
        running.unwanted = why
        if running.work is None:
            del self._seat.running[running.order.token]
            self._free(running)

    def _leave_to_itself(self, running: Running) -> None:
        """It ignores its cancellation. Others need the slot."""
        if self._seat.running.get(running.order.token) is running and not running.left_to_itself:
            self._seat.house.note(
                "task ignored its cancellation",
                workstream=running.order.workstream_id,
                task=running.order.key,
                attempt=running.order.attempt,
                worker=self._seat.id,
            )
            self._free(running)
            running.left_to_itself = True

    def _free(self, running: Running) -> None:
        seat, record = self._seat, self._seat.current
        if running.left_to_itself:
            return
        seat.occupied -= 1
        seat.house.scheduler.tell(m.Freed(seat.id, running.order.workstream_id))
        if seat.drains:
            self._drain_if_done()
        elif seat.occupied:
            self._seat.note_tasks()
        elif record.state is S.BUSY:
            self._seat.move(S.IDLE, T.TASK_COMPLETED, task_ids=())

    def _confirm(self, message: m.Confirm) -> None:
        running = self._seat.running.get(token_of(message.task_id, message.generation, message.attempt))
        if running is None or running.unwanted is not None:
            cause = f"worker {self._seat.id} knows nothing of it"
            message.task.tell(m.WorkerLost(message.generation, message.attempt, cause, counted=False))
        else:
            running.task = message.task

    # What operators want

    def _act(self, request: Request, answer: Answer) -> None:
        try:
            done = self._do(request, answer)
        except (InvalidTransition, Conflict) as error:
            answer.refuse(error)
        else:
            if done:
                answer.give(Done(self._seat.id, self._seat.current.state, self._seat.current.generation))

    def _do(self, request: Request, answer: Answer) -> bool:
        """Answers whether it is done already: a drain may take its time."""
        record, seat = self._seat.current, self._seat
        match request.operation:
            case Operation.PAUSE:
                if record.state is S.IDLE and not record.has_run:
                    raise Conflict(f"worker {seat.id} has never run a task: there is nothing to pause")
                self._seat.move(S.PAUSED, T.PAUSE, reason=request.why, who=request.who)
                seat.house.scheduler.tell(m.Left(seat.id))
            case Operation.RESUME:
                if seat.drains:
                    raise Conflict(f"worker {seat.id} is being drained: it ends when its tasks have ended")
                self._seat.move(S.BUSY if seat.occupied else S.IDLE, T.RESUME, reason=request.why, who=request.who)
                self._join()
                seat.house.supervisor.tell(m.WorkerUp(seat.id))
            case Operation.TERMINATE:
                self._end(S.TERMINATED, T.TERMINATE, request.why or "was terminated", request.who, counted=False)
                self._answer_drains()
            case Operation.DRAIN:
                WORKER.check(seat.id, record.state, T.SHUTDOWN_REQUESTED, S.SHUTDOWN)
                seat.house.scheduler.tell(m.Left(seat.id))
                seat.drains.append((request, answer))
                self._drain_if_done()
                return False
            case _:
                raise Conflict(f"{request.operation} is not for a worker")
        return True

    def _drain_if_done(self) -> None:
        if not self._seat.occupied and self._seat.current.state is not S.UNRESPONSIVE:
            request, _ = self._seat.drains[0]
            self._end(S.SHUTDOWN, T.SHUTDOWN_REQUESTED, request.why, request.who)
            self._answer_drains()

    def _answer_drains(self) -> None:
        drains, self._seat.drains = self._seat.drains, []
        for _, answer in drains:
            answer.give(Done(self._seat.id, self._seat.current.state, self._seat.current.generation))
