"""What a shell offers for a half-written id. It is quick, and silent where nothing can be read."""

from contextlib import suppress
from pathlib import Path

import typer

OFFERED_MAX = 100


def complete_target(context: typer.Context, incomplete: str) -> list[str]:
    """Workstreams; and behind a slash, the tasks of one."""
    return _ids(context, "tasks" if "/" in incomplete else "workstreams", incomplete)


def complete_breaker(context: typer.Context, incomplete: str) -> list[str]:
    return _ids(context, "breakers", incomplete)


def _ids(context: typer.Context, table: str, start: str) -> list[str]:
    from understudy.adapters.stores.sqlite.reading import ids_beginning
    from understudy.runtime.cli.options import DEFAULT_DATABASE

    with suppress(Exception):  # a shell is no place for an error
        return ids_beginning(Path(context.params.get("database") or DEFAULT_DATABASE), table, start, OFFERED_MAX)
    return []
