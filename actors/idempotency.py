"""The same request gets the same answer: a request with an id of its own is carried out once.

Within its lifetime the id stands for one operation with one body. The same id with another body is a conflict.
"""

import hashlib
from typing import Any, Final

import msgspec

from understudy.actors.errors import MisuseError
from understudy.actors.records import StoredAnswer

LIFETIME_S: Final = 3_600.0


class RequestConflict(MisuseError):
    """A request id was used before, for something else."""

    def __init__(self, request_id: str, operation: str, before: str) -> None:
        same = operation == before
        what = f"{before} with another body" if same else f"{before}, not {operation}"
        super().__init__(f"request {request_id} was {what}; give this one an id of its own")
        self.request_id = request_id


def digest_of(body: Any) -> str:
    """The same for bodies that say the same, whatever the order of their fields."""
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()


def store_answer(
    request_id: str, operation: str, body: Any, answer: Any, now_us: int, lifetime_s: float = LIFETIME_S
) -> StoredAnswer:
    """The answer to keep for the next request with this id."""
    return StoredAnswer(request_id, operation, digest_of(body), answer, now_us, now_us + int(lifetime_s * 1e6))


def answer_again(stored: StoredAnswer | None, operation: str, body: Any) -> StoredAnswer | None:
    """What was answered before, if this is the same request; None if it is new. Raises `RequestConflict`."""
    if stored is None:
        return None
    if (stored.operation, stored.body_digest) != (operation, digest_of(body)):
        raise RequestConflict(stored.request_id, operation, stored.operation)
    return stored
