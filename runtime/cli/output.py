"""How the command speaks: tables for people, one line on standard error for what went wrong."""

from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec
import typer

BAD_USE = 2  # the exit code of a command that was asked for something it cannot do


def fail(message: str, code: int = BAD_USE) -> NoReturn:
    typer.echo(f"understudy: {message}", err=True)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def print_table(title: str | None, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings)
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a pipe has no width: do not fold rows that a program or a person will search
    if title:
        console.print(title, style="bold", highlight=False)
    console.print(table)
