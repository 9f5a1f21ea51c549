"""`understudy explain`: why a thing is not moving, on one screen, and what to do about it.

It reads records and changes nothing, whether or not a process is at work on them.
"""

from pathlib import Path

import msgspec
import typer

from understudy.actors.engine.explaining import Explanation
from understudy.actors.engine.remedies import read_target
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import AttemptQuery
from understudy.actors.records import Attempt
from understudy.adapters.log_files import last_lines
from understudy.runtime.cli.looking import look
from understudy.runtime.cli.options import name_database
from understudy.runtime.cli.output import print_json
from understudy.runtime.cli.wording import cut, instant, span, took
from understudy.runtime.reading import Reading

LOG_LINES = 10
ATTEMPTS = 5


class Explained(msgspec.Struct, frozen=True):
    """An explanation with what is known besides."""

    explanation: Explanation
    since: int | None
    owner_pid: int | None
    attempts: list[Attempt]  # the newest first
    log: str | None = None
    log_lines: list[str] = []


def explain_target(target: str, database: Path, as_json: bool, now: int) -> None:
    explained = look(database, lambda reading: _explain(reading, target))
    exact = _with_database(explained.explanation, name_database(database))
    explained = msgspec.structs.replace(explained, explanation=exact)
    if as_json:
        said = msgspec.to_builtins(explained)
        print_json({**said.pop("explanation"), **said})
    else:
        _print(explained, now)


async def _explain(reading: Reading, target: str) -> Explained:
    explanation = await reading.explain(target)
    entity, record_id = read_target(target)
    moves = await reading.moves(entity, record_id)
    known = Explained(explanation, moves[-1].at if moves else None, reading.owner_pid, [])
    if entity is not Entity.TASK:
        return known
    attempts = await reading.attempts(AttemptQuery(task_id=record_id, limit=ATTEMPTS))
    logs = reading.folders.logs(*record_id.split("/", 1))
    if not logs:
        return msgspec.structs.replace(known, attempts=attempts)
    newest = logs[-1].path
    return msgspec.structs.replace(known, attempts=attempts, log=str(newest), log_lines=last_lines(newest, LOG_LINES))


def _with_database(explanation: Explanation, suffix: str) -> Explanation:
    """Commands as they are to be typed: with the database that was asked about."""
    exact = tuple(
        msgspec.structs.replace(each, command=each.command + suffix) if each.command.startswith("understudy ") else each
        for each in explanation.remedies
    )
    return msgspec.structs.replace(explanation, remedies=exact)


def _print(explained: Explained, now: int) -> None:
    told = explained.explanation
    since = "" if explained.since is None else f" since {instant(explained.since)}, for {span(now - explained.since)}"
    typer.secho(f"{told.target} is {told.state}{since}", bold=True)
    _print_fact("why", told.why)
    _print_fact("waits for", cut(", ".join(told.waits_for), 200) or None)
    if told.due_at is not None:
        when = f"in {span(told.due_at - now)}" if told.due_at > now else "now"
        _print_fact("moves", f"{when} at the latest, by itself ({instant(told.due_at)})")
    for each in reversed(explained.attempts):
        length = took(each.started_at, each.ended_at, now)
        _print_fact("attempt", f"{each.attempt} {each.outcome} after {length}: {cut(each.error, 100) or 'no error'}")
    if explained.log is not None:
        _print_fact("log", explained.log)
        for line in explained.log_lines:
            typer.echo(f"  {'':<9} | {line}")
    if told.remedies:
        _print_remedies(explained)


def _print_fact(name: str, value: str | None) -> None:
    if value is not None:
        typer.echo(f"  {name:<9} {value}")


def _print_remedies(explained: Explained) -> None:
    typer.secho("what to do", bold=True)
    if explained.owner_pid is not None:
        typer.echo(f"  pid {explained.owner_pid} has the database open: stop it before you change something")
    for each in explained.explanation.remedies:
        typer.echo(f"  {each.command}\n      {each.when}")
