"""A database is read without a right to change it: beside its writer, after it, and only if it can be understood."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.stores.samples import batch, task, workstream
from tests.integration.stores.database import write_story
from understudy.actors.lifecycle import Entity, TaskState, WorkstreamState
from understudy.actors.ports.store import StoreRefused
from understudy.adapters.stores.sqlite import SqliteReader, SqliteStore
from understudy.adapters.stores.sqlite.ownership import owner_of


async def test_a_reader_sees_what_a_writer_commits(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store, SqliteReader(path) as reader:
        assert await reader.load(Entity.TASK, "w/t") is None
        await store.commit(batch(task()))
        assert await reader.load(Entity.TASK, "w/t") == task()


async def test_a_reader_owns_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await write_story(path)
    async with SqliteReader(path) as reader:
        assert owner_of(path) is None
        assert await reader.last_sequence() == 18
        async with SqliteStore(path) as store:
            assert await store.last_sequence() == 18


async def test_a_reader_refuses_whatever_would_change_something(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await write_story(path)
    async with SqliteReader(path) as reader:
        with pytest.raises(StoreRefused, match="was opened for reading"):
            await reader.commit(batch(task()))
        with pytest.raises(StoreRefused, match="was opened for reading"):
            await reader.forget_answers(1)
        with pytest.raises(StoreRefused, match="was opened for reading"):
            await reader.remove_workstream(workstream())


async def test_a_missing_file_and_a_newer_schema_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with pytest.raises(StoreRefused, match="is not there"):
        await SqliteReader(path).__aenter__()
    assert not path.exists()
    await write_story(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreRefused, match="is too new"):
        await SqliteReader(path).__aenter__()


async def test_the_newest_workstreams_come_first_and_tasks_are_counted_by_state(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "state.db") as store:
        made = [workstream(name, WorkstreamState(state)) for name, state in (("b", "failed"), ("a", "ready"))]
        await store.commit(batch(*made, task("a/x", TaskState.FAILED), task("a/y"), task("ab/z")))
        assert [each.id for each in await store.newest_workstreams(states=None, limit=9)] == ["b", "a"]
        assert [each.id for each in await store.newest_workstreams(states=["ready"], limit=9)] == ["a"]
        assert await store.count_tasks("a") == {"failed": 1, task().state.value: 1}
