"""The picture of a run on a terminal: a tree of tasks that moves, with what each waits for and the last output.

It is drawn some times a second from the scene, whatever happens there: a storm of events costs no more than silence.
It never outgrows the terminal, and what it says keeps its place.
"""

import threading
from collections.abc import Callable
from typing import Any, Self

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from understudy.actors.lifecycle import TaskState, WorkstreamState
from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order
from understudy.actors.records import WorkstreamRecord
from understudy.runtime.views import wording
from understudy.runtime.views.scene import Scene
from understudy.runtime.views.tree import Row, Tree

REFRESHES_PER_S = 8
NOTES_SHOWN = 3
LINES_SHOWN = 5  # of output
ROWS_MIN = 3
BAR_WIDTHS = (8, 30)
STATE_WIDTH = 10  # that of the longest one that is usual
SPENT_WIDTH = 7


class LiveView:
    """A watcher that draws, in a thread of its own. Open it with `with`."""

    def __init__(self, scene: Scene, now_us: Callable[[], int], console: Console) -> None:
        self._scene = scene
        self._now_us = now_us
        self._console = console
        self._size: ConsoleDimensions | None = None
        self._lock = threading.Lock()  # the scene changes while it is drawn
        self._tree = Tree(scene)
        self._notes: list[str] = []
        self._live = Live(
            get_renderable=self._look,
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
        with self._lock:
            self._scene.landed(batch)

    def heard(self, order: Order, line: str) -> None:
        with self._lock:
            self._scene.heard(order, line)

    def note(self, text: str) -> None:
        """Something that is not the scene's own, such as that Ctrl+C was heard."""
        self._notes.append(text)

    def _look(self) -> "_Picture":
        size = self._console.size
        if self._size not in (None, size):
            # A terminal folds what it shows when it gets narrower, and nobody knows any more where the picture began.
            self._console.control(Control.clear(), Control.home())
        self._size = size
        return _Picture(self)

    def draw(self, width: int, height: int) -> list[RenderableType]:
        with self._lock:
            notes = self._notes[-NOTES_SHOWN:]
            return draw(self._scene, self._tree, self._now_us(), width, height, notes)


class _Picture:
    """What is drawn: made when it is needed, for the size that the terminal has then."""

    def __init__(self, view: LiveView) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._view.draw(options.max_width, options.size.height)


def draw(scene: Scene, tree: Tree, now: int, width: int, height: int, notes: list[str]) -> list[RenderableType]:
    """The whole picture. Where there is little room, output gives way first, and then tasks that are quiet."""
    root = scene.root
    if root is None:
        return []
    about = _surroundings(scene, now)
    room = height - 4 - about.row_count - bool(about.row_count) - len(notes)  # beside the head and the end
    lines = list(scene.lines)[-LINES_SHOWN:]
    count = max((room - 6) // 4, room - len(tree) - 1)
    lines = lines[-count:] if count > 0 else []
    rows = max(room - len(lines) - bool(lines), ROWS_MIN)
    parts: list[RenderableType] = [_head(scene, root, now, width), Text(), *_tasks(scene, tree, now, width, rows)]
    if about.row_count:
        parts += [Text(), about]
    if lines:
        parts += [Text(), _last_lines(lines, width)]
    parts += [_line(note, "bold yellow") for note in notes]
    # A terminal echoes ^C where the cursor stands: on a line of its own, where it pushes nothing away.
    return parts if scene.is_over else [*parts, Text()]


def _head(scene: Scene, root: WorkstreamRecord, now: int, width: int) -> Table:
    name = wording.plain(root.name or root.id)
    state = root.state.value.replace("_", " ").ljust(STATE_WIDTH)
    counted = f"{scene.succeeded}/{scene.total}"
    spent = wording.duration((root.completed_at or now) - (root.started_at or root.created_at))
    narrowest, widest = BAR_WIDTHS
    left = width - sum(map(len, (name, state, counted))) - SPENT_WIDTH - 8
    bar = ProgressBar(
        total=max(scene.total, 1),
        completed=scene.succeeded,
        width=max(narrowest, min(left, widest)),
        complete_style="blue",
    )
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, overflow="ellipsis")
    for _ in range(4):
        table.add_column(no_wrap=True)
    style = wording.STYLES.get(root.state, "bold blue")
    table.add_row(Text(name, style="bold"), Text(state, style=style), bar, counted, Text(spent, style="dim"))
    return table


def _tasks(scene: Scene, tree: Tree, now: int, width: int, height: int) -> list[RenderableType]:
    is_whole = len(tree) <= height
    shown = tree.choose(height if is_whole else height - 1)
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", width=min(tree.name_width, width * 2 // 5))
    table.add_column(no_wrap=True, justify="right", width=SPENT_WIDTH)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for row in shown:
        table.add_row(*_cells(scene, row, now))
    if is_whole:
        return [table]
    hidden = scene.total - sum(row.task is not None for row in shown)
    counts = ", ".join(f"{count} {state.value.replace('_', ' ')}" for state, count in scene.counts.items())
    return [table, _line(f"and {hidden} more; of all: {counts}", "dim")]


def _cells(scene: Scene, row: Row, now: int) -> list[Any]:
    space = "  " * row.indent
    task = row.task
    if task is None:
        return _heading(scene.workstreams[row.workstream_id], space)
    sign, style = wording.SIGNS[task.state]
    name = Text.assemble((f"{space}{sign} ", style), (task.key, "bold" if task.state is TaskState.RUNNING else ""))
    quiet = "dim" if task.state in (TaskState.RUNNING, TaskState.PENDING, TaskState.COMPLETED) else style
    return [name, Text(wording.spent(task, now), style="dim"), Text(wording.reason(scene, task, now), style=quiet)]


def _heading(stream: WorkstreamRecord, space: str) -> list[Any]:
    """Of a child's tasks."""
    is_bad = stream.state in (WorkstreamState.BLOCKED, WorkstreamState.FAILED)
    why = f": {stream.last_error}" if is_bad and stream.last_error else ""
    name = Text(f"{space}▾ {wording.plain(stream.name or stream.id)}", style="bold")
    return [name, "", Text(wording.plain(f"{stream.state}{why}"), style=wording.STYLES.get(stream.state, "bold"))]


def _surroundings(scene: Scene, now: int) -> Table:
    """How busy workers are, and breakers that are not closed."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="dim", no_wrap=True, width=len("breaker"))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    if not scene.is_over:
        used = [f"{worker} {tasks}/{slots}" for worker, tasks, slots in scene.busy_workers() if tasks]
        table.add_row("workers", Text("  ".join(used) or "idle", style="" if used else "dim"))
    for each in wording.breakers(scene, now):
        table.add_row("breaker", Text(each, style="magenta"))
    return table


def _last_lines(lines: list[tuple[str, str]], width: int) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    names = max(len(name) for name, _ in lines)
    table.add_column(style="cyan", no_wrap=True, overflow="ellipsis", width=min(names, width * 2 // 5))
    table.add_column(style="dim", width=1)
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for name, line in lines:
        table.add_row(name, "│", Text(wording.plain(line)))
    return table


def _line(text: str, style: str) -> Text:
    return Text(wording.plain(text), style=style, no_wrap=True, overflow="ellipsis")
