from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from understudy.actors.ports.store import Store
from understudy.adapters.stores.memory import MemoryStore
from understudy.adapters.stores.sqlite import SqliteStore


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = SqliteStore(tmp_path / "state.db") if request.param == "sqlite" else MemoryStore()
    async with made:
        yield made
