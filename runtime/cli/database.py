"""`understudy check`, `doctor` and `sql`: what can be known of a database without running anything."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from understudy.actors.ports.store import StoreRefused
from understudy.runtime.cli.options import DEFAULT_DATABASE, AsDocument, AsJson, Database, NamedDatabase, name_database
from understudy.runtime.cli.output import FOUND_FAULTS, fail, print_json, print_table, report


def check(named: NamedDatabase = None, database: Database = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Look for damage and inconsistencies. Changes nothing.

    Exits with 0 when all is well and with 1 when something was found.
    """
    from understudy.adapters.stores.sqlite.inspection import Finding, find_faults

    path = named or database
    try:
        found = list(find_faults(path))
    except StoreRefused as error:
        found = [Finding("refused", str(error))]
    report(path, found, lambda finding: f"{finding}{name_database(path) if finding.remedy else ''}", as_json)


def doctor(named: NamedDatabase = None, database: Database = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Say how a database is doing: sizes, durability, schema, owner, and what is in it."""
    from understudy.adapters.stores.sqlite.inspection import examine

    try:
        condition = examine(named or database)
    except StoreRefused as error:
        fail(str(error), FOUND_FAULTS)
    if as_json:
        print_json(condition)
        return
    said = msgspec.to_builtins(condition)
    said["owner_pid"] = condition.owner_pid or "nobody has it open"
    for name in ("workstreams", "tasks"):
        said[name] = ", ".join(f"{count} {state}" for state, count in said[name].items()) or "none"
    print_table(condition.path, ["what", "value"], [[name.replace("_", " "), value] for name, value in said.items()])


def sql(
    database: Annotated[Path, typer.Argument(help="The database of a runtime, such as state.db.")],
    statement: Annotated[str, typer.Argument(help="A SELECT.")],
    document: AsDocument = None,
    as_json: AsJson = False,
) -> None:
    """Read with SQL. Nothing can be changed; with --as a document's own tables and columns are there."""
    from understudy.adapters.stores.sqlite.reading import query

    try:
        columns, rows = query(database, statement, document)
        if as_json:
            print_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            print_table(None, columns, list(rows))
    except StoreRefused as error:
        fail(str(error))
