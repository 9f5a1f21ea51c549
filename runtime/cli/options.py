"""The options that many commands share, each written once: which database, for whom, in whose words, about what."""

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from understudy.actors.lifecycle import Document
from understudy.runtime.cli.completion import complete_breaker, complete_target

DEFAULT_DATABASE: Final = Path(".state/understudy.db")

Database = Annotated[
    Path, typer.Option("--db", envvar="UNDERSTUDY_DB", help="The database of a runtime.", show_default=True)
]
NamedDatabase = Annotated[Path | None, typer.Argument(metavar="[DATABASE]", help="The same as --db.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
AsDocument = Annotated[Document | None, typer.Option("--as", help="In the words of this document.")]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A workstream, or a task as workstream/task.", autocompletion=complete_target
    ),
]
AnyTarget = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A workstream, a task as workstream/task, worker:ID or breaker:ID.",
        autocompletion=complete_target,
    ),
]
Breaker = Annotated[
    str, typer.Argument(metavar="TOOL", help="The name of a breaker's tool.", autocompletion=complete_breaker)
]
Worker = Annotated[str, typer.Argument(metavar="WORKER", help="The id of a worker.")]
Why = Annotated[str | None, typer.Option("--why", help="The reason, for the history.")]
Who = Annotated[str | None, typer.Option("--who", help="On whose behalf; your login when left out.")]
RequestId = Annotated[
    str | None, typer.Option("--request-id", help="The same request with the same id is carried out once.")
]


def name_database(database: Path) -> str:
    """What is added to a command that is to be typed, so that it means the same database."""
    return "" if database == DEFAULT_DATABASE else f" --db {shlex.quote(str(database))}"
