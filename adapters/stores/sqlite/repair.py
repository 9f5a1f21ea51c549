"""Mending one row that was changed by hand: it says again what its last move led to.

A move has a checksum of its own, so the state comes from there, and everything else from the snapshot. Nothing is
made up: where neither can be read, a copy must be restored. What the row said before is kept in the file.
"""

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from understudy.actors.lifecycle import START, Entity
from understudy.actors.ports.store import DamagedRow, StoreRefused
from understudy.actors.records import RECORD_TYPES, Record, TaskRecord, Transition
from understudy.adapters.stores.sqlite import rows
from understudy.adapters.stores.sqlite.reader import open_read_only
from understudy.adapters.stores.sqlite.statements import STATEMENTS


class Repair(msgspec.Struct, frozen=True):
    """What a row says, and the record that it is to say."""

    entity: Entity
    record: Record
    before: dict[str, Any]

    def changes(self) -> list[tuple[str, Any, Any]]:
        """Columns that will say something else: the name, what it says, what it will say. None where all is well."""
        with suppress(DamagedRow):
            if rows.read_whole_row(self.entity, tuple(self.before.values())) == self.record:
                return []
        after = dict(zip(self.before, rows.snapshot_row(self.record), strict=True))
        return [(name, said, after[name]) for name, said in self.before.items() if said != after[name]]


def plan_repair(path: Path, entity: Entity, record_id: str) -> Repair:
    """How a row is to be mended. Raises `StoreRefused` where it cannot, and `DamagedRow` where a move is damaged."""
    with closing(open_read_only(path)) as connection:
        cursor = connection.execute(f"SELECT * FROM {rows.TABLES[entity]} WHERE id = ?", (record_id,))  # noqa: S608 - our own names
        found = cursor.fetchall()
        moves = connection.execute(STATEMENTS["last_move"], (record_id, entity.value)).fetchall()
    if not found:
        raise StoreRefused(f"there is no {entity} {record_id} in {path}")
    if not moves:
        raise StoreRefused(f"no move leads to {entity} {record_id}: what it was cannot be known; restore a copy")
    before = dict(zip((column[0] for column in cursor.description), found[0], strict=True))
    return Repair(entity, _mend(entity, before, rows.read_transition(moves[0])), before)


def note_of(repair: Repair, who: str | None, why: str | None) -> str:
    """What is kept of a repair, with the whole row as it was."""
    return msgspec.json.encode({"who": who, "why": why, "before": repair.before}).decode()


def _mend(entity: Entity, row: dict[str, Any], last: Transition) -> Record:
    try:
        fields = msgspec.json.decode(row["snapshot"], type=dict[str, Any])
        if fields.get("state") != last.to_state:
            fields["previous_state"] = None if last.from_state == START else last.from_state
        fields |= {"id": last.record_id, "state": last.to_state, "generation": last.generation}
        if RECORD_TYPES[entity] is TaskRecord:
            fields["trigger"] = last.trigger
        return msgspec.convert(fields, RECORD_TYPES[entity])
    except (msgspec.MsgspecError, TypeError) as error:
        raise DamagedRow(rows.TABLES[entity], last.record_id, str(error)) from None
