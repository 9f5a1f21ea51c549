"""The command `understudy`: its options, and the commands that hang below it."""

from importlib.metadata import version
from typing import Annotated

import typer

from understudy.runtime.cli import (
    asking,
    database,
    definition,
    history,
    lifecycle,
    listing,
    log,
    operating,
    repairing,
    run,
    sample,
    showing,
)

application = typer.Typer(name="understudy", no_args_is_help=True)


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


operating.worker.command("ls")(listing.list_workers)
operating.breaker.command("ls")(listing.list_breakers)

application.command("init")(sample.init)
application.command("run")(run.run)
application.command("resume")(run.resume)
application.command("validate")(definition.validate)
application.command("graph")(definition.graph)
application.command("schema")(definition.schema)
application.command("ls")(listing.ls)
application.command("show")(showing.show)
application.command("explain")(asking.explain)
application.command("logs")(asking.logs)
application.command("history")(history.history)
application.command("cancel")(operating.cancel)
application.command("skip")(operating.skip)
application.command("resolve")(operating.resolve)
application.command("reset")(operating.reset)
application.command("give-up")(operating.give_up)
application.add_typer(operating.worker, name="worker")
application.add_typer(operating.breaker, name="breaker")
application.command("check")(database.check)
application.command("repair")(repairing.repair)
application.command("doctor")(database.doctor)
application.command("sql")(database.sql)
application.command("archive")(log.archive)
application.command("show-archived")(log.show_archived)
application.command("validate-log")(log.validate_log)
application.command("lifecycle")(lifecycle.show)
