"""The last words of a run: how it ended, what failed and why, and the commands that lead on from there."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from understudy.actors.lifecycle import TaskState, WorkstreamState
from understudy.adapters.folders import Folders
from understudy.runtime.cli.options import name_database
from understudy.runtime.foreground import Ended
from understudy.runtime.views.wording import plain

FAILED_SHOWN = 5


def say(ended: Ended, database: Path, code: int, write: Callable[[str], None]) -> None:
    record, scene = ended.record, ended.scene
    counts = ", ".join(f"{count} {state.value.replace('_', ' ')}" for state, count in scene.counts.items())
    write(f"\n{record.id} {record.state.value.replace('_', ' ')}: {counts or 'no tasks'}")
    failed = scene.tasks_in(TaskState.FAILED).values()
    for view in islice(failed, FAILED_SHOWN):
        write(f"  {scene.name_of(view)}: {plain(view.error or 'failed')}")
        if logs := Folders(database).logs(view.workstream_id, view.key):
            write(f"    its output is in {logs[-1].path}")
    if len(failed) > FAILED_SHOWN:
        write(f"  and {len(failed) - FAILED_SHOWN} more that failed")
    if record.last_error and code:
        write(f"  why: {plain(record.last_error)}")
    for each in scene.workstreams.values():
        if (merge := each.merge) is not None and merge.commit is not None:
            what = "" if each.id == record.id else f"{each.name or each.id} "
            write(plain(f"  {what}merged into {merge.target} as {merge.commit[:12]}: {', '.join(merge.files)}"))
    for what, command in _ways_on(ended, database, code):
        write(f"  {what}:\n    {command}")
    if ended.others:
        write(f"  {ended.others} other workstreams of this database are not done; see `understudy ls`")


def _ways_on(ended: Ended, database: Path, code: int) -> list[tuple[str, str]]:
    """What can be done, and the command that does it, on a line of its own to be copied."""
    if not code:
        return []
    where = name_database(database)
    resume = f"understudy run --resume {ended.record.id}{where}"
    if ended.record.state is WorkstreamState.CANCELLED or ended.was_cut_off:
        return [("to go on with what was not done", resume)]
    target = next((each.id for each in ended.scene.workstreams.values() if each.state in _STUCK), ended.record.id)
    return [
        ("why, and what can be done", f"understudy explain {target}{where}"),
        ("to try again what did not succeed", resume),
    ]


_STUCK = frozenset({WorkstreamState.BLOCKED})
