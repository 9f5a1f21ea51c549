"""How a failed attempt is told: as a `Report`, whatever was raised, of a bounded size and without secrets.

Also the errors that a task may raise to say whether another attempt is of use.
"""

import traceback
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from understudy.actors.ports.workplace import Report

TEXT_MAX: Final = 4_000  # characters of an error that are kept
FRAMES_SHOWN: Final = 8
_CUT: Final = "\n[...]\n"


class PermanentError(Exception):
    """Raised by a task for which another attempt is no use."""

    permanent = True


class TransientError(Exception):
    """Raised by a task for which another attempt may help, after `retry_after` seconds where they are given."""

    def __init__(self, *args: object, retry_after: float | None = None) -> None:
        super().__init__(*args)
        self.retry_after = retry_after


def describe(error: BaseException, redact: Callable[[str], str] | None = None) -> Report:
    """The report of an attempt that ended in an exception."""
    what = _writable(_text_of(error), redact)
    where = _writable(_traceback_of(error), redact)
    return Report(
        error=cut(what),
        kinds=_kinds(type(error)),
        text=cut(f"{what}\n{where}" if where else what),
        retry_after_s=_seconds(_attribute(error, "retry_after")),
        permanent=_attribute(error, "permanent") is True,
    )


def cut(text: str) -> str:
    """A text of at most `TEXT_MAX` characters: the head and the tail of a longer one."""
    if len(text) <= TEXT_MAX:
        return text
    half = (TEXT_MAX - len(_CUT)) // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


def _text_of(error: BaseException) -> str:
    name = type(error).__name__
    try:
        if not isinstance(error, Exception):
            return f"exited with {error!r}"
        said = str(error)
    except BaseException:  # its own code fails as well
        return f"{name}: its text cannot be read"
    return f"{name}: {said}" if said else name


def _traceback_of(error: BaseException) -> str:
    try:
        return "".join(traceback.format_tb(error.__traceback__, limit=-FRAMES_SHOWN)).rstrip()
    except Exception:  # source that cannot be read must not hide the error
        return ""


def _kinds(kind: type[BaseException]) -> tuple[str, ...]:
    """Names of a type and its parents, with and without module."""
    return tuple(
        name
        for each in kind.__mro__
        if issubclass(each, BaseException)
        for name in (f"{each.__module__}.{each.__qualname__}", each.__name__)
    )


def _attribute(error: BaseException, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except BaseException:  # a property that fails
        return None


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 and isfinite(value) else None


def _writable(text: str, redact: Callable[[str], str] | None) -> str:
    """Without secrets, and such that UTF-8 can hold it. Before it is cut: half a secret would not be found."""
    shown = redact(text) if redact else text
    return shown if shown.isascii() else shown.encode(errors="backslashreplace").decode()
