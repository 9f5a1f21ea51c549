"""What is wrong with a definition, as a compiler shows it: place, message, the line with a caret, and the remedy."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import typer

from understudy.actors.definition import DefinitionError, Problem


def print_problems(error: DefinitionError) -> None:
    """To standard error, each with its place and what would mend it, and how many there are."""
    print_all(error.problems)


def print_all(problems: Sequence[Problem]) -> None:
    for problem in problems:
        typer.echo(_explained(problem), err=True)
    if problems:
        typer.echo(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}", err=True)


def _explained(problem: Problem) -> str:
    lines = [str(msgspec.structs.replace(problem, suggestion=None))]
    if problem.file and problem.line and problem.column:
        source = Path(problem.file).read_text(encoding="utf-8", errors="replace").split("\n")
        if problem.line <= len(source):
            lines += [f"    {source[problem.line - 1]}", f"    {' ' * (problem.column - 1)}^"]
    if problem.suggestion:
        lines.append(f"    {problem.suggestion}")
    return "\n".join(lines)
