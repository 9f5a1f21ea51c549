"""Faults of disk, lock and file, injected for real: what was acknowledged is stored, and work resumes by itself."""

import asyncio
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.contract.stores.samples import batch, move, task, workstream
from tests.integration.stores.database import ask
from understudy.actors.journal import Book, Journal
from understudy.actors.kernel import LoopKernel
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import Batch, DamagedRow, StoreRefused, StoreUnavailable
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.adapters.stores.sqlite.ownership import owner_of, refuse_network
from understudy.adapters.stores.sqlite.statements import SCHEMA_VERSION


def some(sequence: int, size: int = 2_000) -> Batch:
    record = task(f"w/{sequence:06}", output="x" * size)
    return batch(record, move(sequence, record.id))


async def stored(path: Path) -> list[int]:
    async with SqliteStore(path) as store:
        return [each.sequence async for each in store.follow()]


async def limit_pages(store: SqliteStore, pages: int) -> None:
    await store._writer.run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())  # pyright: ignore[reportPrivateUsage]


async def commit_until_refused(store: SqliteStore, acknowledged: list[int]) -> None:
    for sequence in range(1, 1_000):
        await store.commit(some(sequence))
        acknowledged.append(sequence)


@pytest.mark.parametrize("pages", range(25, 60, 5))
async def test_disk_full_at_any_write_loses_nothing_acknowledged(tmp_path: Path, pages: int) -> None:
    acknowledged: list[int] = []
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store:
        await limit_pages(store, pages)
        with pytest.raises(StoreUnavailable, match="disk full, not accepting work") as refusal:
            await commit_until_refused(store, acknowledged)
        assert refusal.value.kind == "full"
        assert [each.sequence async for each in store.follow()] == acknowledged
        await limit_pages(store, 1_000_000)
        await store.commit(some(len(acknowledged) + 1))
    assert await stored(path) == [*acknowledged, len(acknowledged) + 1]


async def test_journal_closes_intake_while_the_disk_is_full_and_resumes_by_itself(tmp_path: Path) -> None:
    released: list[int] = []
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store, LoopKernel() as kernel:
        await limit_pages(store, 40)
        book = Book(0, lambda: 1)
        kernel.spawn(Journal, (book, store))
        last = anyio.Event()
        for sequence in range(1, 101):
            book.move(Entity.TASK, None, task(f"w/{sequence:06}", output="x" * 2_000), "created")
            book.then(lambda number=sequence: released.append(number))  # type: ignore[misc]
            await kernel.settled()
        book.then(last.set)
        closed = book.closed_because
        assert closed is not None
        assert "disk full" in closed
        assert released == list(range(1, len(released) + 1))
        assert 0 < len(released) < 100
        await limit_pages(store, 1_000_000)
        await last.wait()
        assert book.trouble is None
    assert await stored(path) == released == list(range(1, 101))


WRITER = """
import asyncio, resource, signal, sys
from tests.integration.stores.test_faults import SqliteStore, StoreUnavailable, some
async def main():
    async with SqliteStore(sys.argv[1]) as store:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        try:
            for sequence in range(1, 1000):
                await store.commit(some(sequence))
                print(sequence, flush=True)
        except StoreUnavailable as error:
            print(error.kind, flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.commit(some(sequence))
        print("resumed", flush=True)
asyncio.run(main())
"""


async def test_write_error_loses_nothing_acknowledged_and_corrupts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    finished = await anyio.run_process([sys.executable, "-c", WRITER, str(path)], cwd=Path(__file__).parents[3])
    *acknowledged, kind, resumed = finished.stdout.decode().split()
    assert (kind, resumed) == ("failed", "resumed")
    assert await stored(path) == [*map(int, acknowledged), len(acknowledged) + 1]
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]


async def test_lock_held_for_a_moment_is_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store:
        await store.commit(some(1))
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as group:
            group.start_soon(store.commit, some(2))
            await anyio.lowlevel.checkpoint()
            other.execute("ROLLBACK")
        other.close()
    assert await stored(path) == [1, 2]


async def test_lock_held_for_long_says_so_and_the_same_batch_lands_later(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path, busy_ms=10) as store:
        await store.commit(some(1))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = some(2)
        with pytest.raises(StoreUnavailable, match="locked by another process") as refusal:
            await store.commit(waiting)
        assert refusal.value.kind == "locked"
        other.execute("ROLLBACK")
        other.close()
        await store.commit(waiting)
    assert await stored(path) == [1, 2]


async def test_second_writer_is_refused_and_told_the_pid_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path):
        assert owner_of(path) == os.getpid()
        with pytest.raises(StoreRefused, match=f"state.db is in use by pid {os.getpid()}"):
            async with SqliteStore(path):
                pass
    assert owner_of(path) is None


async def test_owner_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    program = (
        "import asyncio, os, signal, sys\nfrom tests.integration.stores.test_faults import SqliteStore, some\n"
        "async def main():\n    async with SqliteStore(sys.argv[1]) as store:\n        await store.commit(some(1))\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\nasyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    process = await anyio.run_process(command, cwd=Path(__file__).parents[3], check=False)
    assert process.returncode == -signal.SIGKILL
    assert await stored(path) == [1]


async def test_commit_that_is_cancelled_has_landed_or_not_and_leaves_no_transaction(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store:
        for sequence in range(1, 50):
            with anyio.move_on_after(0):
                await store.commit(some(sequence))
            await store.commit(some(sequence + 1_000))
        found = [each.sequence async for each in store.follow()]
    assert set(range(1_001, 1_050)) <= set(found)


async def test_file_with_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path):
        pass
    ask(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreRefused, match=r"too new.*install a newer understudy"):
        async with SqliteStore(path):
            pass


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_network_file_system_is_refused(kind: str) -> None:
    mounts = f"/dev/vda / ext4 rw 0 0\nserver:/x /mnt/share {kind} rw 0 0\n"
    with pytest.raises(StoreRefused, match="lies on a network file system"):
        refuse_network(Path("/mnt/share/deep/state.db"), mounts)
    refuse_network(Path("/mnt/shared.db"), mounts)


async def test_commit_after_a_fork_is_refused(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "state.db") as store:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                store._ownership.check()  # pyright: ignore[reportPrivateUsage]
                os.write(writing, b"allowed")
            except StoreRefused as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        assert b"open it again after a fork" in os.read(reading, 1_000)


@pytest.mark.parametrize("text", [b"not a database at all, but long enough to be one" * 10, b"x"])
async def test_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(text)
    with pytest.raises(StoreRefused, match="is it a database of understudy"):
        async with SqliteStore(path):
            pass
    assert path.read_bytes() == text


async def test_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    ask(path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreRefused, match="belongs to another program"):
        async with SqliteStore(path):
            pass
    assert path.read_bytes() == before


async def test_missing_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="is not a directory: make it first"):
        async with SqliteStore(tmp_path / "none" / "state.db"):
            pass


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tasks SET snapshot = replace(snapshot, 'xxx', 'xyx')",
        "UPDATE tasks SET state = 'completed'",
        "UPDATE tasks SET snapshot = X'80049503'",
        "UPDATE tasks SET snapshot = '{}', checksum = 2739614587",
        "UPDATE state_transitions SET to_state = 'completed'",
        "UPDATE state_transitions SET metadata = '{'",
    ],
)
async def test_changed_row_is_told_as_damaged_and_not_deleted(tmp_path: Path, change: str) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store:
        await store.commit(some(1))
    ask(path, change)
    async with SqliteStore(path) as store:
        read: Callable[[], Any] = (
            store.trail if "transitions" in change else lambda: store.load(Entity.TASK, "w/000001")
        )
        with pytest.raises(DamagedRow, match="is damaged"):
            await read()
    assert ask(path, "SELECT count(*) FROM tasks, state_transitions") == [(1,)]


async def test_pickle_in_a_row_is_damage_and_is_never_run(tmp_path: Path) -> None:
    path, canary = tmp_path / "state.db", tmp_path / "canary"

    class Malicious:
        def __reduce__(self) -> Any:
            return (open, (str(canary), "w"))

    payload = pickle.dumps(Malicious(), protocol=0).decode()
    async with SqliteStore(path) as store:
        await store.commit(some(1))
    ask(path, "UPDATE tasks SET snapshot = ?, checksum = ?", payload, zlib.crc32(payload.encode()))
    async with SqliteStore(path) as store:
        with pytest.raises(DamagedRow):
            await store.load(Entity.TASK, "w/000001")
    assert not canary.exists()


async def test_process_exits_after_the_store_was_closed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom understudy.adapters.stores.sqlite import SqliteStore\n"
        "async def main():\n    async with SqliteStore(sys.argv[1]) as store:\n        raise RuntimeError('on the way')\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state.db")]
    finished = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60, check=False)
    assert b"on the way" in finished.stderr


async def test_database_is_for_its_owner_only(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "state.db") as store:
        await store.commit(some(1))
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
        assert len(list(tmp_path.iterdir())) == 4  # with its log, index and owner


async def test_two_names_of_one_file_have_one_owner(tmp_path: Path) -> None:
    (tmp_path / "name.db").symlink_to(tmp_path / "state.db")
    async with SqliteStore(tmp_path / "state.db"):
        with pytest.raises(StoreRefused, match="is in use by pid"):
            async with SqliteStore(tmp_path / "name.db"):
                pass


@pytest.mark.parametrize("name", ["state.db", "state.db.owner"])
async def test_file_that_was_removed_while_it_was_open_takes_no_commits(tmp_path: Path, name: str) -> None:
    async with SqliteStore(tmp_path / "state.db") as store:
        (tmp_path / name).unlink()
        with pytest.raises(StoreRefused, match="was removed or replaced while it was open"):
            await store.commit(some(1))


async def test_lock_does_not_outlive_its_owner_in_a_forked_child(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    async with SqliteStore(tmp_path / "state.db"):
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent closes its end
            os._exit(0)
    async with SqliteStore(tmp_path / "state.db"):
        pass
    os.close(writing)
    await asyncio.to_thread(os.waitpid, child, 0)


async def test_removal_that_fails_is_rolled_back_and_commits_go_on(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "state.db") as store:
        await store.commit(batch(workstream("w"), task("w/t")))
        ask(tmp_path / "state.db", "ALTER TABLE attempts RENAME TO hidden")
        with pytest.raises(StoreUnavailable):
            await store.remove_workstream(workstream("w"))
        assert await store.load(Entity.TASK, "w/t") == task("w/t")
        await store.commit(some(1))


async def test_store_that_was_closed_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    async with store:
        pass
    for use in (store.commit(some(1)), store.load(Entity.TASK, "x")):
        with pytest.raises(StoreRefused, match="is not open"):
            await use
