"""`${...}` in inputs, and `{...}` in the texts of tools: what they refer to.

`${params.name}`, `${secrets.NAME}`, `${item}`, `${task.output}` and what lies below an output, by dots and
`[0]`. A text that is nothing but one `${...}` takes the value as it is; inside a longer text it is written out.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from understudy.actors.definition.problems import step

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
