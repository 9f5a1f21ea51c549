"""`understudy validate`, `schema` and `graph`: what is known of a definition before it runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from understudy.actors.definition import DefinitionError, Problem, Workstream
from understudy.runtime.cli.output import print_json
from understudy.runtime.cli.problems import print_all, print_problems
from understudy.runtime.definition import drawing, load

BAD_DEFINITION = 5  # the exit code for a definition that cannot be used


class GraphFormat(StrEnum):
    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"


def validate(
    files: Annotated[list[Path], typer.Argument(help="Definitions in YAML, TOML or JSON.")],
    as_json: Annotated[bool, typer.Option("--json", help="One list of problems, for programs.")] = False,
) -> None:
    """Check definitions and say everything that is wrong with them.

    Exits with 0 when all are sound, with 5 when one is not.
    """
    problems: list[Problem] = []
    for file in files:
        try:
            definition = load(file)
        except DefinitionError as error:
            problems += error.problems
        else:
            if not as_json:
                typer.echo(f"{file}: sound, {len(definition.tasks)} tasks")
    if as_json:
        print_json(problems)
    else:
        print_all(problems)
    if problems:
        raise typer.Exit(BAD_DEFINITION)


def schema() -> None:
    """Print the JSON Schema of definitions, for editors that complete and check them.

    In YAML: put `# yaml-language-server: $schema=understudy.schema.json` into the first line.
    """
    print_json(json_schema())


def json_schema() -> dict[str, Any]:
    found = msgspec.json.schema(Workstream)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "understudy workstream", **found}


def graph(
    file: Annotated[Path, typer.Argument(help="A definition in YAML, TOML or JSON.")],
    form: Annotated[GraphFormat, typer.Option("--format", help="How to draw it.")] = GraphFormat.TEXT,
) -> None:
    """Draw the graph of a definition. In text, what stands on one level can run at once."""
    try:
        definition = load(file)
    except DefinitionError as error:
        print_problems(error)
        raise typer.Exit(BAD_DEFINITION) from None
    draw = {GraphFormat.TEXT: drawing.text, GraphFormat.MERMAID: drawing.mermaid, GraphFormat.DOT: drawing.dot}
    typer.echo(draw[form](definition), nl=False)
