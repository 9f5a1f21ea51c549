"""What operators ask for, and how they are answered: after the commit, and the same again for the same request."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from understudy.actors.errors import UnderstudyError
from understudy.actors.idempotency import store_answer
from understudy.actors.journal import Book


class Operation(StrEnum):
    """Everything that can be asked for from outside."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    SKIP = "skip"
    RESOLVE = "resolve"
    RESET = "reset"
    GIVE_UP = "give_up"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    TERMINATE = "terminate"
    TRIP = "trip"
    RESET_BREAKER = "reset_breaker"


class Request(msgspec.Struct, frozen=True):
    """One wish. `target` is the id of a workstream, a task, a worker or a breaker."""

    operation: Operation
    target: str
    who: str | None = None
    why: str | None = None
    request_id: str | None = None
    output: Any = None  # what a task that is resolved by hand has given


class Done(msgspec.Struct, frozen=True):
    """What became of a request: how its target stands now."""

    target: str
    state: str
    generation: int


class NotFound(UnderstudyError):
    """There is no record of this id."""


class Conflict(UnderstudyError):
    """It cannot be done to this record as it is."""


class Answer:
    """Where the answer to a request goes. It is given when all that was written down before is durable."""

    __slots__ = ("_body", "_book", "_fail", "_request_id", "_send", "operation")

    def __init__(
        self,
        book: Book,
        operation: Operation,
        send: Callable[[Any], None],
        fail: Callable[[BaseException], None],
        request_id: str | None = None,
        body: Any = None,
    ) -> None:
        self._book = book
        self._send = send
        self._fail = fail
        self._request_id = request_id
        self._body = body
        self.operation = operation

    def give(self, answer: Done) -> None:
        """Answer after the commit, and keep the answer with it where the request has an id."""
        if self._request_id is not None:
            stored = store_answer(self._request_id, self.operation, self._body, answer, self._book.now_us())
            self._book.add_answer(stored)
        self._book.then(lambda: self._send(answer))

    def refuse(self, error: BaseException) -> None:
        """Nothing has changed, so there is nothing to wait for."""
        self._fail(error)
