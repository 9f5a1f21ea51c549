"""A database that is only read, by somebody who need not be the one who writes it: what commands know of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from understudy.actors.engine.explaining import Explanation, at_rest
from understudy.actors.engine.remedies import read_target
from understudy.actors.lifecycle import MACHINES, Entity, Trait
from understudy.actors.records import Transition, WorkstreamRecord
from understudy.adapters.folders import Folders
from understudy.adapters.stores.sqlite import SqliteReader
from understudy.adapters.stores.sqlite.ownership import owner_of
from understudy.runtime.reasons import explain
from understudy.runtime.records import Records

_ENDS = {entity: machine.having(Trait.TERMINAL) for entity, machine in MACHINES.items()}


class Reading(Records):
    """Open it with `async with`. Raises `StoreRefused` where there is no database that can be read."""

    def __init__(self, path: Path) -> None:
        self._sqlite = SqliteReader(path)
        super().__init__(self._sqlite)
        self.path = self._sqlite.path
        self.folders = Folders(self.path)

    async def __aenter__(self) -> Self:
        await self._sqlite.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sqlite.__aexit__()

    @property
    def owner_pid(self) -> int | None:
        """Who has it open for writing."""
        return owner_of(self.path)

    async def newest_workstreams(self, *, states: Sequence[str] | None, limit: int) -> list[WorkstreamRecord]:
        return await self._sqlite.newest_workstreams(states=states, limit=limit)

    async def count_tasks(self, workstream_id: str) -> dict[str, int]:
        return await self._sqlite.count_tasks(workstream_id)

    async def moves(self, entity: Entity, record_id: str) -> list[Transition]:
        """All of a record's moves, in order."""
        found: list[Transition] = []
        while page := await self.history(entity, record_id, after=found[-1].sequence if found else 0):
            found += page
        return found

    async def explain(self, target: str) -> Explanation:
        """Why it is as it is. Where no process has the database open, that is the reason."""
        explained = await explain(self, target)
        entity, record_id = read_target(target)
        if entity is Entity.BREAKER or explained.state in _ENDS[entity] or self.owner_pid is not None:
            return explained
        is_worker = entity is Entity.WORKER
        return at_rest(explained, None if is_worker else await self.workstream(record_id.partition("/")[0]))
