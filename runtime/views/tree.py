"""Which rows of a graph are shown where not all fit: what fails or runs before what waits, and what is done last.

The shape of the graph is worked out when it has grown, and not for each picture.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from understudy.actors.lifecycle import TaskState
from understudy.runtime.views.scene import Scene, TaskView

INDENT_MAX = 6  # levels of a deep graph that are told apart
_LOUD = (
    TaskState.FAILED, TaskState.RUNNING, TaskState.VALIDATING, TaskState.HALF_OPEN, TaskState.CIRCUIT_OPEN,
    TaskState.RETRYING, TaskState.ERRORED, TaskState.TIMED_OUT, TaskState.QUEUED, TaskState.CANCELLED,
    TaskState.PENDING,
)  # fmt: skip


class Row(msgspec.Struct, frozen=True):
    """A task, or the heading of a child's tasks."""

    indent: int
    workstream_id: str
    task: TaskView | None = None


class Tree:
    """The rows of a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._shape = (0, 0)
        self._rows: list[Row] = []
        self._places: dict[str, int] = {}  # of tasks and of headings
        self.name_width = 0

    def __len__(self) -> int:
        self._keep_up()
        return len(self._rows)

    def choose(self, height: int) -> list[Row]:
        """As many as fit, each where it belongs."""
        self._keep_up()
        if len(self._rows) <= height:
            return self._rows
        places: set[int] = set()
        for view in islice(self._by_loudness(), height):
            more = {self._places[f"{view.workstream_id}/{view.key}"]}
            if view.workstream_id in self._places:
                more.add(self._places[view.workstream_id])
            if len(places | more) > height:
                break
            places |= more
        return [self._rows[place] for place in sorted(places)]

    def _by_loudness(self) -> Iterator[TaskView]:
        for state in _LOUD:
            yield from self._scene.tasks_in(state).values()
        for state in TaskState:
            if state not in _LOUD:
                yield from reversed(self._scene.tasks_in(state).values())  # what was done last

    def _keep_up(self) -> None:
        shape = (len(self._scene.tasks), len(self._scene.workstreams))
        if shape == self._shape:
            return
        self._shape = shape
        self._rows = []
        tasks: dict[str, list[TaskView]] = {}
        for view in self._scene.tasks.values():
            tasks.setdefault(view.workstream_id, []).append(view)
        self._add(self._scene.root_id, 0, tasks)
        self._places = {_key(row): place for place, row in enumerate(self._rows)}
        self.name_width = max((2 * row.indent + 2 + len(_name(row)) for row in self._rows), default=0)

    def _add(self, workstream_id: str, indent: int, tasks: dict[str, list[TaskView]]) -> None:
        """The tasks of a workstream by their depth in the graph, each with the children that it has started."""
        children: dict[str, list[str]] = {}
        for child in self._scene.children_of(workstream_id):
            asker = child.id.removeprefix(f"{workstream_id}.").rsplit(".", 2)[0]  # its generation and number follow
            children.setdefault(asker, []).append(child.id)
        views = tasks.get(workstream_id, [])
        depths = _depths(views)
        for view in views:
            level = indent + depths[view.key]
            self._rows.append(Row(level, workstream_id, view))
            for child_id in children.get(view.key, ()):
                self._rows.append(Row(level + 1, child_id))
                self._add(child_id, level + 2, tasks)


def _depths(views: list[TaskView]) -> dict[str, int]:
    """How far each is from the beginning. A task may be written before what it waits for, hence more than once."""
    depths = {view.key: 0 for view in views}
    for _ in range(INDENT_MAX):
        has_moved = False
        for view in views:
            depth = min(INDENT_MAX, 1 + max((depths.get(key, -1) for key in view.depends_on), default=-1))
            has_moved = has_moved or depth != depths[view.key]
            depths[view.key] = depth
        if not has_moved:
            break
    return depths


def _key(row: Row) -> str:
    return row.workstream_id if row.task is None else f"{row.workstream_id}/{row.task.key}"


def _name(row: Row) -> str:
    return row.workstream_id if row.task is None else row.task.key
