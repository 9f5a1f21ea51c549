"""How async work ends. It runs outside the actor that started it and comes back as a message."""

from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")


class Succeeded(msgspec.Struct, Generic[T], frozen=True):
    """The work returned a value."""

    value: T


class Failed(msgspec.Struct, frozen=True):
    """The work raised: any BaseException but its own cancellation."""

    error: BaseException


class Cancelled(msgspec.Struct, frozen=True):
    """The work was cancelled, and ended."""


Outcome: TypeAlias = Succeeded[T] | Failed | Cancelled
AnyOutcome: TypeAlias = Succeeded[Any] | Failed | Cancelled
