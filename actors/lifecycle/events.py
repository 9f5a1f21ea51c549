"""The event log: one line of JSON for each move, and whether a log tells a life that the lifecycles allow.

The schema is the one of the document "orchestration". A log may also be in any document's own words; then its
moves are held against that document's machine. Triggers are checked where the words are ours.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from understudy.actors.lifecycle import DOCUMENTS, MACHINES, START, Document, Entity, InvalidTransition, Severity
from understudy.actors.records import Transition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ENDING: Final = "_state_transition"


class Event(msgspec.Struct, frozen=True):
    """One move as the log tells it."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    event_type: str
    severity: Severity
    entity_id: str
    from_state: str | None
    to_state: str
    trigger: str
    metadata: dict[str, Any]


class LogProblem(msgspec.Struct, frozen=True):
    """What is wrong with a line of a log."""

    line: int
    what: str


def to_event(move: Transition) -> Event:
    said = {
        "sequence": move.sequence,
        "generation": move.generation,
        "workstream_id": move.workstream_id,
        "reason": move.reason,
        "who": move.who,
        "worker_id": move.worker_id,
        "attempt": move.attempt,
        "correlation_id": move.correlation_id,
    }
    metadata = {**(move.metadata or {}), **{name: value for name, value in said.items() if value is not None}}
    return Event(
        timestamp=_EPOCH + timedelta(microseconds=move.at),
        event_type=f"{move.entity.value}{_ENDING}",
        severity=move.severity,
        entity_id=move.record_id,
        from_state=move.from_state,
        to_state=move.to_state,
        trigger=move.trigger,
        metadata=metadata,
    )


def check_log(lines: Iterable[bytes], document: Document | None = None) -> Iterator[LogProblem]:
    """Every line that breaks the schema, the order of time, or the lifecycle; and a last line that was cut."""
    states: dict[tuple[Entity, str], str] = {}
    newest: datetime | None = None
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            yield LogProblem(number, "the last line is cut: the lines before it are whole")
            return
        try:
            event = msgspec.json.decode(line, type=Event)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            yield LogProblem(number, str(error).replace("`", ""))
            continue
        if newest is not None and event.timestamp < newest:
            yield LogProblem(number, f"{event.timestamp.isoformat()} is older than the line before")
        newest = event.timestamp
        what = _fault_of(event, states, document)
        if what is not None:
            yield LogProblem(number, what)


def _fault_of(event: Event, states: dict[tuple[Entity, str], str], document: Document | None) -> str | None:
    kind = event.event_type.removesuffix(_ENDING)
    if not event.event_type.endswith(_ENDING) or kind not in set(Entity):
        return f"{event.event_type!r} is not the type of an event"
    entity = Entity(kind)
    source = event.from_state or START
    before = states.get((entity, event.entity_id))
    states[entity, event.entity_id] = event.to_state
    if before is not None and source != before and not (source == START and _has_ended(entity, before, document)):
        return f"{entity} {event.entity_id} leaves {source}, but it was {before}"
    return _of_move(entity, event, source, document)


def _has_ended(entity: Entity, state: str, document: Document | None) -> bool:
    if document is None:
        return state in MACHINES[entity].states and MACHINES[entity].is_terminal(state)
    return entity in DOCUMENTS[document] and state not in DOCUMENTS[document][entity].moves


def _of_move(entity: Entity, event: Event, source: str, document: Document | None) -> str | None:
    if document is None:
        unknown = [each for each in (source, event.to_state) if each not in {START, *MACHINES[entity].states}]
        if unknown:
            return f"{unknown[0]!r} is not a state of a {entity}"
        try:
            MACHINES[entity].check(event.entity_id, source, event.trigger, event.to_state)
        except InvalidTransition as error:
            return str(error)
        return None
    vocabulary = DOCUMENTS[document].get(entity)
    if vocabulary is None:
        return f"{document} does not know a {entity}"
    born_as = vocabulary.read(MACHINES[entity].initial)
    if (source, event.to_state) in {*vocabulary.edges, (START, born_as)}:
        return None
    allowed = born_as if source == START else ", ".join(vocabulary.moves.get(source, ())) or "nothing: it is an end"
    return f"{entity} {event.entity_id} in state {source} does not allow {event.to_state}; {document} allows {allowed}"
