"""What operators do from a shell: each command does one thing, and says what became of it.

It is done by the process that has the database open, where that listens, and else in the database at rest.
"""

import getpass
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.runtime.cli.options import (
    DEFAULT_DATABASE,
    AsJson,
    Breaker,
    Database,
    RequestId,
    Target,
    Who,
    Why,
    Worker,
    name_database,
)
from understudy.runtime.cli.output import fail, print_json, telling_errors

if TYPE_CHECKING:
    from understudy.actors.records import WorkstreamRecord

worker = typer.Typer(no_args_is_help=True, help="Workers: what runs tasks.")
breaker = typer.Typer(no_args_is_help=True, help="Breakers: what keeps tasks from a tool that fails.")


def cancel(
    target: Target,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Cancel a workstream with all that belongs to it, or one task."""
    _operate("cancel", target, database, as_json, who=who, why=why, request_id=request_id)


def skip(
    target: Target,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Leave a task out: what depends on it goes on as if it had succeeded."""
    _operate("skip", target, database, as_json, who=who, why=why, request_id=request_id)


def resolve(
    target: Target,
    output: Annotated[str | None, typer.Option("--output", metavar="JSON", help="What the task has given.")] = None,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Say that somebody has done by hand what a task, or a blocked workstream, was to do."""
    given = None if output is None else _read_json(output)
    _operate("resolve", target, database, as_json, who=who, why=why, request_id=request_id, output=given)


def reset(
    target: Target,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Begin a task or a workstream that has ended once more, as its next generation."""
    _operate("reset", target, database, as_json, who=who, why=why, request_id=request_id)


def give_up(
    target: Target,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Let a task that waits for its breaker fail now, or a blocked workstream."""
    _operate("give_up", target, database, as_json, who=who, why=why, request_id=request_id)


@worker.command("pause")
def pause(target: Worker, why: Why = None, who: Who = None, database: Database = DEFAULT_DATABASE) -> None:
    """Let a worker take no new tasks."""
    _operate("pause", target, database, as_json=False, who=who, why=why)


@worker.command("resume")
def resume(target: Worker, why: Why = None, who: Who = None, database: Database = DEFAULT_DATABASE) -> None:
    """Let a paused worker take tasks again."""
    _operate("resume", target, database, as_json=False, who=who, why=why)


@worker.command("drain")
def drain(target: Worker, why: Why = None, who: Who = None, database: Database = DEFAULT_DATABASE) -> None:
    """Let a worker end when its tasks have."""
    _operate("drain", target, database, as_json=False, who=who, why=why)


@worker.command("terminate")
def terminate(target: Worker, why: Why = None, who: Who = None, database: Database = DEFAULT_DATABASE) -> None:
    """End a worker now; its tasks go to others."""
    _operate("terminate", target, database, as_json=False, who=who, why=why)


@breaker.command("trip")
def trip(
    target: Breaker,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Keep everybody from a tool."""
    _operate("trip", target, database, as_json, who=who, why=why, request_id=request_id)


@breaker.command("reset")
def reset_breaker(
    target: Breaker,
    why: Why = None,
    who: Who = None,
    request_id: RequestId = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Let everybody use a tool again."""
    _operate("reset_breaker", target, database, as_json, who=who, why=why, request_id=request_id)


def name_user() -> str | None:
    """The login of whoever types the command, where there is one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def _operate(operation: str, target: str, database: Path, as_json: bool, *, who: str | None, **said: Any) -> None:
    import anyio

    from understudy.actors.engine.requests import Done, Operation, Request
    from understudy.adapters.desk import DeskClosed
    from understudy.adapters.stores.sqlite.ownership import owner_of
    from understudy.runtime import counter
    from understudy.runtime.resting import Resting

    wish = Operation(operation)
    request = Request(wish, target, who or name_user(), **said)

    async def run() -> "tuple[Done, WorkstreamRecord | None]":
        if owner_of(database) is not None:
            with suppress(DeskClosed):
                return await counter.ask(database, request), None
        async with Resting(database) as resting:
            done = await resting.operate(request)
            is_work = wish is not Operation.TRIP and wish is not Operation.RESET_BREAKER
            return done, await resting.workstream(target.partition("/")[0]) if is_work else None

    with telling_errors():
        done, workstream = anyio.run(run)
    if as_json:
        print_json(done)
        return
    became = f"reset (generation {done.generation})" if wish is Operation.RESET else done.state
    typer.echo(f"{done.target} is {became}{_what_next(done.target, workstream, database)}")


def _what_next(target: str, workstream: "WorkstreamRecord | None", database: Path) -> str:
    from understudy.actors.lifecycle import WORKSTREAM

    if workstream is None:
        return ""
    if not WORKSTREAM.is_terminal(workstream.state):
        return f"; go on with: understudy run --resume {workstream.id}{name_database(database)}"
    return "" if target == workstream.id else f", and {workstream.id} is {workstream.state}"


def _read_json(text: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        fail(f"--output is not JSON: {error}; write a text with its quotes, as '\"text\"'")
