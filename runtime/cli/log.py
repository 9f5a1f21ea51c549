"""`understudy validate-log`, `archive` and `show-archived`: what was written down, and is it whole?"""

from pathlib import Path
from typing import Annotated

import typer

from understudy.actors.lifecycle import Document
from understudy.actors.ports.store import StoreError
from understudy.runtime.cli.options import DEFAULT_DATABASE, AsJson, Database, NamedDatabase
from understudy.runtime.cli.output import FOUND_FAULTS, fail, print_json, print_table, report


def validate_log(
    file: Annotated[Path, typer.Argument(help="A log of transitions, one line of JSON each.")],
    document: Annotated[Document | None, typer.Option("--as", help="The log is in the words of this document.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a log: schema, order of time, legal moves, and that each leaves the state that the last one led to.

    Exits with 0 when all is well and with 1 when a line is wrong.
    """
    from understudy.actors.lifecycle.events import check_log

    try:
        with file.open("rb") as lines:
            problems = list(check_log(lines, document))
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    report(file, problems, lambda problem: f"{file}:{problem.line}: {problem.what}", as_json)


def archive(
    named: NamedDatabase = None,
    database: Database = DEFAULT_DATABASE,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path(".state/archive"),
    older_than: Annotated[float, typer.Option(help="Days since the end of a workstream.", min=0)] = 7.0,
    as_json: AsJson = False,
) -> None:
    """Put finished workstreams away: a readable file each, and out of the database."""
    import anyio

    from understudy.adapters.clock import wall_us
    from understudy.adapters.stores.archive import ArchiveError, archive_finished
    from understudy.adapters.stores.sqlite import SqliteStore

    path = named or database

    async def run() -> list[str]:
        async with SqliteStore(path) as store:
            return await archive_finished(store, folder, wall_us(), older_than * 86_400)

    if not path.is_file():
        fail(f"{path} is not there")
    try:
        done = anyio.run(run)
    except (StoreError, ArchiveError) as error:
        fail(str(error), FOUND_FAULTS)
    except OSError as error:
        fail(f"{folder} cannot be written: {error.strerror}", FOUND_FAULTS)
    if as_json:
        print_json(done)
        return
    for name in done:
        typer.echo(str(folder / name))
    typer.echo(f"{len(done)} workstreams archived")


def show_archived(
    file: Annotated[Path, typer.Argument(help="A file in the archive.")], as_json: AsJson = False
) -> None:
    """Show a workstream that was archived: its tasks, and how it came to its end."""
    from understudy.adapters.stores.archive import ArchiveError, read_archive

    try:
        found = read_archive(file)
    except ArchiveError as error:
        fail(str(error), FOUND_FAULTS)
    if as_json:
        print_json(found)
        return
    title = f"{found.workstream.id}: {found.workstream.state}"
    print_table(title, ["task", "state", "attempts"], [[task.key, task.state, task.attempts] for task in found.tasks])
    headings = ["sequence", "record_id", "from_state", "to_state", "trigger"]
    print_table("its moves", headings, [[getattr(move, name) for name in headings] for move in found.transitions])
