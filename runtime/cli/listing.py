"""`understudy ls`, `worker ls` and `breaker ls`: what there is, and how it stands."""

from typing import Annotated

import msgspec
import typer

from understudy.actors.lifecycle import TASK, Document, Entity, Trait
from understudy.actors.records import WorkstreamRecord
from understudy.runtime.cli.options import DEFAULT_DATABASE, AsDocument, AsJson, Database
from understudy.runtime.cli.output import print_json, print_table
from understudy.runtime.cli.wording import cut, find_states, in_words, instant, require_words, say_state, span, took

EVERYTHING = 1_000_000
_ENDED = TASK.having(Trait.TERMINAL)


class Line(msgspec.Struct, frozen=True):
    """A workstream in a list."""

    id: str
    name: str | None
    state: str
    generation: int
    done: int
    total: int
    created_at: int
    started_at: int | None
    completed_at: int | None
    last_error: str | None


def ls(
    state: Annotated[list[str] | None, typer.Option("--state", help="Only these; may be given again.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20,
    everything: Annotated[bool, typer.Option("--all", help="However many there are.")] = False,
    database: Database = DEFAULT_DATABASE,
    document: AsDocument = None,
    as_json: AsJson = False,
) -> None:
    """List workstreams, the newest first."""
    from understudy.adapters.clock import wall_us
    from understudy.runtime.cli.looking import look
    from understudy.runtime.reading import Reading

    require_words(Entity.WORKSTREAM, document)
    wanted = [each for word in state for each in find_states(Entity.WORKSTREAM, word, document)] if state else None

    async def find(reading: Reading) -> list[Line]:
        found = await reading.newest_workstreams(states=wanted, limit=EVERYTHING if everything else limit)
        lines = [_line(each, await reading.count_tasks(each.id), document) for each in found]
        return [line for line in lines if not state or line.state in state]

    lines, now = look(database, find), wall_us()
    if as_json:
        print_json(lines)
        return
    rows = [
        [line.id, line.name, line.state, f"{line.done}/{line.total}", f"{span(now - line.created_at)} ago",
         took(line.started_at, line.completed_at, now), cut(line.last_error)]
        for line in lines
    ]  # fmt: skip
    print_table(None, ["id", "name", "state", "tasks", "created", "took", "last error"], rows)


def list_workers(database: Database = DEFAULT_DATABASE, document: AsDocument = None, as_json: AsJson = False) -> None:
    """List workers as they were seen last."""
    from understudy.runtime.cli.looking import look

    require_words(Entity.WORKER, document)
    found = look(database, lambda reading: reading.workers())
    if as_json:
        print_json(in_words(Entity.WORKER, found, document))
        return
    rows = [
        [each.id, each.kind, say_state(Entity.WORKER, each, document), len(each.task_ids), each.max_concurrent_tasks,
         ", ".join(each.capabilities), instant(each.updated_at), cut(each.last_error)]
        for each in found
    ]  # fmt: skip
    print_table(None, ["id", "kind", "state", "tasks", "at most", "offers", "changed", "last error"], rows)


def list_breakers(database: Database = DEFAULT_DATABASE, document: AsDocument = None, as_json: AsJson = False) -> None:
    """List the breakers of tools."""
    from understudy.runtime.cli.looking import look

    require_words(Entity.BREAKER, document)
    found = look(database, lambda reading: reading.breakers())
    if as_json:
        print_json(
            [{**msgspec.to_builtins(each), "state": say_state(Entity.BREAKER, each, document)} for each in found]
        )
        return
    rows = [
        [each.id, say_state(Entity.BREAKER, each, document), each.failures, instant(each.due_at), each.probe_task_id,
         cut(each.last_error)]
        for each in found
    ]  # fmt: skip
    print_table(None, ["tool", "state", "failures", "open until", "probe", "last error"], rows)


def _line(record: WorkstreamRecord, counted: dict[str, int], document: Document | None) -> Line:
    planned = len(msgspec.to_builtins(record.definition).get("tasks", ()))  # they leave it when each has a record
    return Line(
        record.id,
        record.name,
        say_state(Entity.WORKSTREAM, record, document),
        record.generation,
        sum(count for state, count in counted.items() if state in _ENDED),
        max(sum(counted.values()), planned),
        record.created_at,
        record.started_at,
        record.completed_at,
        record.last_error,
    )
