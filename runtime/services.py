"""What running tasks may ask of their runtime: children, more tasks, and to be heard."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.actors.definition import DefinitionError, Problem, Task, Workstream
from understudy.actors.definition.limits import DEPTH_MAX
from understudy.actors.engine import messages as m
from understudy.actors.kernel import Reply
from understudy.actors.ports.workplace import Order
from understudy.runtime.handles import Handle

if TYPE_CHECKING:
    from understudy.runtime.runtime import Runtime


class RuntimeServices:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime

    def output(self, order: Order, line: str) -> None:
        self._runtime.watchers.heard(order, line)

    def progress(self, order: Order, share: float | None, note: str | None) -> None:
        shown = "" if share is None else f"{share:.0%}"
        self._runtime.watchers.heard(order, f"{shown} {note or ''}".strip())
        self._runtime.log.info(
            "progress", workstream=order.workstream_id, task=order.key, attempt=order.attempt, share=share, note=note
        )

    async def spawn(self, order: Order, definition: Workstream, number: int) -> str:
        """A child's id follows from who asks for it: the next attempt of the same task finds the same child."""
        parent = await self._runtime.workstream(order.workstream_id)
        if parent.depth >= DEPTH_MAX:
            what = f"workstreams are nested {DEPTH_MAX} deep at most; {parent.id} is at depth {parent.depth}"
            raise DefinitionError([Problem("$", what)])
        child_id = f"{parent.id}.{order.key}.{order.generation}.{number}"
        child = msgspec.structs.replace(definition, id=child_id)
        return (await self._runtime.submit_child(child, parent)).id

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        return await Handle(self._runtime, workstream_id).result()

    async def add(self, order: Order, tasks: Sequence[Task]) -> None:
        """What a task adds waits for it, unless it says what else it waits for."""
        waiting = tuple(each if each.after else msgspec.structs.replace(each, after=(order.key,)) for each in tasks)
        stream = self._runtime.house.workstreams[order.workstream_id]

        def ask(reply: Reply[None]) -> m.AddTasks:
            return m.AddTasks(waiting, order.key, reply)

        await stream.ask(ask)
