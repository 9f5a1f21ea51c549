"""Finished workstreams are put away whole, after their retention, and can be read again."""

from pathlib import Path

import msgspec
import pytest

from tests.contract.stores.samples import attempt, batch, move, result, task, workstream
from understudy.actors.lifecycle import Entity, WorkstreamState
from understudy.actors.ports.store import Store
from understudy.actors.records import CheckResult
from understudy.adapters.stores.archive import Archived, ArchiveError, archive_finished, read_archive, write_archive
from understudy.adapters.stores.memory import MemoryStore
from understudy.adapters.stores.sqlite import SqliteStore

HOUR_US = 3_600_000_000


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_finished_workstream_moves_to_a_readable_file(tmp_path: Path, kind: str) -> None:
    made: Store = SqliteStore(tmp_path / "state.db") if kind == "sqlite" else MemoryStore()
    async with made as store:
        done = msgspec.structs.replace(workstream("done", WorkstreamState.COMPLETED), updated_at=HOUR_US)
        fresh = msgspec.structs.replace(workstream("fresh", WorkstreamState.FAILED), updated_at=5 * HOUR_US)
        moves = [move(1, "done", entity=Entity.WORKSTREAM), move(2, "done/a"), move(4, "done/b")]
        tries = [attempt(1, "done/a"), attempt(2, "done/b")]
        checked = [result(0, "done"), result(0, "done/a")]
        await store.commit(
            batch(
                done,
                fresh,
                workstream("live"),
                task("done/a"),
                task("done/b"),
                *moves,
                *tries,
                *checked,
                move(3, "live/a"),
            )
        )
        assert await archive_finished(store, tmp_path / "archive", now_us=6 * HOUR_US, retention_s=2 * 3_600) == [
            "done.1.json"
        ]
        assert await store.load(Entity.WORKSTREAM, "done") is None
        assert [each.sequence for each in await store.trail()] == [3]
        assert [record.id for record in await store.page(Entity.WORKSTREAM)] == ["fresh", "live"]
    found = read_archive(tmp_path / "archive" / "done.1.json")
    assert found.workstream == done
    assert [each.id for each in found.tasks] == ["done/a", "done/b"]
    assert found.transitions == moves
    assert found.attempts == tries
    assert found.checks == checked
    assert (tmp_path / "archive" / "done.1.json").read_text().startswith('{\n  "workstream": {\n')


async def test_archive_that_was_interrupted_is_written_again(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.commit(batch(workstream("done", WorkstreamState.COMPLETED)))
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "done.1.part").write_text("{ half")
    assert await archive_finished(store, folder, now_us=HOUR_US, retention_s=0) == ["done.1.json"]
    assert read_archive(folder / "done.1.json").workstream.id == "done"
    assert sorted(path.name for path in folder.iterdir()) == ["done.1.json"]


def test_what_is_not_an_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(ArchiveError, match="cannot be read: No such file"):
        read_archive(path)
    path.write_text("{}")
    with pytest.raises(ArchiveError, match="is not an archive of understudy"):
        read_archive(path)


@pytest.mark.parametrize("name", ["../escaped", "a/b", "", "a\n"])
def test_id_that_would_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="cannot be the name of a file"):
        write_archive(tmp_path / "archive", Archived(workstream(name), [], [], [], []))


async def test_workstream_that_was_reset_meanwhile_stays(tmp_path: Path) -> None:
    class Resetting(MemoryStore):
        async def checks(self, task_id: str) -> list[CheckResult]:
            await self.commit(batch(workstream("done", generation=2)))
            return await super().checks(task_id)

    store = Resetting()
    await store.commit(batch(workstream("done", WorkstreamState.FAILED)))
    assert await archive_finished(store, tmp_path / "archive", now_us=HOUR_US, retention_s=0) == []
    assert await store.load(Entity.WORKSTREAM, "done") == workstream("done", generation=2)
    assert list((tmp_path / "archive").iterdir()) == []
