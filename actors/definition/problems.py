"""What is wrong with a definition: all of it at once, each with its place and, where there is one, a remedy."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

import msgspec

from understudy.actors.errors import UnderstudyError

CANDIDATES_MAX: Final = 5_000  # beyond this a likeness costs more than it helps
_PLAIN: Final = re.compile(r"[\w\-]+")
SHOWN_MAX: Final = 50  # problems in one message; all are in `problems`


def step(path: str, key: str | int) -> str:
    """One step further down a path: `.name`, `[3]`, or `["any other key"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN.fullmatch(key) else f"{path}[{msgspec.json.encode(key).decode()}]"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault. `path` leads to it from `$`, the whole file."""

    path: str
    message: str
    suggestion: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        hint = f" ({self.suggestion})" if self.suggestion else ""
        return f"{place}: {self.path}: {self.message}{hint}" if place else f"{self.path}: {self.message}{hint}"


class DefinitionError(UnderstudyError):
    """A definition that cannot be used. Every problem found is in `problems`."""

    permanent = True  # for a task that submits one: it would be the same again

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_MAX]]
        if len(self.problems) > SHOWN_MAX:
            lines.append(f"and {len(self.problems) - SHOWN_MAX} more")
        super().__init__("\n".join(lines))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A suggestion, where one of the known words is like this one."""
    candidates = [each for _, each in zip(range(CANDIDATES_MAX), known, strict=False)]
    close = get_close_matches(word, candidates, n=1)
    return f"did you mean {close[0]!r}?" if close else None
