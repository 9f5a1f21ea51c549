"""What you start: the embedding facade, definitions, recovery, simulation, daemon and command line.

What is named here is imported when it is used: a command that only shows its help needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.actors.definition import (
        BreakerPolicy,
        Check,
        DefinitionError,
        ErrorRules,
        OnFailure,
        RetryPolicy,
        Task,
        Tool,
        When,
        WorkerDefinition,
        WorkerKind,
        Workstream,
    )
    from understudy.actors.engine.house import Limits
    from understudy.actors.engine.reception import NotTakingWork
    from understudy.actors.engine.requests import Conflict, NotFound
    from understudy.actors.lifecycle import InvalidTransition
    from understudy.adapters.stores.sqlite import Durability
    from understudy.adapters.tools import PermanentError, TaskContext, TransientError, current_task
    from understudy.runtime.definition import Flow, load, task
    from understudy.runtime.handles import Handle, TaskFailed, WorkstreamFailed
    from understudy.runtime.runtime import Runtime
    from understudy.runtime.waiting import RuntimeClosed

__all__ = [
    "BreakerPolicy",
    "Check",
    "Conflict",
    "DefinitionError",
    "Durability",
    "ErrorRules",
    "Flow",
    "Handle",
    "InvalidTransition",
    "Limits",
    "NotFound",
    "NotTakingWork",
    "OnFailure",
    "PermanentError",
    "RetryPolicy",
    "Runtime",
    "RuntimeClosed",
    "Task",
    "TaskContext",
    "TaskFailed",
    "Tool",
    "TransientError",
    "When",
    "WorkerDefinition",
    "WorkerKind",
    "Workstream",
    "WorkstreamFailed",
    "current_task",
    "load",
    "task",
]

_HOMES = {
    "actors.definition": (
        "BreakerPolicy",
        "Check",
        "DefinitionError",
        "ErrorRules",
        "OnFailure",
        "RetryPolicy",
        "Task",
        "Tool",
        "When",
        "WorkerDefinition",
        "WorkerKind",
        "Workstream",
    ),
    "actors.engine.house": ("Limits",),
    "actors.engine.reception": ("NotTakingWork",),
    "actors.engine.requests": (
        "Conflict",
        "NotFound",
    ),
    "actors.lifecycle": ("InvalidTransition",),
    "adapters.stores.sqlite": ("Durability",),
    "adapters.tools": (
        "PermanentError",
        "TaskContext",
        "TransientError",
        "current_task",
    ),
    "runtime.definition": (
        "Flow",
        "load",
        "task",
    ),
    "runtime.handles": (
        "Handle",
        "TaskFailed",
        "WorkstreamFailed",
    ),
    "runtime.runtime": ("Runtime",),
    "runtime.waiting": ("RuntimeClosed",),
}
_HOME_OF = {name: f"understudy.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return __all__
