"""`understudy explain` and `logs`: the commands for somebody who wonders what is going on."""

from typing import Annotated

import typer

from understudy.runtime.cli.options import DEFAULT_DATABASE, AnyTarget, AsJson, Database, Target


def explain(target: AnyTarget, database: Database = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Say why something is not moving, and what to do about it."""
    from understudy.adapters.clock import wall_us
    from understudy.runtime.cli.explaining import explain_target

    explain_target(target, database, as_json, wall_us())


def logs(
    target: Target,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="This one; the newest when left out.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the target has ended.")] = False,
    tail: Annotated[int | None, typer.Option("--tail", min=0, help="Only so many of the last lines.")] = None,
    database: Database = DEFAULT_DATABASE,
) -> None:
    """Show what a task has written, or all tasks of a workstream, each line behind its task."""
    from understudy.runtime.cli.reading_logs import read_logs

    read_logs(target, database, attempt, follow, tail)
