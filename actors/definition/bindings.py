"""`${...}` in inputs, and `{...}` in the texts of tools: what they refer to.

`${params.name}`, `${secrets.NAME}`, `${item}`, `${task.output}` and what lies below an output, by dots and
`[0]`. A text that is nothing but one `${...}` takes the value as it is; inside a longer text it is written out.
In the texts of tools `{name}` stands for an input, and `{{` and `}}` for braces.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import msgspec

from understudy.actors.definition.problems import step
from understudy.actors.errors import UnderstudyError

_EXPRESSION: Final = re.compile(r"\$\{([^{}]*)\}")
_PARTS: Final = re.compile(r"[^.\[\]]+|\[\d+\]")
_WHOLE: Final = re.compile(r"^[A-Za-z0-9_][\w\-]*(\.[\w\-]+|\[\d+\])*$")
_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\$\{[^{}]*\}|\{([A-Za-z_]\w*)\}")


class Reference(msgspec.Struct, frozen=True):
    """One `${...}`. `parts` is None where it cannot be read."""

    text: str
    parts: tuple[str, ...] | None


def references(value: Any, path: str = "") -> Iterator[tuple[str, Reference]]:
    """Every reference in a value, however deep, with the path to it. Does not recurse."""
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            if "${" in value:
                for match in _EXPRESSION.finditer(value):
                    yield path, parse(match[1])
        elif isinstance(value, dict):
            waiting += ((step(path, str(key)), each) for key, each in cast("Any", value).items())
        elif isinstance(value, list | tuple):
            waiting += ((step(path, index), each) for index, each in enumerate(cast("list[Any]", value)))


def parse(text: str) -> Reference:
    inner = text.strip()
    return Reference(text, tuple(_PARTS.findall(inner)) if _WHOLE.match(inner) else None)


def is_reference(value: Any) -> bool:
    """Whether a value is nothing but one `${...}`."""
    return isinstance(value, str) and _EXPRESSION.fullmatch(value) is not None


def placeholders(texts: tuple[str, ...]) -> dict[str, None]:
    """The names in `{...}` of some texts, in order. `{{` and `}}` stand for themselves."""
    return dict.fromkeys(name for text in texts for name in _PLACEHOLDER.findall(text) if name)


def has_holes(text: str) -> bool:
    """Whether anything is to be put into a text."""
    return "${" in text or bool(placeholders((text,)))


class Unbound(UnderstudyError):
    """A `${...}` that has no value now that it is needed."""


def bind(value: Any, look_up: Callable[[tuple[str, ...]], Any]) -> Any:
    """A value with every reference replaced. What was put in is not looked at again: data refers to nothing."""
    if isinstance(value, str):
        if "${" not in value:
            return value
        whole = _EXPRESSION.fullmatch(value)
        if whole is not None:
            return look_up(parts_of(whole[1]))
        return _EXPRESSION.sub(lambda match: _written(look_up(parts_of(match[1]))), value)
    if isinstance(value, dict):
        return {key: bind(each, look_up) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [bind(each, look_up) for each in cast("list[Any]", value)]
    return value


def bind_text(text: str, look_up: Callable[[tuple[str, ...]], Any]) -> str:
    """A text with every reference written out."""
    return _written(bind(text, look_up))


def fill(text: str, find: Callable[[str, bool], Any], guard: Callable[[str], str] | None = None) -> str:
    """A text of a tool with everything put in, in one pass: what was put in is not looked at again.

    `find` is given what stands between the braces, and whether it is a reference. `guard` sees each value, written.
    """

    def put(match: re.Match[str]) -> str:
        found = match[0]
        if found in ("{{", "}}"):
            return found[0]
        value = _written(find(found[2:-1], True) if found.startswith("$") else find(match[1], False))
        return guard(value) if guard else value

    return _PLACEHOLDER.sub(put, text)


def fill_value(value: Any, find: Callable[[str, bool], Any]) -> Any:
    """The same for a value of any shape. A text that is nothing but one hole takes what is put in as it is."""
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole is None or value in ("{{", "}}"):
            return fill(value, find)
        return find(value[2:-1], True) if value.startswith("$") else find(whole[1], False)
    if isinstance(value, dict):
        return {key: fill_value(each, find) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [fill_value(each, find) for each in cast("list[Any]", value)]
    return value


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of what stands in `${...}`. Raises `Unbound` where it cannot be read."""
    parts = parse(text).parts
    if parts is None:
        raise Unbound(f"${{{text}}} cannot be read")
    return parts


def follow(value: Any, parts: tuple[str, ...], name: str) -> Any:
    """What lies below a value, by keys and `[0]`. Raises `Unbound` where there is nothing."""
    for part in parts:
        key = int(part[1:-1]) if part.startswith("[") else part
        try:
            value = value[key]
        except (LookupError, TypeError):
            where = step("", key).lstrip(".")
            raise Unbound(f"${{{name}}} has no value: there is no {where} in {_shown(value)}") from None
    return value


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
