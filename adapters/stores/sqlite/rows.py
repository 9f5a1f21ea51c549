"""Records as rows and back. A row carries the CRC-32 of what it says, and reading it checks that."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec

from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import DamagedRow
from understudy.actors.records import (
    RECORD_TYPES,
    Attempt,
    BreakerRecord,
    CheckResult,
    Record,
    StoredAnswer,
    TaskRecord,
    Transition,
    WorkerRecord,
    WorkstreamRecord,
)

Row = Sequence[Any]
T = TypeVar("T")

TABLES: Final = {
    Entity.WORKSTREAM: "workstreams",
    Entity.TASK: "tasks",
    Entity.WORKER: "workers",
    Entity.BREAKER: "breakers",
}
_encode: Final = msgspec.json.Encoder().encode
_DECODERS: Final[dict[Entity, msgspec.json.Decoder[Record]]] = {
    entity: msgspec.json.Decoder(kind) for entity, kind in RECORD_TYPES.items()
}
_TRANSITION_FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(Transition))
_ATTEMPT_FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(Attempt))
_CHECK_FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(CheckResult))


def transition_row(each: Transition) -> Row:
    metadata = None if each.metadata is None else _encode(each.metadata).decode()
    said = (
        each.sequence, each.entity._value_, each.record_id, each.generation, each.from_state, each.to_state,
        each.trigger, each.at, each.severity._value_, each.workstream_id, each.reason, each.who, each.worker_id,
        each.attempt, each.correlation_id, metadata,
    )  # fmt: skip
    return (*said, _checksum(said))


def read_transition(row: Row) -> Transition:
    *said, checksum = row
    if _checksum(tuple(said)) != checksum:
        raise DamagedRow("state_transitions", row[0], "its checksum is wrong")
    fields = dict(zip(_TRANSITION_FIELDS, said, strict=True))
    try:
        fields["metadata"] = None if fields["metadata"] is None else msgspec.json.decode(fields["metadata"])
        return msgspec.convert(fields, Transition)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise DamagedRow("state_transitions", row[0], str(error)) from None


def attempt_row(each: Attempt) -> Row:
    return _with_checksum(each)


def read_attempt(row: Row) -> Attempt:
    return _read_checked("attempts", row, _ATTEMPT_FIELDS, "success", Attempt)


def check_row(each: CheckResult) -> Row:
    return _with_checksum(each)


def read_check(row: Row) -> CheckResult:
    return _read_checked("checks", row, _CHECK_FIELDS, "passed", CheckResult)


def _with_checksum(each: Attempt | CheckResult) -> Row:
    said = msgspec.structs.astuple(each)
    return (*said, _checksum(said))


def _read_checked(table: str, row: Row, names: tuple[str, ...], truth: str, kind: type[T]) -> T:
    """A record whose fields are the columns. SQLite has no truth values: the one that is one is named."""
    *said, checksum = row
    fields = dict(zip(names, said, strict=True))
    is_truth = fields[truth] in (0, 1)
    fields[truth] = bool(fields[truth])
    if not is_truth or _checksum(tuple(fields.values())) != checksum:
        raise DamagedRow(table, "/".join(str(part) for part in row[:3]), "its checksum is wrong")
    return msgspec.convert(fields, kind)


def answer_row(each: StoredAnswer) -> Row:
    answer = _encode(each.answer).decode()
    said = (each.request_id, each.operation, each.body_digest, answer, each.created_at, each.expires_at)
    return (*said, _checksum(said))


def read_answer(row: Row) -> StoredAnswer:
    *said, checksum = row
    if _checksum(tuple(said)) != checksum:
        raise DamagedRow("idempotency_keys", row[0], "its checksum is wrong")
    request_id, operation, body_digest, answer, created_at, expires_at = said
    return StoredAnswer(request_id, operation, body_digest, msgspec.json.decode(answer), created_at, expires_at)


def snapshot_row(record: Record) -> Row:
    snapshot = _encode(record)
    tail = (record.created_at, record.updated_at, snapshot.decode(), crc32(snapshot))
    head = (record.state._value_, record.previous_state, record.generation)
    match record:
        case TaskRecord():  # by far the most
            return (record.id, record.workstream_id, *head, record.retry_count, *tail)
        case WorkstreamRecord():
            return (record.id, *head, record.parent_id, *tail)
        case WorkerRecord():
            return (record.id, *head, record.has_run, *tail)
        case BreakerRecord():
            return (record.id, *head, *tail)


def read_snapshot(entity: Entity, row: Row) -> Record:
    """A record from its (id, state, generation, snapshot, checksum)."""
    record_id, state, generation, snapshot, checksum = row
    record = _decoded(entity, record_id, snapshot, checksum)
    if (record.id, record.state, record.generation) != (record_id, state, generation):
        raise DamagedRow(TABLES[entity], record_id, "its columns do not say what its snapshot says")
    return record


def read_whole_row(entity: Entity, row: Row) -> Record:
    """A record from all the columns of its row, each of which must say what the snapshot says.

    The snapshot's own text has its checksum. It need not be what would be written now: 1 may stand for 1.0.
    """
    record = _decoded(entity, row[0], row[-2], row[-1])
    if tuple(row[:-2]) != tuple(snapshot_row(record)[:-2]):
        raise DamagedRow(TABLES[entity], row[0], "its columns do not say what its snapshot says")
    return record


def _decoded(entity: Entity, record_id: Any, snapshot: Any, checksum: Any) -> Record:
    if not isinstance(snapshot, str) or crc32(snapshot.encode()) != checksum:
        raise DamagedRow(TABLES[entity], record_id, "its checksum is wrong")
    try:
        return _DECODERS[entity].decode(snapshot)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise DamagedRow(TABLES[entity], record_id, str(error)) from None


def _checksum(said: Row) -> int:
    return crc32(_encode(said))


STATEMENT_OF: Final[dict[Entity, str]] = {entity: f"put_{entity.value}" for entity in Entity}
