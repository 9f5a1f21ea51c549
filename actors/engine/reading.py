"""From the store back into memory: workstreams with their tasks, as they were."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from understudy.actors.definition import Task, Workstream
from understudy.actors.engine.graph import Node
from understudy.actors.engine.house import House
from understudy.actors.engine.workstream_seat import WorkstreamSeat
from understudy.actors.lifecycle import TASK, Entity, TaskState
from understudy.actors.ports.store import Store
from understudy.actors.records import Record, TaskRecord, WorkstreamRecord

PAGE = 1_000


async def read_all(
    store: Store, entity: Entity, *, states: Sequence[str] | None = None, workstream_id: str | None = None
) -> AsyncIterator[Record]:
    """Every record of a kind, page by page."""
    after = ""
    while page := await store.page(entity, states=states, workstream_id=workstream_id, after=after, limit=PAGE):
        for record in page:
            yield record
        after = page[-1].id


async def read_workstream(store: Store, workstream_id: str) -> tuple[WorkstreamRecord, list[TaskRecord]] | None:
    """A workstream and its tasks, without the outputs: those are read when they are needed."""
    record = await store.load(Entity.WORKSTREAM, workstream_id)
    if not isinstance(record, WorkstreamRecord):
        return None
    tasks = [
        msgspec.structs.replace(task, output=None) if TASK.is_terminal(task.state) else task
        async for task in read_all(store, Entity.TASK, workstream_id=workstream_id)
        if isinstance(task, TaskRecord)
    ]
    return record, tasks


def definition_of(record: WorkstreamRecord) -> Workstream:
    """What a workstream was submitted as, but for its tasks once each has a record."""
    return msgspec.convert(record.definition, Workstream)


def seat_of(house: House, record: WorkstreamRecord, tasks: list[TaskRecord]) -> WorkstreamSeat:
    """A workstream as it was left. What had not been created yet follows from its definition."""
    definition = definition_of(record)
    seat = WorkstreamSeat(house, record, definition)
    created = {task.key for task in tasks}
    nodes = [(_node_of(task), task.map_of) for task in tasks]
    nodes += [(Node(task), None) for task in definition.tasks if task.id not in created]
    seat.graph.restore(nodes)
    seat.restored = {
        task.key: task for task in tasks if task.state is not TaskState.PENDING and not TASK.is_terminal(task.state)
    }
    return seat


def _node_of(record: TaskRecord) -> Node:
    definition = record.definition or Task(record.key)
    node = Node(definition, record.key, item=record.item)
    node.state = record.state
    node.trigger = record.trigger or ""
    node.generation = record.generation
    node.created_at = record.created_at
    return node
