"""`understudy run` and `resume`: a workstream from a file, or one that was left, run here and now to its end."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from understudy.runtime.cli.completion import complete_target
from understudy.runtime.cli.options import DEFAULT_DATABASE, AsJson, Database
from understudy.runtime.cli.output import BAD_USE, fail, telling_errors

if TYPE_CHECKING:
    from understudy.actors.definition import Workstream
    from understudy.runtime.foreground import Ended, Foreground

FAILED = 1
CANCELLED = 3
BLOCKED = 4
BAD_DEFINITION = 5
CUT_OFF = 130  # as shells say it of a program that SIGINT has ended

Slots = Annotated[int | None, typer.Option("--workers", min=1, help="Programs and threads that run at once.")]
Watch = Annotated[
    bool | None, typer.Option("--watch/--no-watch", help="The live view; on a terminal it is there by itself.")
]


def run(
    file: Annotated[Path | None, typer.Argument(help="A definition in YAML, TOML or JSON.")] = None,
    param: Annotated[list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A param.")] = None,
    database: Database = DEFAULT_DATABASE,
    resume_id: Annotated[
        str | None,
        typer.Option("--resume", metavar="ID", help="Go on with this one.", autocompletion=complete_target),
    ] = None,
    workers: Slots = None,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """Run a workstream here and now, and show how it goes.

    Everything is written to the database as it happens: kill this at any time, and go on with --resume ID.
    Ctrl+C cancels in order, and says how to go on; a second one stops at once.

    Exits with 0 when it completed, 1 when it failed, 2 for bad use, 3 when it was cancelled, 4 when it is blocked
    and waits for an operator, 5 for a bad definition, and 130 when it was stopped at once.
    """
    if (file is None) == (resume_id is None):
        fail("name a file, or --resume with the id of a workstream")
    if resume_id is not None:
        if param:
            fail("--param is for a file: a workstream that is resumed has its params already")
        resume(resume_id, database, workers, watch, as_json)
        return
    definition, params = _load(file or Path(), param or [])
    foreground = _open(database, definition, workers, watch, as_json)
    _conclude(lambda: foreground.start(definition, params), database, as_json)


def resume(
    workstream_id: Annotated[str, typer.Argument(metavar="ID", help="A workstream.", autocompletion=complete_target)],
    database: Database = DEFAULT_DATABASE,
    workers: Slots = None,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a workstream: one that a crash cut off, that is blocked, or that failed or was cancelled.

    What succeeded is not run again. The same as `run --resume ID`, with the same exit codes.
    """
    definition = _definition_of(database, workstream_id)
    foreground = _open(database, definition, workers, watch, as_json)
    _conclude(lambda: foreground.resume(workstream_id), database, as_json)


def _load(file: Path, given: list[str]) -> "tuple[Workstream, dict[str, Any]]":
    from understudy.actors.definition import DefinitionError
    from understudy.runtime.cli.problems import print_problems
    from understudy.runtime.definition import load

    try:
        definition = load(file)
    except DefinitionError as error:
        print_problems(error)
        raise typer.Exit(BAD_DEFINITION) from None
    return definition, dict(_read_param(definition, each) for each in given)


def _read_param(definition: "Workstream", text: str) -> tuple[str, Any]:
    """A value has the type of the one that it replaces: a text stays a text, anything else is read as JSON."""
    import msgspec

    from understudy.actors.definition.problems import did_you_mean

    name, separator, value = text.partition("=")
    if not separator:
        fail(f"--param {text}: write NAME=VALUE")
    if name not in definition.params:
        hint = did_you_mean(name, definition.params) or f"there are {', '.join(definition.params) or 'none'}"
        fail(f"--param {name}: there is no such param ({hint})", BAD_DEFINITION)
    if isinstance(definition.params[name], str):
        return name, value
    try:
        return name, msgspec.json.decode(value.encode())
    except msgspec.DecodeError as error:
        fail(f"--param {name}: {value!r} is not JSON, and {definition.params[name]!r} is no text ({error})")


def _definition_of(database: Path, workstream_id: str) -> "Workstream":
    from understudy.actors.engine.reading import definition_of
    from understudy.runtime.cli.looking import look

    try:
        return definition_of(look(database, lambda reading: reading.workstream(workstream_id)))
    except typer.Exit:  # with the code of a question, which is that of a run that failed
        raise typer.Exit(BAD_USE) from None


def _open(
    database: Path, definition: "Workstream", slots: int | None, watch: bool | None, as_json: bool
) -> "Foreground":
    from rich.console import Console

    from understudy.adapters.clock import wall_us
    from understudy.runtime.foreground import Foreground, workers_for
    from understudy.runtime.tuning import tune
    from understudy.runtime.views.lines import JsonView, LineView
    from understudy.runtime.views.live import LiveView
    from understudy.runtime.views.outlet import Outlet
    from understudy.runtime.views.scene import Scene

    tune()
    sys.path.insert(0, definition.directory or ".")  # functions beside the file, as for a Python program
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"there is no folder {database.parent} for the database, and it cannot be made: {error.strerror}")
    is_live = sys.stdout.isatty() if watch is None else watch
    outlet = Outlet(sys.stdout)

    def show(scene: Scene) -> Any:
        if as_json:
            return JsonView(scene, outlet.say)
        if not is_live:
            return LineView(scene, outlet.say)
        return LiveView(scene, wall_us, Console(file=cast("TextIO", outlet)))

    return Foreground(database, workers_for(definition, slots), show)


def _conclude(go: Any, database: Path, as_json: bool) -> None:
    """Run it, say how it ended, and exit accordingly."""
    import anyio

    from understudy.actors.definition import DefinitionError
    from understudy.runtime.cli.problems import print_problems
    from understudy.runtime.foreground import Stopped
    from understudy.runtime.views.outlet import Outlet

    with telling_errors():
        try:
            ended: Ended = anyio.run(go)
        except DefinitionError as error:
            print_problems(error)
            raise typer.Exit(BAD_DEFINITION) from None
        except Stopped as error:
            fail(str(error), CUT_OFF)
    code = _exit_code(ended)
    outlet = Outlet(sys.stdout)
    if as_json:
        from understudy.runtime.views.lines import JsonView

        record = ended.record
        said = {"workstream_id": record.id, "state": record.state.value, "error": record.last_error, "exit_code": code}
        JsonView(ended.scene, outlet.say).say("end", **said)
    else:
        from understudy.runtime.cli.farewell import say

        say(ended, database, code, outlet.say)
    raise typer.Exit(code)


def _exit_code(ended: "Ended") -> int:
    from understudy.actors.lifecycle import WORKSTREAM, Trait, WorkstreamState

    state = ended.record.state
    if Trait.SATISFIES in WORKSTREAM.states[state]:
        return 0
    if ended.was_cut_off:
        return CUT_OFF
    if state is WorkstreamState.CANCELLED:
        return CANCELLED
    return FAILED if WORKSTREAM.is_terminal(state) else BLOCKED
