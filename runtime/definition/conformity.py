"""Whether data has the shape of a type: every mismatch at once, where msgspec stops at the first."""

from collections.abc import Iterator
from enum import Enum
from functools import reduce
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from understudy.actors.definition.problems import Problem, did_you_mean, step

Path = tuple[str | int, ...]


class Mismatch(msgspec.Struct, frozen=True):
    """One value that does not fit, or a field that is unknown or missing."""

    path: Path
    problem: Problem
    missing: bool = False


def write_path(path: Path) -> str:
    return reduce(step, path, "$")


def find_mismatches(data: Any, kind: Any) -> list[Mismatch]:
    """Every place where data does not fit a type, in the order of the data."""
    found: list[Mismatch] = []
    waiting: list[tuple[Path, Any, Any]] = [((), data, kind)]
    while waiting:
        path, value, kind = waiting.pop()
        plain = _strip(kind)
        if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and (value is not None or not path):
            if isinstance(value, dict):
                found += _of_struct(path, cast("dict[str, Any]", value), plain, waiting)
            else:
                found.append(_mismatch(path, f"expected a mapping, got {_name(value)}"))
        elif get_origin(plain) is tuple and isinstance(value, list):
            inner = get_args(plain)[0]
            waiting += (((*path, index), each, inner) for index, each in enumerate(cast("Any", value)))
        elif get_origin(plain) is dict and isinstance(value, dict):
            key_kind, inner = get_args(plain)
            for key, each in cast("dict[str, Any]", value).items():
                found += _of_leaf((*path, key), key, key_kind)
                waiting.append(((*path, key), each, inner))
        else:
            found += _of_leaf(path, value, kind)
    return sorted(found, key=lambda each: [(isinstance(part, str), str(part).zfill(9)) for part in each.path])


def _of_struct(path: Path, value: dict[str, Any], kind: type[msgspec.Struct], waiting: list[Any]) -> list[Mismatch]:
    found: list[Mismatch] = []
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, each in value.items():
        if key in fields:
            waiting.append(((*path, key), each, hints[fields[key].name]))
        else:
            known = f"known are {', '.join(fields)}"
            found.append(_mismatch((*path, key), f"unknown field {key!r}", did_you_mean(key, fields) or known))
    for name, field in fields.items():
        if field.required and name not in value:
            found.append(Mismatch((*path, name), Problem(write_path(path), f"the field {name!r} is missing"), True))
    return found


def _of_leaf(path: Path, value: Any, kind: Any) -> list[Mismatch]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what = str(error).split(" - at `")[0]
        if "matching regex" in what:
            what = f"{value!r} does not have the right form"
        return [_mismatch(path, what[0].lower() + what[1:].replace("`", ""), _suggest(value, kind))]
    return []


def _suggest(value: Any, kind: Any) -> str | None:
    plain = _strip(kind)
    if isinstance(plain, type) and issubclass(plain, Enum):
        words = [str(member.value) for member in plain]
        return did_you_mean(str(value), words) or f"one of {', '.join(words)}"
    if isinstance(value, str) and plain is str:
        return next((each.description for each in _annotations(kind) if isinstance(each, msgspec.Meta)), None)
    return None


def _annotations(kind: Any) -> Iterator[Any]:
    """What is said of a type, from the inside out: of the pattern before the field."""
    if get_origin(kind) is Annotated:
        inner, *said = get_args(kind)
        yield from _annotations(inner)
        yield from said
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _annotations(each)


def _strip(kind: Any) -> Any:
    """A type without its annotations and without `| None`."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        others = [each for each in get_args(kind) if each is not NoneType]
        if len(others) == 1:
            return _strip(others[0])
    return kind


def _mismatch(path: Path, what: str, suggestion: str | None = None) -> Mismatch:
    return Mismatch(path, Problem(write_path(path), what, suggestion))


def _name(value: Any) -> str:
    kind: type = value.__class__
    return _NAMES.get(kind, kind.__name__)


_NAMES: dict[type, str] = {
    str: "text",
    list: "a list",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    NoneType: "nothing",
}
