"""`understudy repair`: a row that was changed by hand says again what its last move led to."""

from typing import Annotated

import typer

from understudy.runtime.cli.operating import name_user
from understudy.runtime.cli.options import DEFAULT_DATABASE, AnyTarget, AsJson, Database, Who, Why
from understudy.runtime.cli.output import BAD_USE, fail, print_json, print_table, telling_errors
from understudy.runtime.cli.wording import cut


def repair(
    target: AnyTarget,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    why: Why = None,
    who: Who = None,
    database: Database = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Mend a record that does not say what its history says. Shows the changes, and asks.

    The row as it was is kept in the table meta. From there on go the legal way: reset, skip or resolve.
    """
    import anyio

    from understudy.actors.engine.remedies import read_target
    from understudy.adapters.clock import wall_us
    from understudy.adapters.stores.sqlite import SqliteStore
    from understudy.adapters.stores.sqlite.repair import plan_repair

    entity, record_id = read_target(target)
    with telling_errors():
        planned = plan_repair(database, entity, record_id)
    changes = planned.changes()
    if not changes:
        _tell(target, planned.record.state, as_json, "says what its history says: nothing is to be repaired")
        return
    if not as_json:
        rows = [[name, cut(str(said), 70), cut(str(after), 70)] for name, said, after in changes]
        print_table(f"{target} will be written anew", ["column", "says", "will say"], rows)
    if not yes and (as_json or not typer.confirm("Write it?", err=True)):
        fail("nothing was changed: say --yes to repair it", BAD_USE)

    async def write() -> None:
        async with SqliteStore(database) as store:
            await store.mend(planned, wall_us(), who or name_user(), why)

    with telling_errors():
        anyio.run(write)
    _tell(target, planned.record.state, as_json, f"is {planned.record.state}, as its history says")


def _tell(target: str, state: str, as_json: bool, said: str) -> None:
    if as_json:
        print_json({"target": target, "state": state})
    else:
        typer.echo(f"{target} {said}")
