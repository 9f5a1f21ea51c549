"""How instants, lengths of time, long texts and states read: the same in every command."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from understudy.actors.lifecycle import DOCUMENTS, MACHINES, Document, Entity
from understudy.actors.lifecycle.vocabulary import ByPrevious, ByRun, Reading
from understudy.actors.records import Record, WorkerRecord
from understudy.runtime.cli.output import fail

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))


def instant(at: int | None) -> str | None:
    """Universal time, to the second."""
    return None if at is None else f"{_EPOCH + timedelta(microseconds=at):%Y-%m-%d %H:%M:%SZ}"


def span(length_us: int) -> str:
    """A length of time, in the two units that matter."""
    length_s = max(length_us, 0) / 1e6
    if length_s < 1:
        return f"{length_s * 1e3:.0f} ms"
    if length_s < 60:
        return f"{length_s:.3g} s"
    whole_s, whole, part_s, part = next(unit for unit in _UNITS if length_s >= unit[0])
    return f"{int(length_s // whole_s)} {whole} {int(length_s % whole_s // part_s)} {part}"


def took(started_at: int | None, ended_at: int | None, now: int) -> str | None:
    """How long something has taken, up to now where it has not ended."""
    return None if started_at is None else span((ended_at or now) - started_at)


def cut(text: str | None, length: int = 60) -> str | None:
    """One line of a text, and not more of it than fits into a table."""
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def say_state(entity: Entity, record: Record, document: Document | None) -> str:
    """A record's state in a document's words, or in ours where it has none for it."""
    vocabulary = None if document is None else DOCUMENTS[document].get(entity)
    if vocabulary is None:
        return record.state
    return vocabulary.read(record.state, record.previous_state, isinstance(record, WorkerRecord) and record.has_run)


def in_words(entity: Entity, records: Sequence[Record], document: Document | None) -> list[dict[str, Any]]:
    """Records for programs: as they are, but for their states."""
    return [{**msgspec.to_builtins(each), "state": say_state(entity, each, document)} for each in records]


def require_words(entity: Entity, document: Document | None) -> None:
    """Refuse a document that does not know the thing that is asked for."""
    if document is not None and entity not in DOCUMENTS[document]:
        fail(f"{document} does not know a {entity}; it knows {', '.join(DOCUMENTS[document])}")


def find_states(entity: Entity, word: str, document: Document | None) -> list[str]:
    """Our states that read so."""
    vocabulary = None if document is None else DOCUMENTS[document].get(entity)
    if vocabulary is None:
        readings: dict[str, Reading] = {state: state for state in MACHINES[entity].states}
    else:
        readings = vocabulary.words
    found = [state for state, reading in readings.items() if word in _words(reading)]
    if not found:
        known = dict.fromkeys(each for reading in readings.values() for each in _words(reading))
        fail(f"no {entity} is ever {word!r}; it can be {', '.join(known)}")
    return found


def _words(reading: Reading) -> tuple[str, ...]:
    match reading:
        case str():
            return (reading,)
        case ByPrevious(otherwise, after):
            return (otherwise, *after.values())
        case ByRun(fresh, has_run):
            return (fresh, has_run)
