"""`understudy history`: how a record came to be as it is, move by move, in our words or a document's."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from understudy.actors.lifecycle import DOCUMENTS, START, Document, Entity
from understudy.actors.lifecycle.vocabulary import HAS_RUN
from understudy.actors.records import Transition
from understudy.runtime.cli.options import DEFAULT_DATABASE, AnyTarget, AsDocument, AsJson, Database
from understudy.runtime.cli.output import REFUSED, fail, print_json, print_table
from understudy.runtime.cli.wording import cut, instant, require_words

if TYPE_CHECKING:
    from understudy.runtime.reading import Reading


def history(
    target: AnyTarget,
    everything: Annotated[bool, typer.Option("--all", help="Of a workstream: its tasks' moves as well.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, the newest.")] = 1_000,
    database: Database = DEFAULT_DATABASE,
    document: AsDocument = None,
    as_json: AsJson = False,
) -> None:
    """Show the moves of a workstream, a task, a worker or a breaker."""
    from understudy.actors.engine.remedies import read_target
    from understudy.runtime.cli.looking import look

    entity, record_id = read_target(target)
    require_words(entity, document)

    async def find(reading: "Reading") -> list[Transition]:
        moves = await _told(reading, entity, record_id, document)
        if everything and entity is Entity.WORKSTREAM:
            async for task in reading.all_tasks(record_id):
                moves += await _told(reading, Entity.TASK, task.id, document)
        return sorted(moves, key=lambda move: move.sequence)[-limit:]

    moves = look(database, find)
    if not moves:
        fail(f"there is no {entity} {record_id}", REFUSED)
    if as_json:
        print_json(moves)
        return
    rows = [
        [instant(move.at), move.record_id, move.generation, move.from_state, move.to_state, move.trigger, move.who,
         cut(move.reason, 80)]
        for move in moves
    ]  # fmt: skip
    print_table(None, ["time", "record", "generation", "from", "to", "trigger", "who", "reason"], rows)


async def _told(reading: "Reading", entity: Entity, record_id: str, document: Document | None) -> list[Transition]:
    moves = await reading.moves(entity, record_id)
    return moves if document is None or entity not in DOCUMENTS[document] else list(_translated(moves, document))


def _translated(moves: list[Transition], document: Document) -> Iterator[Transition]:
    """Moves with a document's words for their ends. Those whose ends read alike are none of its moves."""
    previous: str | None = None
    has_run = False
    for move in moves:
        vocabulary = DOCUMENTS[document][move.entity]
        source = START if move.from_state == START else vocabulary.read(move.from_state, previous, has_run)
        has_run = has_run or move.to_state in HAS_RUN
        target = vocabulary.read(move.to_state, move.from_state, has_run)
        previous = move.from_state
        if source != target:
            yield msgspec.structs.replace(move, from_state=source, to_state=target)
