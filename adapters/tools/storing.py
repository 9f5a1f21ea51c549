"""Results as they are stored: JSON, of a bounded size. What cannot be stored is refused with the path to it.

A value is walked before anything of it is encoded, with a budget of bytes: a huge one costs no memory to refuse.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, Final, cast

import msgspec

from understudy.actors.definition.problems import step
from understudy.actors.errors import UnderstudyError
from understudy.actors.ports.workplace import OUTPUT_BYTES_MAX
from understudy.adapters.tools.sizes import limit, too_large

DEPTH_MAX: Final = 64  # as in definitions, so that whatever walks a value stays shallow
_kind_of: Final = cast("Callable[[object], type[object]]", type)  # a type checker loses the type of Any
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_SHORT: Final = 1_000


class Unstorable(UnderstudyError):
    """A value that cannot be stored. Another attempt would give the same again."""

    permanent = True

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


def to_stored(value: Any, path: str = "$", bytes_max: int = OUTPUT_BYTES_MAX) -> tuple[Any, int]:
    """A value as JSON gives it back, a copy of its own, and its size in bytes. Raises `Unstorable`."""
    kind = _kind_of(value)
    if value is None or kind is bool or (kind is str and len(value) < _SHORT and value.isascii()):
        return value, len(_encode(value))
    walk = _Walk(bytes_max)
    try:
        walk.check(value, 0)
        data = _encode(value)
    except _Offence as offence:
        raise Unstorable(offence.path_from(path), offence.why) from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        # The walk has let it pass, so it changed meanwhile, or msgspec has a rule of its own.
        raise Unstorable(path, f"{_name(value)} cannot be stored as JSON: {error}") from None
    if len(data) > bytes_max:
        raise Unstorable(path, too_large(len(data), bytes_max))
    return (value if kind is int or kind is float else _decode(data)), len(data)


class _Offence(Exception):
    """What is wrong, and the steps to it, the last one first."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.steps: list[str | int] = []

    def path_from(self, path: str) -> str:
        for each in reversed(self.steps):
            path = step(path, each.encode(errors="backslashreplace").decode() if isinstance(each, str) else each)
        return path


class _Walk:
    """Goes through a value and counts what its JSON would take at least."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.left = bytes_max

    def check(self, value: Any, depth: int) -> None:
        kind = _kind_of(value)
        if kind is str:
            self._check_text(value)
        elif kind is int:
            self._check_int(value)
        elif kind is float:
            self._check_float(value)
        elif value is None or kind is bool:
            self._take(4)
        elif depth > DEPTH_MAX:
            raise _Offence(f"nested deeper than {DEPTH_MAX} levels")
        elif isinstance(value, dict):
            self._check_dict(cast("Any", value), depth)
        elif isinstance(value, list | tuple | set | frozenset):
            self._check_items(cast("Any", value), depth)
        else:
            self._check_other(value, depth)

    def _check_dict(self, value: dict[Any, Any], depth: int) -> None:
        self._refuse_beyond(5 * len(value))  # "":1,
        self._take(1 if value else 2)  # the last item has no comma
        for key, each in value.items():
            if not isinstance(key, str):
                raise _Offence(f"the key {key!r:.100} is not a text")
            try:
                self._check_text(key)
                self.check(each, depth + 1)
            except _Offence as offence:
                offence.steps.append(key)
                raise

    def _check_items(self, value: list[Any], depth: int) -> None:
        self._refuse_beyond(2 * len(value))  # 1,
        self._take(1 if value else 2)
        for index, each in enumerate(value):
            try:
                self.check(each, depth + 1)
            except _Offence as offence:
                offence.steps.append(index)
                raise

    def _check_other(self, value: Any, depth: int) -> None:
        if isinstance(value, msgspec.Struct):
            self._check_fields(_fields_of(value), depth)
        elif is_dataclass(value) and not isinstance(value, type):
            self._check_fields([(each.name, getattr(value, each.name, msgspec.UNSET)) for each in fields(value)], depth)
        elif isinstance(value, bytes | bytearray | memoryview):
            self._refuse_beyond(len(cast("bytes", value)) * 4 // 3)
            self._take(len(cast("bytes", value)) * 4 // 3 + 2)
        elif isinstance(value, float):
            self._check_float(value)
        elif isinstance(value, str):
            self._check_text(value)
        elif isinstance(value, int):
            self._check_int(value)
        else:
            self._check_leaf(value)

    def _check_fields(self, given: list[tuple[str, Any]], depth: int) -> None:
        self._take(1)
        for name, each in given:
            if each is msgspec.UNSET:
                continue
            try:
                self.check(each, depth + 1)
            except _Offence as offence:
                offence.steps.append(name)
                raise

    def _check_leaf(self, value: Any) -> None:
        """A date, a number of another kind, or what msgspec does not know."""
        try:
            data = _encode(value)
            _decode(data)
        except Exception:  # noqa: BLE001, RUF100 - whatever the value's own code raises
            raise _Offence(f"{_name(value)} cannot be stored as JSON") from None
        self._take(len(data))

    def _check_text(self, value: str) -> None:
        self._refuse_beyond(len(value))
        try:
            self._take(len(value) + 2 if value.isascii() else len(value.encode()) + 2)
        except UnicodeEncodeError:
            raise _Offence("the text holds half of a surrogate pair, which UTF-8 cannot hold") from None

    def _check_int(self, value: int) -> None:
        if not _INT_MIN <= value <= _INT_MAX:
            raise _Offence("the integer is beyond 64 bits: return it as a text")
        self._take(1)

    def _check_float(self, value: float) -> None:
        if not isfinite(value):
            raise _Offence(f"{float(value)} cannot be stored as JSON")
        self._take(3)

    def _take(self, size: int) -> None:
        self.left -= size + 1  # a comma or a bracket
        if self.left < -1:
            raise _Offence(f"result > {limit(self.bytes_max)}: return a file")

    def _refuse_beyond(self, size: int) -> None:
        if size > self.bytes_max:
            raise _Offence(too_large(size, self.bytes_max))


def _fields_of(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """What is written of a struct, by the names that it is written under."""
    names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
    given = [(shown, getattr(value, name)) for name, shown in names]
    if not value.__struct_config__.omit_defaults:
        return given
    defaults = value.__struct_defaults__
    first = len(given) - len(defaults)
    return given[:first] + [
        (shown, each)
        for (shown, each), default in zip(given[first:], defaults, strict=True)
        if each is not default and not (isinstance(each, list | dict | set) and not each)
    ]


def _plain(value: Any) -> Any:
    """What msgspec does not take by itself: the children of the types of JSON."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    raise TypeError(f"{_name(value)} cannot be stored as JSON")


_encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode
_decode: Final = msgspec.json.Decoder().decode


def _name(value: object) -> str:
    return type(value).__name__
