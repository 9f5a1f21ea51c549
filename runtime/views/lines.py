"""A run told in lines: for logs, pipes and people who scroll. And the same as JSON, an object to a line."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from understudy.actors.lifecycle import START, Entity, TaskState
from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order
from understudy.actors.records import Transition
from understudy.runtime.views.scene import Scene
from understudy.runtime.views.wording import plain

Write = Callable[[str], None]
_QUIET = frozenset({TaskState.PENDING, TaskState.QUEUED, TaskState.VALIDATING, TaskState.ERRORED, TaskState.TIMED_OUT})


class _Told:
    """What both have: a scene, and somewhere to write to."""

    def __init__(self, scene: Scene, write: Write) -> None:
        self._scene = scene
        self._write = write

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LineView(_Told):
    """A line for each move that matters, and for each line of output."""

    def landed(self, batch: Batch) -> None:
        self._scene.landed(batch)
        for move in batch.transitions:
            text = self._tell(move)
            if text is not None:
                self._write(f"{_clock(move.at)} {plain(text)}")

    def heard(self, order: Order, line: str) -> None:
        self._scene.heard(order, line)
        view = self._scene.tasks.get(order.task_id)
        if view is not None:
            self._write(f"{self._scene.name_of(view)} | {plain(line)}")

    def note(self, text: str) -> None:
        self._write(plain(text))

    def _tell(self, move: Transition) -> str | None:
        reason = f": {move.reason}" if move.reason else ""
        match move.entity:
            case Entity.TASK:
                view = self._scene.tasks.get(move.record_id)
                if view is None or move.to_state in _QUIET:
                    return None
                attempt = f" (attempt {move.attempt} on {move.worker_id})" if move.to_state == TaskState.RUNNING else ""
                return f"{self._scene.name_of(view)} {_said(move.to_state)}{attempt}{reason}"
            case Entity.WORKSTREAM:
                if move.record_id not in self._scene.workstreams:
                    return None
                return f"workstream {move.record_id} {_said(move.to_state)}{reason}"
            case Entity.BREAKER if move.from_state != START:
                return f"breaker {move.record_id} {_said(move.to_state)}{reason}"
            case _:
                return None


class JsonView(_Told):
    """Every move and every line of output, as JSON."""

    def landed(self, batch: Batch) -> None:
        self._scene.landed(batch)
        for move in batch.transitions:
            if move.workstream_id in self._scene.workstreams or move.entity in (Entity.WORKER, Entity.BREAKER):
                self.say("transition", **msgspec.to_builtins(move))

    def heard(self, order: Order, line: str) -> None:
        self._scene.heard(order, line)
        if order.task_id in self._scene.tasks:
            self.say("output", task_id=order.task_id, attempt=order.attempt, line=line)

    def note(self, text: str) -> None:
        self.say("note", text=text)

    def say(self, kind: str, **fields: Any) -> None:
        self._write(msgspec.json.encode({"type": kind, **fields}).decode())


def _said(state: str) -> str:
    return state.replace("_", " ")


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1e6, UTC).astimezone().strftime("%H:%M:%S")
