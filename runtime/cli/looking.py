"""How commands look into a database: with a reader of their own, whoever has it open, and changing nothing."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from understudy.runtime.cli.output import telling_errors
from understudy.runtime.reading import Reading

T = TypeVar("T")


def look(database: Path, at: Callable[[Reading], Awaitable[T]]) -> T:
    """What is found there. Exits where there is nothing to look at."""
    import anyio

    async def run() -> T:
        async with Reading(database) as reading:
            return await at(reading)

    with telling_errors():
        return anyio.run(run)
