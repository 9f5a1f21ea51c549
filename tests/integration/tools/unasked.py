"""The services of an engine that nobody asks for anything: whoever does so fails its test."""

from collections.abc import Sequence
from typing import Any

from understudy.actors.definition import Task, Workstream
from understudy.actors.ports.workplace import Order


class Unasked:
    def output(self, order: Order, line: str) -> None:
        raise AssertionError(f"{order.key} wrote {line!r}")

    def progress(self, order: Order, share: float | None, note: str | None) -> None:
        raise AssertionError(f"{order.key} told of its progress")

    async def spawn(self, order: Order, definition: Workstream, number: int) -> str:
        raise AssertionError(f"{order.key} wanted a child")

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        raise AssertionError(f"somebody waited for {workstream_id}")

    async def add(self, order: Order, tasks: Sequence[Task]) -> None:
        raise AssertionError(f"{order.key} wanted to add tasks")
