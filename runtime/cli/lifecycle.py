"""`understudy lifecycle`: the state machines, as tables, diagrams or JSON, in any document's words."""

from enum import StrEnum
from typing import Annotated

import typer

from understudy.actors.lifecycle import DOCUMENTS, MACHINES, Document, Entity, picture
from understudy.actors.lifecycle.picture import Lifecycle
from understudy.runtime.cli.output import fail, print_json, print_table


class Format(StrEnum):
    TABLE = "table"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"
    MARKDOWN = "markdown"


def show(
    entity: Annotated[Entity | None, typer.Argument(help="One of them; all when left out.")] = None,
    document: Annotated[Document | None, typer.Option("--as", help="In the words of this document.")] = None,
    form: Annotated[Format, typer.Option("--format", help="How to show it.")] = Format.TABLE,
) -> None:
    """Show what tasks, workstreams, workers and breakers may do.

    The JSON is {"entity", "states", "transitions": [{"from", "to", "trigger", ...}]}: one object for one
    entity, a list for all.
    """
    shown = _chosen(entity, document)
    match form:
        case Format.JSON:
            print_json(shown[0] if entity else shown)
        case Format.MERMAID:
            typer.echo("\n".join(picture.mermaid(each) for each in shown), nl=False)
        case Format.DOT:
            typer.echo("\n".join(picture.dot(each) for each in shown), nl=False)
        case Format.MARKDOWN:
            if document is not None:
                fail("the page is written in our own words: leave --as out")
            machines = [MACHINES[entity]] if entity else list(MACHINES.values())
            typer.echo(picture.page(machines), nl=False)
        case Format.TABLE:
            for each in shown:
                _print(each)


def _chosen(entity: Entity | None, document: Document | None) -> list[Lifecycle]:
    names = [entity] if entity else list(MACHINES)
    if document is None:
        return [picture.of_machine(MACHINES[name]) for name in names]
    known = DOCUMENTS[document]
    if entity and entity not in known:
        fail(f"{document} does not know a {entity}; it knows {', '.join(known)}")
    return [picture.of_vocabulary(name, known[name], MACHINES[name]) for name in names if name in known]


def _print(lifecycle: Lifecycle) -> None:
    has_triggers = any(row.trigger for row in lifecycle.transitions)
    if has_triggers:
        headings = ["from", "to", "trigger", "only when", "severity"]
        rows = [[row.source, row.target, row.trigger, row.guard, row.severity] for row in lifecycle.transitions]
    else:
        headings, rows = ["from", "to"], [[row.source, row.target] for row in lifecycle.transitions]
    title = f"{lifecycle.entity}: starts as {lifecycle.initial}, ends as {', '.join(lifecycle.terminal) or 'nothing'}"
    print_table(title, headings, rows)
