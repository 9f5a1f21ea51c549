"""The last words of a run: how it ended, what failed and why, and the commands that lead on from there."""

from pathlib import Path
from typing import Any

import typer

from understudy.actors.lifecycle import TaskState, WorkstreamState
from understudy.actors.records import WorkstreamRecord
from understudy.adapters.folders import Folders
from understudy.runtime.cli.options import DEFAULT_DATABASE
from understudy.runtime.foreground import Ended
from understudy.runtime.views.scene import TaskView

FAILED_SHOWN = 5


def say(ended: Ended, database: Path, code: int) -> None:
    record, scene = ended.record, ended.scene
    counts = ", ".join(f"{count} {state.value}" for state, count in scene.counts.items() if count)
    typer.echo(f"\n{record.id} {record.state.value.replace('_', ' ')}: {counts or 'no tasks'}")
    failed = [view for view in scene.tasks.values() if view.state is TaskState.FAILED]
    for view in failed[:FAILED_SHOWN]:
        _say_failed(view, scene.name_of(view), database)
    if len(failed) > FAILED_SHOWN:
        typer.echo(f"  and {len(failed) - FAILED_SHOWN} more that failed")
    if record.last_error and code:
        typer.echo(f"  why: {record.last_error}")
    for stream in scene.workstreams.values():
        _say_merged(stream)
    for command, when in _ways_on(ended, database, code):
        typer.echo(f"  {command}   {when}")
    if ended.others:
        typer.echo(f"  {ended.others} other workstreams of this database are not done; see `understudy ls`")


def _say_failed(view: TaskView, name: str, database: Path) -> None:
    typer.echo(f"  {name}: {view.error}")
    logs = Folders(database.resolve()).logs(view.workstream_id, view.key)
    if logs:
        typer.echo(f"    its output is in {logs[-1].path}")


def _say_merged(stream: WorkstreamRecord) -> None:
    merge = stream.merge
    if merge is not None and merge.commit is not None:
        files = ", ".join(merge.files) or "nothing"
        typer.echo(f"  {stream.name or stream.id} merged into {merge.target} as {merge.commit[:12]}: {files}")


def _ways_on(ended: Ended, database: Path, code: int) -> list[tuple[str, str]]:
    if not code:
        return []
    where = "" if database == DEFAULT_DATABASE else f" --db {database}"
    resume = f"understudy run --resume {ended.record.id}{where}"
    if ended.record.state is WorkstreamState.CANCELLED or ended.was_cut_off:
        return [(resume, "to go on with what was not done")]
    target: Any = next((each.id for each in ended.scene.workstreams.values() if each.state in _STUCK), ended.record.id)
    return [
        (f"understudy explain {target}{where}", "why, and what can be done"),
        (resume, "to try again what did not succeed"),
    ]


_STUCK = frozenset({WorkstreamState.BLOCKED})
