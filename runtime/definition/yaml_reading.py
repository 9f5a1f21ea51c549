"""YAML read event by event, so that hostile input is refused while it is being read.

What is read is YAML 1.2's core: `true`, `false`, `null`, numbers, texts; `yes`, `on` and `12:30` are texts.
Refused: tags, duplicate keys, more than one document, deep nesting, and aliases that multiply.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from understudy.actors.definition.problems import DefinitionError, Problem, step

DEPTH_MAX: Final = 64  # no definition needs more, and everything that walks one stays shallow
ALIASED_MAX: Final = 100_000  # values that aliases may repeat, all together

Position = tuple[int, int]  # line and column, from 1

_INTEGER: Final = re.compile(r"[-+]?[0-9]+$|0x[0-9a-fA-F]+$|0o[0-7]+$")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_INFINITE: Final = re.compile(r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)$")
_WORDS: Final[dict[str, Any]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def read_yaml(text: str, file: str | None = None) -> Any:
    """The data of a text that holds one document."""
    return _Reader(file).read(text)


def locate(text: str) -> dict[str, Position]:
    """Where each value of a text stands, by path. For a text that can be read."""
    return dict(_positions(text))


class _Open:
    """A mapping or a sequence that is being read."""

    __slots__ = ("anchor", "depth", "is_list", "key", "size", "value")

    def __init__(self, is_list: bool, anchor: str | None) -> None:
        self.value: Any = [] if is_list else {}
        self.is_list = is_list
        self.anchor = anchor
        self.key: Any = _NO_KEY
        self.size = 1
        self.depth = 1  # levels, its own among them


_NO_KEY: Final = object()


class _Reader:
    def __init__(self, file: str | None) -> None:
        self.file = file
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int, int]] = {}  # value, size and depth
        self.aliased = 0
        self.root: Any = None
        self.documents = 0

    def read(self, text: str) -> Any:
        try:
            for event in _events(text):
                self._take(event)
        except yaml.YAMLError as error:
            mark = cast("Any", getattr(error, "problem_mark", None))
            what = str(getattr(error, "problem", None) or error).splitlines()[0]
            place = (mark.line + 1, mark.column + 1) if mark else (None, None)
            raise DefinitionError([Problem("$", what, None, self.file, *place)]) from None
        return self.root

    def _take(self, event: Any) -> None:
        kind: Any = event.__class__
        if kind is ScalarEvent:
            if event.tag is not None:
                self._refuse(event, f"the tag {event.tag} is not allowed")
            try:
                value = _scalar(event.value) if event.implicit[0] else event.value
            except ValueError as error:  # such as a number of five thousand digits
                self._refuse(event, str(error))
            self._put(event, value, 1, 0)
            if event.anchor is not None:
                self.anchors[event.anchor] = (value, 1, 0)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if event.tag is not None:
                self._refuse(event, f"the tag {event.tag} is not allowed")
            if len(self.stack) >= DEPTH_MAX:
                self._refuse(event, f"nested deeper than {DEPTH_MAX} levels")
            self.stack.append(_Open(kind is SequenceStartEvent, event.anchor))
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            done = self.stack.pop()
            if done.anchor is not None:
                self.anchors[done.anchor] = (done.value, done.size, done.depth)
            self._put(event, done.value, done.size, done.depth)
        elif kind is AliasEvent:
            self._repeat(event)
        elif kind is DocumentStartEvent:
            self.documents += 1
            if self.documents > 1:
                self._refuse(event, "a file holds one document")

    def _put(self, event: Any, value: Any, size: int, depth: int) -> None:
        if not self.stack:
            self.root = value
            return
        parent = self.stack[-1]
        parent.size += size
        parent.depth = max(parent.depth, depth + 1)
        if parent.is_list:
            parent.value.append(value)
        elif parent.key is _NO_KEY:
            if type(value) is not str:
                self._refuse(event, f"a key must be a text, not {value!r}; put it in quotes")
            if value in parent.value:
                self._refuse(event, f"the key {value!r} is there twice")
            parent.key = value
        else:
            parent.value[parent.key] = value
            parent.key = _NO_KEY

    def _repeat(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            self._refuse(event, f"there is no anchor &{event.anchor} before it")
        value, size, depth = self.anchors[event.anchor]
        if len(self.stack) + depth > DEPTH_MAX:
            self._refuse(event, f"nested deeper than {DEPTH_MAX} levels")
        self.aliased += size
        if self.aliased > ALIASED_MAX:
            self._refuse(event, f"aliases repeat more than {ALIASED_MAX} values")
        self._put(event, value, size, depth)

    def _refuse(self, event: Any, what: str) -> NoReturn:
        mark = event.start_mark
        raise DefinitionError([Problem("$", what, None, self.file, mark.line + 1, mark.column + 1)])


def _events(text: str) -> Iterator[Any]:
    parser: Any = yaml.CSafeLoader(text)
    try:
        while (event := parser.get_event()) is not None:
            yield event
    finally:
        parser.dispose()


def _scalar(text: str) -> Any:
    """What a plain text stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "0123456789+-.":
        if _INTEGER.match(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.match(text):
            return float(text)
        if match := _INFINITE.match(text):
            return float(match[1] + match[2])
    return text


def _positions(text: str) -> Iterator[tuple[str, Position]]:
    """A second pass over a text that has been read without complaint."""
    stack: list[list[Any]] = []  # [path, next index or None, pending key]
    for event in _events(text):
        kind: Any = event.__class__
        if kind in (MappingEndEvent, SequenceEndEvent):
            stack.pop()
            continue
        if kind not in (ScalarEvent, AliasEvent, MappingStartEvent, SequenceStartEvent):
            continue
        place = (event.start_mark.line + 1, event.start_mark.column + 1)
        path = "$"
        if stack:
            top = stack[-1]
            if top[1] is not None:
                path = step(top[0], top[1])
                top[1] += 1
            elif top[2] is None:
                key: str = getattr(event, "value", "")  # an alias has none
                top[2] = key
                yield step(top[0], key), place
                continue
            else:
                path = step(top[0], top[2])
                top[2] = None
        if not stack or stack[-1][1] is not None:
            yield path, place  # of a key, the key's own place has been told
        if kind in (MappingStartEvent, SequenceStartEvent):
            stack.append([path, 0 if kind is SequenceStartEvent else None, None])
