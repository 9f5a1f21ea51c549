"""Why a record is as it is, from records alone: for what has left memory, and for a database that nobody has open."""

from collections.abc import AsyncIterator, Sequence

from understudy.actors.definition import OnFailure
from understudy.actors.engine import explaining
from understudy.actors.engine.explaining import Explanation, Standing
from understudy.actors.engine.reading import definition_of
from understudy.actors.engine.remedies import read_target
from understudy.actors.engine.requests import NotFound
from understudy.actors.lifecycle import (
    TASK,
    WORKSTREAM,
    BreakerState,
    Entity,
    TaskState,
    breaks_workstream,
    satisfies_dependents,
)
from understudy.actors.records import BreakerRecord, TaskRecord, WorkstreamRecord, task_id
from understudy.runtime.records import Records

_WAITING = frozenset({TaskState.RETRYING, TaskState.CIRCUIT_OPEN, TaskState.HALF_OPEN})


async def explain(records: Records, target: str) -> Explanation:
    """Of a workstream, a task, a worker or a breaker. Raises `NotFound`."""
    entity, record_id = read_target(target)
    match entity:
        case Entity.WORKSTREAM:
            return await _of_workstream(records, await records.workstream(record_id))
        case Entity.TASK:
            return await _of_task(records, record_id)
        case Entity.WORKER:
            return explaining.of_worker(await records.worker(record_id))
        case Entity.BREAKER:
            return explaining.of_breaker(await records.breaker(record_id))


async def stand_of(records: Records, workstream: WorkstreamRecord) -> Standing:
    """How the tasks of a workstream stand."""
    total = ended = active = 0
    waiting: dict[str, str] = {}
    broken: list[str] = []
    async for task in records.all_tasks(workstream.id):
        total += 1
        if TASK.is_terminal(task.state):
            ended += 1
        elif task.state is not TaskState.PENDING:
            active += 1
        if task.state in _WAITING:
            waiting[task.key] = task.state
        if breaks_workstream(task.state, task.trigger) and not task.optional:
            broken.append(task.key)
    planned = len(definition_of(workstream).tasks)  # they are left out once each has a record
    return Standing(max(total, planned), ended, active, waiting, tuple(broken))


async def held_breaker(records: Records, task: TaskRecord) -> BreakerRecord | None:
    """The breaker of a task's tool, where it is not closed."""
    name = task.definition and (task.definition.tool or task.definition.call)
    try:
        record = await records.breaker(name or "")
    except NotFound:
        return None
    return None if record.state is BreakerState.CLOSED else record


async def _of_workstream(records: Records, record: WorkstreamRecord) -> Explanation:
    standing = await stand_of(records, record)
    if WORKSTREAM.is_terminal(record.state):
        return explaining.of_ended_workstream(record, standing.broken)
    return explaining.of_workstream(record, standing)


async def _of_task(records: Records, record_id: str) -> Explanation:
    workstream = await records.workstream(record_id.partition("/")[0])
    definition = definition_of(workstream)
    try:
        task = await records.task(record_id)
    except NotFound:
        planned = next((each for each in definition.tasks if task_id(workstream.id, each.id) == record_id), None)
        if planned is None:
            raise
        return explaining.of_waiting(record_id, "planned", planned.after)
    if TASK.is_terminal(task.state):
        return explaining.of_ended_task(task)
    if task.state is TaskState.PENDING:
        return await _of_pending(records, task, definition.on_failure)
    breaker = await held_breaker(records, task)
    if breaker is None:
        return explaining.of_active(task)
    return explaining.of_active(task, breaker.id, breaker.due_at)


async def _of_pending(records: Records, task: TaskRecord, on_failure: OnFailure) -> Explanation:
    before = [each async for each in _before(records, task)]
    unfinished = [each.key for each in before if not TASK.is_terminal(each.state)]
    unsatisfying = [each.key for each in before if not satisfies_dependents(each.state, each.trigger or "")]
    is_held = bool(unsatisfying) and not unfinished and on_failure is not OnFailure.FAIL
    return explaining.of_waiting(task.id, task.state, unfinished, unsatisfying, is_held=is_held)


async def _before(records: Records, task: TaskRecord) -> AsyncIterator[TaskRecord]:
    """What must end before a task: its dependencies, and the items of a map."""
    for key in task.depends_on:
        yield await records.task(task_id(task.workstream_id, key))
    if task.definition is None or task.definition.each is None:
        return
    after = f"{task.id}."
    while page := await records.tasks(task.workstream_id, after=after):
        items: Sequence[TaskRecord] = [each for each in page if each.map_of == task.key]
        for each in items:
            yield each
        if len(items) < len(page):
            return
        after = page[-1].id
