"""The live view, as it is seen on a real terminal: what it shows, in which sizes, and what stays when it has ended."""

from functools import partial
from pathlib import Path

import pytest

from tests.integration.cli.runs import shell, wait_for, write
from tests.integration.cli.terminal import Terminal, needs_tmux, terminal

pytestmark = needs_tmux
COMMAND = "understudy run work.yaml --db state.db"
TOOL = "api: {argv: [sh, -c, 'echo asking; exit 1'], breaker: {failure_threshold: 1, cooldown: 90}, retry: {base_delay: 0, jitter: 0}}"


def write_all_moments(folder: Path) -> None:
    """A file that has a task in each state that lasts."""
    write(
        folder,
        "id: moments",
        "tools:",
        f"  {TOOL}",
        "tasks:",
        shell("build", f"echo compiling; {wait_for('go')}"),
        "  - {id: ask, tool: api}",
        shell(
            "flaky", "echo no luck >&2; exit 3", ", retry: {base_delay: 80, max_delay: 80, jitter: 0, max_attempts: 4}"
        ),
        shell(
            "again",
            f"[ -e been ] || {{ touch been; exit 1; }}; {wait_for('go')}",
            ", retry: {base_delay: 0, jitter: 0}",
        ),
        shell("publish", "true", ", after: [build]"),
    )


def row(screen: str, name: str) -> str:
    """The line that begins with a name, after its sign."""
    return next(line for line in screen.splitlines() if name in line.split()[:2])


def has_moved(name: str, line: str, screen: str) -> bool:
    return row(screen, name) != line


async def look_at_all_moments(window: Terminal) -> str:
    return await window.shows("compiling", "again in", "breaker", "no luck", "attempt 2 of 5")


async def test_each_task_shows_its_state_its_time_and_what_it_waits_for(tmp_path: Path) -> None:
    write_all_moments(tmp_path)
    async with terminal(tmp_path, 120, 40) as window:
        await window.type(COMMAND)
        screen = await look_at_all_moments(window)
        assert row(screen, "build").split()[0] == "●"
        assert row(screen, "build").endswith(" s  compiling")
        assert "↻ flaky" in screen
        assert "again in 1:1" in row(screen, "flaky")
        assert row(screen, "flaky").endswith(", after attempt 1 of 4: exit code 3: no luck")
        assert "⊘ ask" in screen
        assert "waits for the breaker of api, after attempt 1 of 5: exit code 1: asking" in row(screen, "ask")
        assert "attempt 2 of 5" in row(screen, "again")
        assert "  · publish " in screen
        assert row(screen, "publish").endswith("waits for build")
        assert "workers  programs 2/" in screen
        assert "breaker  api open, a probe in " in screen
        assert "flaky │ no luck" in screen
        assert "moments  executing " in screen
        assert "0/5" in screen


async def test_times_move_while_nothing_happens(tmp_path: Path) -> None:
    write_all_moments(tmp_path)
    async with terminal(tmp_path, 120, 40) as window:
        await window.type(COMMAND)
        screen = await look_at_all_moments(window)
        before = {name: row(screen, name) for name in ("build", "flaky", "breaker")}
        for name, line in before.items():
            await window.shows(until=partial(has_moved, name, line))


@pytest.mark.parametrize(("width", "height"), [(60, 15), (160, 50)])
async def test_the_view_fits_a_narrow_and_a_wide_terminal(tmp_path: Path, width: int, height: int) -> None:
    write_all_moments(tmp_path)
    async with terminal(tmp_path, width, height) as window:
        await window.type(COMMAND)
        screen = await window.shows(
            "● build", "⊘ ask", "↻ flaky", "● again", "· publish", "workers  programs", "breaker  api"
        )
        assert screen.count("moments") == 1
        assert all(len(line) <= width for line in screen.splitlines())
        (tmp_path / "go").touch()
        await window.shows("✔ build", "✔ publish")
        await window.press("C-c")
        assert await window.exit_code() == 3
        everything = await window.everything()
        assert everything.count("moments  cancelled") == 1
        assert "moments  executing" not in everything
        assert "  understudy run --resume moments" in everything


async def test_a_graph_of_300_tasks_shows_what_matters_in_24_lines(tmp_path: Path) -> None:
    waits = {index: wait_for("go") for index in (150, 299)}
    tasks = [shell(f"step-{index}", waits.get(index, "true"), ", after: [first]") for index in range(300)]
    write(tmp_path, "tasks:", shell("first", wait_for("begin")), *tasks)
    async with terminal(tmp_path, 80, 24) as window:
        await window.type(COMMAND)
        await window.shows("● first", "and 284 more; of all: 300 pending, 1 running")
        (tmp_path / "begin").touch()
        screen = await window.shows("● step-150", "● step-299", "of all: 2 running, 299 completed")
        assert "299/301" in screen
        assert screen.index("step-150") < screen.index("step-299")
        (tmp_path / "go").touch()
        assert await window.exit_code() == 0
        assert "completed: 301 completed" in await window.everything()


async def test_a_terminal_that_changes_its_size_shows_one_whole_picture(tmp_path: Path) -> None:
    write_all_moments(tmp_path)
    async with terminal(tmp_path, 120, 40) as window:
        await window.type(COMMAND)
        await look_at_all_moments(window)
        for width, height in ((60, 20), (150, 45), (50, 12), (100, 30)):
            await window.resize(width, height)

            def is_whole(screen: str) -> bool:
                lines = screen.splitlines()
                return [sum(each in line for line in lines) for each in ("moments  ", "● build", "breaker  ")] == [
                    1,
                    1,
                    1,
                ]

            await window.shows("· publish", "workers  ", until=is_whole)
        await window.press("C-c")
        assert await window.exit_code() == 3
        assert (await window.screen()).count("moments  cancelled") == 1


async def test_the_last_picture_stays_with_what_failed_and_where_its_output_is(tmp_path: Path) -> None:
    write(
        tmp_path,
        "id: w",
        "tasks:",
        shell("a", "true"),
        shell("b", "echo dust; exit 7", ", after: [a], retry: {max_attempts: 1}"),
    )
    async with terminal(tmp_path, 100, 30) as window:
        await window.type(COMMAND)
        assert await window.exit_code() == 1
        screen = await window.screen()
        assert "w  failed" in screen
        assert "✔ a" in screen
        assert "✘ b" in screen
        assert "workers" not in screen
        assert "its output is in" in screen
        assert "understudy explain w --db state.db" in screen


CHILDREN = """
from understudy.actors.definition import Task, Workstream
from understudy.runtime import current_task

async def split():
    task = current_task()
    script = "echo deep; until [ -e go ]; do sleep 0.02; done"
    for name in ("left", "right"):
        inner = Task("inner", argv=("sh", "-c", script))
        await task.result_of(await task.spawn(Workstream((inner,), name=name)))
"""


async def test_children_are_shown_under_the_task_that_started_them(tmp_path: Path) -> None:
    (tmp_path / "children.py").write_text(CHILDREN)
    write(
        tmp_path,
        "id: w",
        "tasks:",
        "  - {id: split, call: 'children:split'}",
        shell("after", "true", ", after: [split]"),
    )
    async with terminal(tmp_path, 100, 30, PYTHONPATH=".") as window:
        await window.type(COMMAND)
        screen = await window.shows("● inner", "deep")
        order = [screen.index(each) for each in ("● split", "  ▾ left", "    ● inner", "  · after")]
        assert order == sorted(order)
        (tmp_path / "go").touch()
        assert await window.exit_code() == 0
        screen = await window.screen()
        assert screen.index("▾ left") < screen.index("▾ right") < screen.index("✔ after")
        assert screen.count("✔ inner") == 2
