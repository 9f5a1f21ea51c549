"""What can be stored of a result, how its size is counted, and that refusing a huge one costs no memory."""

import datetime
import enum
import tracemalloc
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.adapters.tools.storing import Unstorable, to_stored


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Sparse(msgspec.Struct, omit_defaults=True, rename="camel"):
    first_name: str
    note: str = "n" * 100
    items: list[int] = []


@dataclass
class Row:
    at: datetime.date
    of: Any = None


class Pair(NamedTuple):
    a: int
    b: int


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(JSON)
def test_what_is_json_is_stored_as_it_is_with_its_exact_size_up_to_the_last_byte(value: Any) -> None:
    size = len(msgspec.json.encode(value))
    assert to_stored(value, bytes_max=size) == (value, size)
    if isinstance(value, dict | list) or (isinstance(value, str) and len(value) >= 1_000):
        with pytest.raises(Unstorable):
            to_stored(value, bytes_max=size - 1)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Row(datetime.date(2030, 1, 2), {1}), {"at": "2030-01-02", "of": [1]}),
        (Sparse("a"), {"firstName": "a"}),
        ((1, Pair(2, 3)), [1, [2, 3]]),
        (OrderedDict(a=Text("b")), {"a": "b"}),
        (Colour.RED, "red"),
        (b"ab", "YWI="),
        ([datetime.timedelta(days=1)], ["P1D"]),
    ],
)
def test_what_msgspec_can_write_is_stored_as_json_gives_it_back(value: Any, stored: Any) -> None:
    assert to_stored(value) == (stored, len(msgspec.json.encode(stored)))


def test_defaults_that_are_not_written_do_not_count() -> None:
    many = [Sparse("a") for _ in range(1_000)]
    assert to_stored(many, bytes_max=20_000)[1] < 20_000


def test_the_stored_value_is_a_copy() -> None:
    value = {"items": [1]}
    stored, _ = to_stored(value)
    value["items"].append(2)
    assert stored == {"items": [1]}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([Row(datetime.date(2030, 1, 2), float("inf"))], "$.with[0].of: inf"),
        ([Sparse("\ud800")], "$.with[0].firstName: the text holds half"),
        ({"a b": object()}, '$.with["a b"]: object cannot'),
        ({"\ud800": 1}, "half of a surrogate pair"),
        ([msgspec.UNSET], "$.with[0]: UnsetType cannot"),
        ([msgspec.Raw(b"nan")], "$.with[0]: Raw cannot"),
        (-(2**63) - 1, "$.with: the integer is beyond 64 bits"),
    ],
)
def test_an_offender_is_named_by_its_path(value: Any, says: str) -> None:
    with pytest.raises(Unstorable) as caught:
        to_stored(value, "$.with")
    assert says in str(caught.value)


def test_what_is_small_only_because_it_is_shared_is_refused_too() -> None:
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]  # 2 to the 60th items when it is written out
    with pytest.raises(Unstorable, match="> 1 MiB: return a file"):
        to_stored(value)


@pytest.mark.parametrize(
    "value",
    ["x" * 50_000_000, ["x" * 500_000] * 1_000, [1] * 5_000_000, {"a": {"b": b"x" * 50_000_000}}],
    ids=["text", "texts", "list", "bytes"],
)
def test_refusing_what_is_too_large_costs_no_memory(value: Any) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Unstorable, match="> 1 MiB: return a file"):
            to_stored(value)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
