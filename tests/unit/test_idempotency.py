"""The same request gets the same answer; the same id for something else is a conflict."""

import pytest

from understudy.actors.errors import MisuseError
from understudy.actors.idempotency import answer_again, digest_of, store_answer
from understudy.actors.ports.store import Batch
from understudy.adapters.stores.memory import MemoryStore

BODY = {"task": "a", "reason": "because"}


async def test_same_request_gets_the_same_answer_until_its_lifetime_ends() -> None:
    store = MemoryStore()
    await store.commit(Batch(answers=[store_answer("r", "cancel", BODY, {"ok": True}, now_us=0, lifetime_s=60)]))
    again = answer_again(await store.answer_to("r", now=59_999_999), "cancel", BODY)
    assert again is not None
    assert again.answer == {"ok": True}
    assert answer_again(await store.answer_to("r", now=60_000_000), "cancel", BODY) is None


def test_order_of_fields_does_not_matter() -> None:
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 2})


def test_new_request_has_no_answer_yet() -> None:
    assert answer_again(None, "cancel", BODY) is None


@pytest.mark.parametrize(
    ("operation", "body", "message"),
    [
        ("cancel", {"task": "b"}, "request r was cancel with another body; give this one an id of its own"),
        ("skip", BODY, "request r was cancel, not skip; give this one an id of its own"),
    ],
)
def test_same_id_for_something_else_is_a_conflict(operation: str, body: dict[str, str], message: str) -> None:
    stored = store_answer("r", "cancel", BODY, None, now_us=0)
    with pytest.raises(MisuseError, match=message):
        answer_again(stored, operation, body)
