"""What a user may ask for: a workstream, its tasks, and the tools that the tasks use.

The same words serve files, the Python builder, the HTTP API and the database. Whether a definition makes
sense as a whole is checked apart, in `soundness`.
"""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from understudy.actors.definition.limits import Argv, Delay, ExitCode, Id, Priority, ReservedWorkers, Seconds, TaskId
from understudy.actors.definition.policies import BreakerPolicy, Check, RetryPolicy, WorkerDefinition


class When(StrEnum):
    """How the tasks before it must have ended for a task to run."""

    ALL_SUCCEEDED = "all_succeeded"
    NONE_FAILED = "none_failed"
    ANY_SUCCEEDED = "any_succeeded"
    ALL_DONE = "all_done"


class OnFailure(StrEnum):
    """What becomes of a workstream in which a task has failed for good."""

    FAIL = "fail"
    BLOCK = "block"
    RETRY = "retry"


class WorkspaceKind(StrEnum):
    """Where the tasks of a workstream work."""

    NONE = "none"
    DIRECTORY = "directory"
    WORKTREE = "worktree"


class Gives(StrEnum):
    """What the output of a program is."""

    TEXT = "text"
    JSON = "json"


class HttpRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call of an HTTP API. `{name}` in its texts comes from the task's `with`."""

    url: str
    method: Annotated[str, Meta(pattern=r"^[A-Z]+$(?!\n)")] = "GET"
    headers: dict[str, str] = {}
    json: Any = None
    body: str | None = None
    expected_statuses: Annotated[
        tuple[Annotated[int, Meta(ge=100, le=599)], ...], Meta(description="Instead of 200 to 299.")
    ] = ()
    follow_redirects: bool = False


class Tool(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A profile that tasks refer to by name: a program, a Python function, or an HTTP API. Exactly one of them."""

    argv: Annotated[Argv | None, Meta(description="A program and its arguments.")] = None
    call: Annotated[str | None, Meta(description="A Python function, module:function.")] = None
    http: HttpRequest | None = None
    shell: Annotated[
        bool, Meta(description="The first of argv is a shell script, the others its $1, $2 and so on.")
    ] = False
    env: Annotated[dict[str, str], Meta(description="Variables beside those of the runtime.")] = {}
    cwd: Annotated[str | None, Meta(description="A directory within the workspace.")] = None
    stdin: Annotated[str | None, Meta(description="A text that the program reads.")] = None
    gives: Annotated[Gives, Meta(description="How the output of a program is read.")] = Gives.TEXT
    grace: Annotated[Delay, Meta(description="Seconds that a program has to end when it is told to.")] = 5.0
    timeout: Seconds = 300.0
    expected_exit_codes: tuple[ExitCode, ...] = (0,)
    capabilities: Annotated[tuple[str, ...], Meta(description="What a worker must offer.")] = ()
    retry: RetryPolicy = RetryPolicy()
    breaker: BreakerPolicy = BreakerPolicy()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in ("argv", "call", "http") if getattr(self, kind) is not None)


class Task(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One piece of work. It names a tool, or has a function or a program of its own."""

    id: TaskId
    tool: Annotated[str | None, Meta(description="The name of a tool of this workstream.")] = None
    call: Annotated[str | None, Meta(description="A Python function, module:function.")] = None
    argv: Annotated[Argv | None, Meta(description="A program and its arguments.")] = None
    inputs: dict[str, Any] = field(default_factory=dict[str, Any], name="with")
    after: Annotated[tuple[str, ...], Meta(description="Tasks that must end first.")] = ()
    when: When = When.ALL_SUCCEEDED
    condition: Annotated[Any, Meta(description="Skipped when this is false.")] = field(default=True, name="if")
    each: Annotated[Any, Meta(description="A list, or ${...} that gives one: runs once for each ${item}.")] = None
    optional: Annotated[bool, Meta(description="Its failure does not fail the workstream.")] = False
    capabilities: Annotated[tuple[str, ...], Meta(description="What a worker must offer.")] = ()
    priority: Priority = 0
    timeout: Annotated[Seconds | None, Meta(description="Instead of the tool's.")] = None
    expected_exit_codes: Annotated[tuple[ExitCode, ...] | None, Meta(description="Instead of the tool's.")] = None
    retry: Annotated[RetryPolicy | None, Meta(description="Instead of the tool's.")] = None
    breaker: Annotated[
        BreakerPolicy | None, Meta(description="Of a function without a tool; such a one has none by itself.")
    ] = None
    checks: tuple[Check, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in ("tool", "call", "argv") if getattr(self, kind) is not None)


class Workspace(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the work is done."""

    kind: WorkspaceKind = WorkspaceKind.NONE
    path: Annotated[
        str | None, Meta(description="The folder that the directory is made in, or the worktree's repository.")
    ] = None
    branch: Annotated[str | None, Meta(description="The branch that a worktree is merged into.")] = None


class Workstream(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A graph of tasks."""

    tasks: tuple[Task, ...]
    id: Annotated[Id | None, Meta(description="Given by the runtime when left out.")] = None
    name: str | None = None
    params: Annotated[dict[str, Any], Meta(description="Values for ${params.name}.")] = {}
    secrets: Annotated[tuple[str, ...], Meta(description="Variables of the environment that are never shown.")] = ()
    tools: dict[Id, Tool] = {}
    on_failure: OnFailure = OnFailure.FAIL
    retry: Annotated[RetryPolicy, Meta(description="For on_failure: retry.")] = RetryPolicy(max_attempts=3)
    checks: Annotated[tuple[Check, ...], Meta(description="Run when all tasks have ended.")] = ()
    deadline: Annotated[Seconds | None, Meta(description="Seconds from its start; cancelled then.")] = None
    reserved_workers: ReservedWorkers = 1
    priority: Priority = 0
    workers: Annotated[tuple[WorkerDefinition, ...], Meta(description="Started for this file by `run`.")] = ()
    workspace: Workspace = Workspace()
    directory: Annotated[str | None, Meta(description="What relative paths refer to: a file's own folder.")] = None
    retention: Annotated[Seconds, Meta(description="Seconds from its end until it is archived.")] = 604_800.0
    correlation_id: str | None = None
