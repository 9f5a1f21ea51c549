"""The command `understudy`: its options, and the commands that hang below it."""

from importlib.metadata import version
from typing import Annotated

import typer

from understudy.runtime.cli import database, definition, lifecycle, log

application = typer.Typer(name="understudy", no_args_is_help=True, add_completion=False)


def main() -> None:
    """The entry point of the installed command."""
    application()


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"understudy {version('understudy')}")
        raise typer.Exit


@application.callback(invoke_without_command=True)
def understudy(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A durable task orchestrator that lives inside one asyncio process."""


application.command("validate")(definition.validate)
application.command("graph")(definition.graph)
application.command("schema")(definition.schema)
application.command("lifecycle")(lifecycle.show)
application.command("check")(database.check)
application.command("doctor")(database.doctor)
application.command("sql")(database.sql)
application.command("validate-log")(log.validate_log)
application.command("archive")(log.archive)
application.command("show-archived")(log.show_archived)
