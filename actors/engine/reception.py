"""Where requests from outside come in: bounded, each carried out once, and sent to whom it concerns.

A workstream that has left memory is read back when somebody wants something of it.
"""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from understudy.actors.definition import Workstream
from understudy.actors.engine import messages as m
from understudy.actors.engine.house import House
from understudy.actors.engine.reading import read_workstream, seat_of
from understudy.actors.engine.requests import Answer, Conflict, Done, NotFound, Operation, Request
from understudy.actors.engine.workstream import WorkstreamActor
from understudy.actors.engine.workstream_seat import WorkstreamSeat
from understudy.actors.errors import UnderstudyError
from understudy.actors.idempotency import answer_again
from understudy.actors.kernel import Actor, Failed, MailboxFull, Outcome, Succeeded
from understudy.actors.lifecycle import Entity, WorkstreamState, WorkstreamTrigger
from understudy.actors.records import StoredAnswer, TaskRecord, WorkstreamRecord

_WORKER_OPERATIONS = frozenset({Operation.PAUSE, Operation.RESUME, Operation.DRAIN, Operation.TERMINATE})
_BREAKER_OPERATIONS = frozenset({Operation.TRIP, Operation.RESET_BREAKER})


class NotTakingWork(UnderstudyError):
    """Nothing can be taken in now: the disk is full or slow, or too much is waiting. Try again after a while."""

    def __init__(self, why: str, retry_after_s: float = 1.0) -> None:
        super().__init__(f"not taking work: {why}; try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Wish(msgspec.Struct, frozen=True):
    """A request with what it is about, and where its answer goes."""

    request: Request
    send: Callable[[Any], None]
    fail: Callable[[BaseException], None]
    definition: Workstream | None = None
    parent_id: str | None = None
    depth: int = 0


class _Known(msgspec.Struct, frozen=True):
    """Whether a request was answered before."""

    wish: Wish
    outcome: Outcome[StoredAnswer | None]


class _Found(msgspec.Struct, frozen=True):
    """What was found of a workstream that is not in memory."""

    workstream_id: str
    outcome: Outcome[tuple[WorkstreamRecord, list[TaskRecord]] | None]


class Reception(Actor[Any]):
    __slots__ = ("_house", "_pending", "_seeking")

    mailbox_capacity = 1_000  # requests that may wait; more are refused

    def __init__(self, house: House) -> None:
        self._house = house
        self._pending: dict[str, list[Wish]] = {}  # requests under way, and the same ones that came meanwhile
        self._seeking: dict[str, list[tuple[Wish, Answer]]] = {}  # by workstreams that are being read

    def receive(self, message: Any) -> None:
        match message:
            case Wish():
                self._greet(message)
            case _Known(wish, outcome):
                self._known(wish, outcome)
            case _Found(workstream_id, outcome):
                self._found(workstream_id, outcome)
            case _:
                assert_never(message)

    def _greet(self, wish: Wish) -> None:
        closed = self._house.book.closed_because
        if closed is not None:
            wish.fail(NotTakingWork(closed))
            return
        request_id = wish.request.request_id
        if request_id is None:
            self._carry_out(wish)
        elif request_id in self._pending:
            self._pending[request_id].append(wish)
        else:
            self._pending[request_id] = []
            store, now = self._house.store, self._house.book.now_us()
            self.context.start(lambda: store.answer_to(request_id, now), lambda outcome: _Known(wish, outcome))

    def _known(self, wish: Wish, outcome: Outcome[StoredAnswer | None]) -> None:
        match outcome:
            case Succeeded(None):
                self._carry_out(wish)
            case Succeeded(stored):
                try:
                    again = answer_again(stored, wish.request.operation, _body(wish))
                except UnderstudyError as error:
                    wish.fail(error)
                else:
                    wish.send(msgspec.convert(again.answer if again else None, Done))
                self._release(wish)
            case Failed(error):
                wish.fail(error)
                self._release(wish)
            case _:
                self._release(wish)

    def _release(self, wish: Wish) -> None:
        """The same requests that came meanwhile are looked at again: now there is an answer."""
        for each in self._pending.pop(wish.request.request_id or "", ()):
            try:
                self.context.tell(each)
            except MailboxFull as error:  # this may run in the journal's turn, which must not crash for it
                each.fail(NotTakingWork(f"{error.capacity} requests wait already"))

    def _answer_for(self, wish: Wish) -> Answer:
        def send(answer: Any) -> None:
            wish.send(answer)
            self._release(wish)

        def fail(error: BaseException) -> None:
            wish.fail(error)
            self._release(wish)

        request = wish.request
        body = _body(wish) if request.request_id is not None else None
        return Answer(self._house.book, request.operation, send, fail, request.request_id, body)

    def _carry_out(self, wish: Wish) -> None:
        request, answer, house = wish.request, self._answer_for(wish), self._house
        if request.operation is Operation.SUBMIT:
            self._seek(request.target, wish, answer)
        elif request.operation in _WORKER_OPERATIONS:
            self._pass_on(house.workers, "worker", request, answer)
        elif request.operation in _BREAKER_OPERATIONS:
            self._pass_on(house.breakers, "breaker", request, answer)
        else:
            workstream_id = request.target.partition("/")[0]
            ref = house.workstreams.get(workstream_id)
            if ref is not None:
                ref.tell(m.Act(request, answer))
            else:
                self._seek(workstream_id, wish, answer)

    def _pass_on(self, refs: dict[str, Any], what: str, request: Request, answer: Answer) -> None:
        if request.target in refs:
            refs[request.target].tell(m.Act(request, answer))
        else:
            known = ", ".join(sorted(refs)[:10])
            answer.refuse(NotFound(f"there is no {what} {request.target}; there are {known or 'none'}"))

    # Workstreams that are not in memory

    def _seek(self, workstream_id: str, wish: Wish, answer: Answer) -> None:
        house = self._house
        if wish.definition is not None and wish.definition.id is None:
            self._submit(wish, answer)  # an id that was just made stands for nothing else
        elif wish.definition is not None and workstream_id in house.workstreams:
            self._submit_again(wish, answer)
        elif workstream_id in self._seeking:
            self._seeking[workstream_id].append((wish, answer))
        else:
            self._seeking[workstream_id] = [(wish, answer)]
            self.context.start(
                lambda: read_workstream(house.store, workstream_id), lambda outcome: _Found(workstream_id, outcome)
            )

    def _found(self, workstream_id: str, outcome: Outcome[tuple[WorkstreamRecord, list[TaskRecord]] | None]) -> None:
        for wish, answer in self._seeking.pop(workstream_id):
            ref = self._house.workstreams.get(workstream_id)
            match outcome:
                case Succeeded(None) if wish.definition is not None and ref is None:
                    self._submit(wish, answer)
                case Succeeded(found) if wish.definition is None and (ref is not None or found is not None):
                    if ref is None and found is not None:
                        ref = open_workstream(self._house, seat_of(self._house, *found))
                    if ref is not None:
                        ref.tell(m.Act(wish.request, answer))
                case Succeeded(_) if wish.definition is not None:
                    self._submit_again(wish, answer)
                case Succeeded(_):
                    answer.refuse(NotFound(f"there is no workstream {workstream_id}"))
                case Failed(error):
                    answer.refuse(error)
                case _:
                    answer.refuse(NotTakingWork("the runtime stops"))

    def _submit_again(self, wish: Wish, answer: Answer) -> None:
        """A child that its parent asks for once more is the same child; anybody else chose an id that is taken."""
        if wish.parent_id is not None:
            answer.give(Done(wish.request.target, WorkstreamState.PLANNED, 1))
        else:
            answer.refuse(Conflict(f"there is a workstream {wish.request.target} already: choose another id"))

    def _submit(self, wish: Wish, answer: Answer) -> None:
        definition, house = wish.definition, self._house
        if definition is None:
            return
        now = house.book.now_us()
        record = WorkstreamRecord(
            wish.request.target,
            WorkstreamState.PLANNED,
            now,
            now,
            name=definition.name,
            parent_id=wish.parent_id,
            depth=wish.depth,
            reserved_workers=definition.reserved_workers,
            max_retries=definition.retry.retries_max,
            owner=house.owner,
            correlation_id=definition.correlation_id,
            definition=definition,
        )
        house.book.move(
            Entity.WORKSTREAM, None, record, WorkstreamTrigger.SUBMITTED,
            reason=wish.request.why, who=wish.request.who, correlation_id=record.correlation_id,
        )  # fmt: skip
        seat = WorkstreamSeat(house, record, definition)
        seat.graph.add(definition.tasks)
        open_workstream(house, seat)
        answer.give(Done(record.id, record.state, 1))


def open_workstream(house: House, seat: WorkstreamSeat) -> Any:
    """Bring a workstream into memory. Answers its actor."""
    record = seat.record
    ref = house.workstreams[record.id] = house.spawn(WorkstreamActor, seat, f"workstream {record.id}")
    if record.parent_id is not None:
        house.children.setdefault(record.parent_id, {})[record.id] = None
    return ref


def _body(wish: Wish) -> Any:
    """What makes a request the same request."""
    request = wish.request
    return [request.target if wish.definition is None else None, request.why, request.output, wish.definition]
