"""Waiting for something that must not be cut in half."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def _bear() -> None:
    """A cancellation is only borne, and raised afterwards."""


async def uncut(task: "asyncio.Future[T]", when_cancelled: Callable[[], None] = _bear) -> T:
    """Await a task to its end, also when the caller is cancelled meanwhile: then that is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
            when_cancelled()
    if cancelled is not None:
        raise cancelled
    return task.result()
