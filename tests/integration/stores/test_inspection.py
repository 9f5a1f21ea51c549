"""What `check`, `doctor` and `sql` say of a database: sound, broken by hand, and damaged by the disk."""

import random  # noqa: TID251 - which bytes are damaged is decided by a seed
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.contract.stores.samples import answer, batch
from tests.integration.stores.database import ask, tell_story, write_story
from understudy.actors.lifecycle import Document, Entity
from understudy.actors.ports.store import AttemptQuery, StoreRefused
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.adapters.stores.sqlite.inspection import examine, find_faults
from understudy.adapters.stores.sqlite.reader import attempts_statement
from understudy.adapters.stores.sqlite.reading import query
from understudy.adapters.stores.sqlite.rows import snapshot_row
from understudy.adapters.stores.sqlite.statements import STATEMENTS


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    anyio.run(write_story, path)
    return path


def faults(path: Path) -> list[str]:
    return [f"{finding.kind}: {finding.what}" for finding in find_faults(path)]


def test_sound_database_has_no_faults(database: Path) -> None:
    assert faults(database) == []


def put_task(path: Path, **fields: Any) -> None:
    """Write a task as a careless hand would: a whole row with a right checksum, but without a move."""
    import msgspec

    record = msgspec.structs.replace(tell_story().records[Entity.TASK, "WS-001/s1"], **fields)
    ask(path, STATEMENTS["put_task"], *snapshot_row(record))


def test_snapshot_that_its_history_does_not_lead_to_is_found(database: Path) -> None:
    from understudy.actors.lifecycle import TaskState

    put_task(database, state=TaskState.FAILED)
    assert "inconsistent: task WS-001/s1 is failed, but its last move led to completed" in faults(database)


def test_finished_workstream_with_an_unfinished_task_is_found(database: Path) -> None:
    import msgspec

    from understudy.actors.lifecycle import WorkstreamState

    record = msgspec.structs.replace(tell_story().records[Entity.WORKSTREAM, "WS-001"], state=WorkstreamState.COMPLETED)
    ask(database, STATEMENTS["put_workstream"], *snapshot_row(record))
    found = faults(database)
    assert (
        "inconsistent: workstream WS-001: is completed, but task WS-001/s2 is pending (workstream agrees with its tasks)"
        in found
    )


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"worker_id": "worker-9"}, "has worker worker-9 but is completed (worker assignment)"),
        ({"retry_count": 9}, "9 retries, at most 4 (retry limit)"),
        ({"started_at": 0}, "created, started and completed are not in this order (order of time)"),
        ({"depends_on": ("s2",)}, "is completed although s2 is pending (dependencies)"),
    ],
)
def test_broken_invariant_is_found(database: Path, fields: dict[str, Any], part: str) -> None:
    put_task(database, **fields)
    assert any(part in fault for fault in faults(database))


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("DELETE FROM state_transitions WHERE to_state = 'running'", "but the record was queued"),
        ("UPDATE state_transitions SET to_state = 'completed' WHERE sequence = 8", "its checksum is wrong"),
        ("DELETE FROM tasks WHERE id = 'WS-001/s1'", "task WS-001/s1 has moves but no record"),
        ("DELETE FROM workstreams", "task WS-001/s1 belongs to no workstream"),
        ("UPDATE attempts SET success = 1", "attempts WS-001/s1/1/1 is damaged"),
        ("UPDATE checks SET passed = 1", "checks WS-001/s1/1/1 is damaged"),
        ("UPDATE attempts SET success = 7", "attempts WS-001/s1/1/1 is damaged"),
        ("DELETE FROM state_transitions WHERE entity = 'task'", "task WS-001/s1 is there, but no move leads to it"),
        ("DROP INDEX tasks_by_state", "index tasks_by_state is missing"),
        ("UPDATE tasks SET id = CAST(X'57532D3030312FF331' AS TEXT) WHERE id = 'WS-001/s1'", "is damaged"),
        ("UPDATE attempts SET task_id = CAST(X'57532D3030312FF331' AS TEXT)", "is damaged"),
        (
            "UPDATE state_transitions SET record_id = CAST(X'57532D3030312FF331' AS TEXT) WHERE sequence > 4",
            "is damaged",
        ),
        ("UPDATE tasks SET snapshot = '{' WHERE id = 'WS-001/s1'", "tasks WS-001/s1 is damaged"),
    ],
)
def test_what_was_changed_by_hand_is_found(database: Path, statement: str, part: str) -> None:
    ask(database, statement)
    assert any(part in fault for fault in faults(database))


def content(path: Path) -> Any:
    """All that can be read, or None."""
    tables = ("workstreams", "tasks", "workers", "breakers", "state_transitions", "attempts", "checks", "meta")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def is_noticed(path: Path) -> bool:
    try:
        return bool(faults(path))
    except StoreRefused:
        return True


@pytest.mark.parametrize("kind", ["truncated", "zeroed page", "flipped bit"])
def test_every_damage_that_changes_what_is_read_is_noticed(database: Path, tmp_path: Path, kind: str) -> None:
    chance = random.Random(f"damage/{kind}")
    sound, original = content(database), database.read_bytes()
    copy = tmp_path / "copy.db"
    changed = 0
    for _ in range({"truncated": 100, "zeroed page": 30, "flipped bit": 300}[kind]):
        data = bytearray(original)
        match kind:
            case "truncated":
                data = data[: chance.randrange(1, len(data))]
            case "zeroed page":
                start = chance.randrange(len(data) // 4_096) * 4_096
                data[start : start + 4_096] = bytes(4_096)
            case _:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        copy.write_bytes(data)
        if content(copy) != sound:
            changed += 1
            assert is_noticed(copy)
        assert copy.read_bytes() == data  # nothing was mended or deleted
    assert changed > 10


def test_doctor_tells_the_condition(database: Path) -> None:
    condition = examine(database)
    assert (condition.durability, condition.owner_pid, condition.transitions) == ("full", None, 18)
    assert condition.tasks == {"completed": 1, "pending": 1}
    assert condition.bytes == database.stat().st_size


def test_missing_and_strange_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="is not there"):
        examine(tmp_path / "none.db")
    strange = tmp_path / "strange.db"
    strange.write_text("hello")
    with pytest.raises(StoreRefused, match="is it a database of understudy"):
        list(find_faults(strange))


def select(path: Path, statement: str, document: Document | None = None) -> list[tuple[Any, ...]]:
    return list(query(path, statement, document)[1])


def test_statements_printed_in_pipeline_run_word_for_word(database: Path) -> None:
    stuck = "SELECT * FROM workstreams WHERE state = 'S_RUNNING' AND updated_at < datetime('now', '-1 hour');"
    assert [row[:2] for row in select(database, stuck, Document.PIPELINE)] == [("WS-001", "S_RUNNING")]
    steps = """
  SELECT step_id, state, updated_at
  FROM steps
  WHERE ws_id = 'WS-001'
  ORDER BY step_id;
"""
    assert [row[:2] for row in select(database, steps, Document.PIPELINE)] == [("s1", "S_SUCCESS"), ("s2", "S_PENDING")]
    inconsistent = """
  SELECT w.ws_id, w.state AS ws_state, s.step_id, s.state AS step_state
  FROM workstreams w
  JOIN steps s ON w.ws_id = s.ws_id
  WHERE w.state = 'S_SUCCESS'
    AND s.state != 'S_SUCCESS';
"""
    assert select(database, inconsistent, Document.PIPELINE) == []
    history = """
-- Get all transitions for a workstream
SELECT
    from_state,
    to_state,
    transitioned_at,
    json_extract(metadata, '$.reason') AS reason
FROM state_transitions
WHERE ws_id = 'WS-001'
ORDER BY transitioned_at;
"""
    assert select(database, history, Document.PIPELINE) == [
        ("S_PENDING", "S_RUNNING", "2024-10-04 00:00:03", "first_task_started")
    ]


@pytest.mark.parametrize(
    ("document", "statement", "rows"),
    [
        (
            Document.LIFECYCLE,
            "SELECT task_id, state, circuit_state FROM task_states ORDER BY task_id",
            [("WS-001/s1", "COMPLETED", "CLOSED"), ("WS-001/s2", "PENDING", "CLOSED")],
        ),
        (
            Document.LIFECYCLE,
            "SELECT from_state, to_state, reason FROM state_transitions WHERE task_id = 'WS-001/s1' ORDER BY id",
            [
                ("PENDING", "IN_PROGRESS", "because 2"),
                ("IN_PROGRESS", "FAILED", "because 3"),
                ("FAILED", "RETRYING", "because 4"),
                ("RETRYING", "IN_PROGRESS", "because 6"),
                ("IN_PROGRESS", "VALIDATING", "because 7"),
                ("VALIDATING", "COMPLETED", "because 8"),
            ],
        ),
        (Document.SUPERVISOR, "SELECT id, status FROM workers", [("worker-1", "RUNNING")]),
        (
            Document.SUPERVISOR,
            "SELECT worker_id, from_state, to_state FROM worker_state_transitions",
            [("worker-1", "IDLE", "RUNNING")],
        ),
        (Document.SUPERVISOR, "SELECT id, status, depth, worker_count FROM jobs", [("WS-001", "RUNNING", 0, 1)]),
        (
            Document.TASKER,
            "SELECT to_state FROM workflow_step_transitions WHERE most_recent ORDER BY workflow_step_uuid",
            [("Complete",), ("Pending",)],
        ),
        (
            Document.TASKER,
            "SELECT success, worker_uuid, correlation_id, execution_time_ms FROM workflow_step_result_audit ORDER BY success",
            [(0, "worker-1", None, 0), (1, "worker-1", "c-1", 0)],
        ),
        (
            Document.ORCHESTRATION,
            "SELECT event_type, from_state, to_state, severity FROM transitions WHERE trigger = 'retry_scheduled'",
            [("task_state_transition", "running", "retrying", "warning")],
        ),
        (None, "SELECT state, count(*) FROM tasks GROUP BY state", [("completed", 1), ("pending", 1)]),
    ],
)
def test_documents_have_their_own_tables_and_words(
    database: Path, document: Document | None, statement: str, rows: list[Any]
) -> None:
    assert select(database, statement, document) == rows


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM tasks",
        "UPDATE tasks SET state = 'x'",
        "ATTACH '/tmp/understudy-attached.db' AS x",
        "PRAGMA user_version = 7",
        "CREATE TABLE x (y)",
        "VACUUM",
        "SELECT 1; DELETE FROM tasks",
        "no sql at all",
    ],
)
def test_sql_reads_and_does_nothing_else(database: Path, statement: str) -> None:
    before = database.read_bytes()
    with pytest.raises(StoreRefused, match="the statement cannot be run"):
        select(database, statement)
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({"task_id": "t"}, "PRIMARY KEY"),
        ({"workstream_id": "w"}, "PRIMARY KEY (task_id>? AND task_id<?)"),
        ({"worker_id": "w"}, "attempts_by_worker"),
        ({"correlation_id": "c"}, "attempts_by_correlation"),
        ({"since": 1, "until": 2}, "attempts_by_time"),
        ({"success": False}, "attempts_that_failed"),
    ],
)
def test_query_of_attempts_uses_an_index(database: Path, asked: dict[str, Any], index: str) -> None:
    statement, values = attempts_statement(AttemptQuery(**asked))
    plan = " ".join(str(row[-1]) for row in ask(database, f"EXPLAIN QUERY PLAN {statement}", *values))
    assert f"USING {index}" in plan or f"INDEX {index}" in plan


def test_history_uses_an_index(database: Path) -> None:
    plan = ask(database, f"EXPLAIN QUERY PLAN {STATEMENTS['history']}", "w", "task", 0, 1)
    assert "transitions_by_record" in str(plan)


def test_copy_of_a_database_reads_the_same(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(database, copy)
    assert content(copy) == content(database)


async def test_damaged_answer_to_a_request_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SqliteStore(path) as store:
        await store.commit(batch(answer("r-1")))
    assert faults(path) == []
    ask(path, "UPDATE idempotency_keys SET answer = '{}'")
    assert faults(path) == [
        "damaged: idempotency_keys r-1 is damaged: its checksum is wrong; restore a copy of the database"
    ]
