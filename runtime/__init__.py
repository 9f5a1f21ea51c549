"""What you start: the embedding facade, definitions, recovery, simulation, daemon and command line."""

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
