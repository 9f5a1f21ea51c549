"""What a user may ask for: typed, frozen definitions, and whether they make sense."""

from understudy.actors.definition.policies import (
    BreakerPolicy,
    Check,
    ErrorRules,
    RetryPolicy,
    WorkerDefinition,
    WorkerKind,
)
from understudy.actors.definition.problems import DefinitionError, Problem
from understudy.actors.definition.soundness import dependencies, find_problems
from understudy.actors.definition.workstream import (
    Gives,
    HttpRequest,
    OnFailure,
    Task,
    Tool,
    When,
    Workspace,
    WorkspaceKind,
    Workstream,
)

__all__ = [
    "BreakerPolicy",
    "Check",
    "DefinitionError",
    "ErrorRules",
    "Gives",
    "HttpRequest",
    "OnFailure",
    "Problem",
    "RetryPolicy",
    "Task",
    "Tool",
    "When",
    "WorkerDefinition",
    "WorkerKind",
    "Workspace",
    "WorkspaceKind",
    "Workstream",
    "dependencies",
    "find_problems",
]
