"""Workstreams within workstreams, for definition files: a task that runs another file and gives what that gave.

The child is cancelled with its parent, has its own workspace, and is the same child for every attempt of the task.
"""

from pathlib import Path
from typing import Any

import msgspec

from understudy.actors.definition import DefinitionError, Problem
from understudy.adapters.tools import PermanentError, current_task
from understudy.runtime.definition import load
from understudy.runtime.handles import WorkstreamFailed


async def run_file(file: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Use it as `call: understudy.runtime.nesting:run_file` with `file` and, where it has any, `params`.

    A relative path is one from the folder of the file that the task stands in. Gives the outputs by task.
    """
    task = current_task()
    definition = load(Path(task.directory or ".") / file)
    unknown = sorted(set(params or {}) - set(definition.params))
    if unknown:
        raise DefinitionError([Problem(f"$.params.{name}", "there is no such param", file=file) for name in unknown])
    named = msgspec.structs.replace(
        definition, params={**definition.params, **(params or {})}, name=definition.name or task.key
    )
    child = await task.spawn(named)
    try:
        return await task.result_of(child)
    except WorkstreamFailed as error:
        raise PermanentError(str(error)) from None  # another attempt would find the same child
