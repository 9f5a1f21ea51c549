"""The picture of a run on a terminal: a tree of tasks that moves, with what each waits for and the last output.

It is drawn some times a second from the scene, whatever happens there: a storm of events costs no more than silence.
"""

from collections.abc import Callable
from typing import Any, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from understudy.actors.lifecycle import TaskState, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order
from understudy.actors.records import WorkstreamRecord
from understudy.runtime.views import wording
from understudy.runtime.views.scene import Scene, TaskView

REFRESHES_PER_S = 8
INDENT_MAX = 6  # levels of a deep graph that are told apart
FIXED_LINES = 10  # beside the tasks
ROWS_MIN = 5
_LOUD = (
    TaskState.FAILED, TaskState.RUNNING, TaskState.VALIDATING, TaskState.HALF_OPEN, TaskState.CIRCUIT_OPEN,
    TaskState.RETRYING, TaskState.ERRORED, TaskState.TIMED_OUT, TaskState.CANCELLED, TaskState.QUEUED,
)  # fmt: skip


class LiveView:
    """A watcher that draws. Open it with `with`."""

    def __init__(self, scene: Scene, now_us: Callable[[], int], console: Console) -> None:
        self._scene = scene
        self._now_us = now_us
        self._console = console
        self._notes: list[str] = []
        self._live = Live(
            get_renderable=lambda: _Picture(scene, now_us(), tuple(self._notes[-3:])),
            console=console,
            refresh_per_second=REFRESHES_PER_S,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def landed(self, batch: Batch) -> None:
        self._scene.landed(batch)

    def heard(self, order: Order, line: str) -> None:
        self._scene.heard(order, line)

    def note(self, text: str) -> None:
        """Something that is not the scene's own, such as that Ctrl+C was heard."""
        self._notes.append(text)


class _Picture:
    """What is drawn: made when it is needed, for the size that the terminal has then."""

    def __init__(self, scene: Scene, now: int, notes: tuple[str, ...]) -> None:
        self.scene = scene
        self.now = now
        self.notes = notes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = max(options.size.height - FIXED_LINES, ROWS_MIN)
        yield from draw(self.scene, self.now, height, self.notes)


def draw(scene: Scene, now: int, height: int, notes: tuple[str, ...] = ()) -> list[RenderableType]:
    """The whole picture, with at most so many tasks."""
    root = scene.root
    if root is None:
        return [Text("opening ...", style="dim")]
    parts: list[RenderableType] = [_head(scene, root, now), Text(), _tasks(scene, root, now, height)]
    about = _surroundings(scene, now)
    if about is not None:
        parts += [Text(), about]
    if scene.lines:
        parts += [Text(), _last_lines(scene)]
    parts += [Text(note, style="bold yellow") for note in notes]
    return parts


def _head(scene: Scene, root: WorkstreamRecord, now: int) -> Table:
    began = root.started_at or root.created_at
    ended = root.completed_at or now
    table = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=max(scene.total, 1), completed=scene.done, width=30)
    table.add_row(
        Text(root.name or root.id, style="bold"),
        Text(root.state.value.replace("_", " "), style=wording.STYLES.get(root.state, "bold blue")),
        bar,
        Text(f"{scene.done}/{scene.total}"),
        Text(wording.duration(ended - began), style="dim"),
    )
    return table


def _tasks(scene: Scene, root: WorkstreamRecord, now: int, height: int) -> RenderableType:
    rows = _rows_of(scene, root, 0)
    shown = _choose(rows, height)
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for indent, row in shown:
        table.add_row(*_cells(scene, row, indent, now))
    left_out = [row for _, row in rows if isinstance(row, TaskView)]
    hidden = len(left_out) - sum(isinstance(row, TaskView) for _, row in shown)
    if not hidden:
        return table
    counts = ", ".join(f"{count} {state.value}" for state, count in list(scene.counts.items()) if count)
    return Group(table, Text(f"  and {hidden} more; of all: {counts}", style="dim"))


Row = tuple[int, "TaskView | WorkstreamRecord"]


def _rows_of(scene: Scene, stream: WorkstreamRecord, indent: int) -> list[Row]:
    """The tasks of a workstream by their depth in the graph, each with the children that it has started."""
    rows: list[Row] = []
    depths: dict[str, int] = {}
    children = list(scene.children_of(stream.id))
    for view in list(scene.tasks.values()):
        if view.workstream_id != stream.id:
            continue
        depth = depths[view.key] = 1 + max((depths.get(key, -1) for key in view.depends_on), default=-1)
        level = indent + min(depth, INDENT_MAX)
        rows.append((level, view))
        for child in children:
            if child.id.startswith(f"{stream.id}.{view.key}."):
                rows.append((level + 1, child))
                rows += _rows_of(scene, child, level + 2)
    return rows


def _choose(rows: list[Row], height: int) -> list[Row]:
    """What fits: what runs or fails before what waits, and that before what is done; each where it belongs."""
    if len(rows) <= height:
        return rows
    places = sorted(range(len(rows)), key=lambda place: (_quietness(rows[place][1]), place))
    return [rows[place] for place in sorted(places[:height])]


def _quietness(row: "TaskView | WorkstreamRecord") -> int:
    if isinstance(row, WorkstreamRecord):
        return 0
    if row.state in _LOUD:
        return _LOUD.index(row.state)
    return len(_LOUD) + row.has_ended


def _cells(scene: Scene, row: "TaskView | WorkstreamRecord", indent: int, now: int) -> list[Any]:
    space = "  " * indent
    if isinstance(row, WorkstreamRecord):
        state = Text(row.state.value.replace("_", " "), style=wording.STYLES.get(row.state, "bold"))
        return [Text(f"{space}▾ {row.name or row.id}", style="bold"), "", state, _why(row)]
    sign, style = wording.SIGNS[row.state]
    name = Text.assemble((f"{space}{sign} ", style), (row.key, "bold" if row.state is TaskState.RUNNING else ""))
    said = wording.reason(scene, row, now)
    quiet = "dim" if row.state in (TaskState.RUNNING, TaskState.PENDING) else style
    return [name, Text(wording.spent(row, now), style="dim"), Text(wording.attempts(row)), Text(said, style=quiet)]


def _why(row: WorkstreamRecord) -> Text:
    shown = row.last_error or "" if row.state in (WorkstreamState.BLOCKED, WorkstreamState.FAILED) else ""
    return Text(shown, style=wording.STYLES.get(row.state, ""))


def _surroundings(scene: Scene, now: int) -> RenderableType | None:
    """Breakers that are not closed, and how busy workers are."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(no_wrap=True, overflow="ellipsis")
    for each in wording.breakers(scene, now):
        table.add_row("breaker", Text(each, style="magenta"))
    used = [f"{worker} {tasks}/{slots}" for worker, tasks, slots in scene.busy_workers() if tasks]
    if used:
        table.add_row("workers", Text("  ".join(used)))
    return table if table.row_count else None


def _last_lines(scene: Scene) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="dim")
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for name, line in list(scene.lines)[-5:]:
        table.add_row(name, "│", Text(line))
    return table
