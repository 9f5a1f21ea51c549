"""The log of transitions follows the trail without a gap or a double, whatever happened to its last line."""

import json
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.contract.stores.samples import batch, move
from tests.integration.stores.database import tell_story
from understudy.actors.lifecycle.events import check_log
from understudy.actors.ports.store import Store, StoreRefused
from understudy.actors.records import Transition
from understudy.adapters.sinks.transition_log import TransitionLog
from understudy.adapters.stores.memory import MemoryStore


def sequences(*paths: Path) -> list[int]:
    return [json.loads(line)["metadata"]["sequence"] for path in paths for line in path.read_text().splitlines()]


async def filled(moves: int) -> Store:
    store = MemoryStore()
    await store.commit(batch(*(move(number + 1, f"w/{number}") for number in range(moves))))
    return store


async def test_log_has_the_schema_of_the_document_and_tells_a_legal_life(tmp_path: Path) -> None:
    store, story = MemoryStore(), tell_story()
    taken = story.book.take()
    assert taken is not None
    await store.commit(taken[0])
    path = tmp_path / ".state" / "transitions.jsonl"
    assert await TransitionLog(path, store).catch_up() == 18
    line = json.loads(path.read_text().splitlines()[7])
    assert line == {
        "timestamp": "2024-10-04T00:00:08Z",
        "event_type": "task_state_transition",
        "severity": "warning",
        "entity_id": "WS-001/s1",
        "from_state": "running",
        "to_state": "errored",
        "trigger": "execution_failed",
        "metadata": {"number": 3, "sequence": 8, "generation": 1, "workstream_id": "WS-001", "reason": "because 3"},
    }
    with path.open("rb") as lines:
        assert list(check_log(lines)) == []


async def test_log_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"
    store = await filled(3)
    log = TransitionLog(path, store)
    assert await log.catch_up() == 3
    assert await log.catch_up() == 0
    await store.commit(batch(move(4)))
    assert await TransitionLog(path, store).catch_up() == 1
    assert sequences(path) == [1, 2, 3, 4]


async def test_last_line_cut_at_any_byte_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"
    store = await filled(3)
    await TransitionLog(path, store).catch_up()
    whole = path.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        await TransitionLog(path, store).catch_up()
        assert path.read_bytes() == whole


async def test_full_file_is_put_aside_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"
    store = MemoryStore()
    for start in range(1, 50, 7):
        await store.commit(batch(*(move(number, f"w/{number}") for number in range(start, start + 7))))
        await TransitionLog(path, store, rotate_bytes=2_000).catch_up()
    files = sorted(tmp_path.glob("transitions.*.jsonl"))
    assert len(files) > 1
    assert sequences(*files, path) == list(range(1, 50))


async def test_log_that_was_just_put_aside_is_resumed_from_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"
    store = await filled(3)
    await TransitionLog(path, store).catch_up()
    path.rename(tmp_path / "transitions.000000000001.jsonl")
    await store.commit(batch(move(4)))
    assert await TransitionLog(path, store).catch_up() == 1
    assert sequences(path) == [4]


@pytest.mark.parametrize("text", ["not json\n", '{"metadata": {}}\n', "[1]\n"])
async def test_file_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "transitions.jsonl"
    path.write_text(text)
    with pytest.raises(StoreRefused, match="its last line is not ours"):
        await TransitionLog(path, await filled(3)).catch_up()
    assert path.read_text() == text


async def test_two_who_catch_up_at_once_write_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"
    log = TransitionLog(path, await filled(5))
    async with anyio.create_task_group() as group:
        group.start_soon(log.catch_up)
        group.start_soon(log.catch_up)
    assert sequences(path) == [1, 2, 3, 4, 5]


async def test_log_goes_on_cleanly_after_a_write_that_failed_half_way(tmp_path: Path) -> None:
    class Failing(MemoryStore):
        async def trail(self, *, after: int = 0, limit: int = 1_000) -> list[Transition]:
            found = await super().trail(after=after, limit=2)
            if after == 2:
                with path.open("ab") as file:
                    file.write(b'{"half')
                self.trail = super().trail  # type: ignore[method-assign]
                raise OSError("disk full")
            return found

    path = tmp_path / "transitions.jsonl"
    store = Failing()
    await store.commit(batch(*(move(number, f"w/{number}") for number in range(1, 6))))
    log = TransitionLog(path, store)
    with pytest.raises(OSError, match="disk full"):
        await log.catch_up()
    await log.catch_up()
    assert sequences(path) == [1, 2, 3, 4, 5]


async def test_line_of_any_length_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "transitions.jsonl"
    store = MemoryStore()
    await store.commit(batch(move(1, reason="x" * 300_000)))
    await TransitionLog(path, store).catch_up()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:-9])
    await store.commit(batch(move(2)))
    await TransitionLog(path, store).catch_up()
    assert sequences(path) == [1, 2]


async def test_other_files_beside_the_log_are_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "transitions.broken.jsonl").write_text("not ours")
    assert await TransitionLog(tmp_path / "transitions.jsonl", await filled(1)).catch_up() == 1


def line(**fields: object) -> bytes:
    said = {
        "timestamp": "2024-01-15T10:30:00.000Z",
        "event_type": "task_state_transition",
        "severity": "info",
        "entity_id": "t",
        "from_state": "*",
        "to_state": "pending",
        "trigger": "created",
        "metadata": {},
        **fields,
    }
    return msgspec.json.encode(said) + b"\n"


QUEUED = {"from_state": "pending", "to_state": "queued", "trigger": "scheduler_assigned"}


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ([line(), line(**QUEUED)], []),
        ([line(), b"garbage\n", line(**QUEUED)], ["2: JSON is malformed: invalid character (byte 0)"]),
        ([line(severity="loud")], ["1: Invalid enum value 'loud' - at $.severity"]),
        ([line(), line()], ["2: task t leaves *, but it was pending"]),
        ([line(timestamp="2024-01-15T10:30:00")], ["1: Expected datetime with a timezone component - at $.timestamp"]),
        ([line(to_state="nowhere")], ["1: 'nowhere' is not a state of a task"]),
        ([line(event_type="noise")], ["1: 'noise' is not the type of an event"]),
        ([line(), line(**QUEUED)[:-9]], ["2: the last line is cut: the lines before it are whole"]),
        (
            [line(), line(timestamp="2023-01-01T00:00:00Z", **QUEUED)],
            ["2: 2023-01-01T00:00:00+00:00 is older than the line before"],
        ),
        (
            [line(), line(**{**QUEUED, "from_state": "retrying", "trigger": "retry_delay_elapsed"})],
            ["2: task t leaves retrying, but it was pending"],
        ),
        (
            [line(from_state="completed", to_state="running", trigger="worker_started")],
            [
                "1: task t in state completed does not allow worker_started -> running; it is terminal: reset it to start a new generation"
            ],
        ),
    ],
)
def test_log_is_checked_line_by_line(lines: list[bytes], problems: list[str]) -> None:
    assert [f"{problem.line}: {problem.what}" for problem in check_log(lines)] == problems
