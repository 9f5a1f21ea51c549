"""How the command speaks: tables for people, one line on standard error for what went wrong."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import typer

FOUND_FAULTS = 1  # the exit code of a command that looked for faults and found some
REFUSED = 1  # the exit code of a command whose target is not there, or is not in a state for it
BAD_USE = 2  # the exit code of a command that was asked for something it cannot do


def fail(message: str, code: int = BAD_USE) -> NoReturn:
    typer.echo(f"understudy: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def telling_errors() -> Generator[None, None, None]:
    """What is wrong with the database is bad use; what is wrong with a target is a refusal."""
    from understudy.actors.errors import MisuseError, UnderstudyError
    from understudy.actors.ports.store import DamagedRow, StoreRefused

    try:
        yield
    except (StoreRefused, MisuseError) as error:
        fail(str(error))
    except DamagedRow as error:
        fail(f"{error}; or see with `understudy check` what would mend it", REFUSED)
    except UnderstudyError as error:
        fail(str(error), REFUSED)


def report(subject: Path, found: Sequence[Any], show: Callable[[Any], str], as_json: bool) -> None:
    """Tell what is wrong with a thing, or that nothing is, and exit accordingly."""
    if as_json:
        print_json(found)
    else:
        for each in found:
            typer.echo(show(each))
        typer.echo(f"{subject}: {len(found)} faults" if found else f"{subject}: all is well")
    if found:
        raise typer.Exit(FOUND_FAULTS)


def print_json(value: Any) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def print_table(title: str | None, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from understudy.runtime.views.wording import plain

    table = Table()
    for heading in headings:
        table.add_column(Text(heading))
    for row in rows:
        table.add_row(*(Text("" if cell is None else plain(str(cell))) for cell in row))
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a pipe has no width: do not fold rows that a program or a person will search
    if title:
        console.print(Text(title), style="bold", highlight=False)
    console.print(table)
