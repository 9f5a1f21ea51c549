"""A workstream's record and graph, how they are changed, and how its tasks come to life.

It is also what the workstream's actor is rebuilt from after a crash.
"""

from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from understudy.actors.definition import (
    Check,
    Problem,
    Task,
    Workspace,
    WorkspaceKind,
    Workstream,
    find_problems,
)
from understudy.actors.definition.bindings import Unbound, bind, bind_text, follow, is_reference
from understudy.actors.engine.graph import ABSENT, Graph, Node
from understudy.actors.engine.house import House, Plan
from understudy.actors.engine.jobs import Job, bind_check, make_job
from understudy.actors.engine.planning import Planner
from understudy.actors.engine.requests import Answer
from understudy.actors.errors import InternalError
from understudy.actors.lifecycle import Entity, TaskState, TaskTrigger, WorkstreamState, WorkstreamTrigger
from understudy.actors.ports.workspaces import Place
from understudy.actors.records import TaskRecord, WorkstreamRecord, task_id


class WorkstreamSeat:
    __slots__ = ("answers", "definition", "ending_by", "graph", "house", "planner", "record", "restored")

    def __init__(self, house: House, record: WorkstreamRecord, definition: Workstream) -> None:
        self.house = house
        self.record = record
        self.definition = definition
        self.graph = Graph(definition.on_failure)
        self.planner = Planner(house, definition.tools)
        self.restored: dict[str, TaskRecord] = {}  # live tasks that are to become actors again, by key
        self.answers: list[Answer] = []  # to be given at the end
        self.ending_by: str | None = None  # who wanted the end

    # The workstream

    def move(
        self, state: WorkstreamState, trigger: str, *, reason: str | None = None, who: str | None = None, **changes: Any
    ) -> None:
        """Change the workstream's state. Raises where it may not, and then nothing has changed."""
        before, book = self.record, self.house.book
        after = replace(before, state=state, previous_state=before.state._value_, updated_at=book.now_us(), **changes)
        book.move(
            Entity.WORKSTREAM, before, after, trigger, reason=reason, who=who, correlation_id=before.correlation_id
        )
        self.record = after

    def change(self, **changes: Any) -> None:
        """Change what is known of it, not its state."""
        self.record = replace(self.record, updated_at=self.house.book.now_us(), **changes)
        self.house.book.put(Entity.WORKSTREAM, self.record)

    def reopen(self, who: str | None, why: str | None) -> None:
        """Begin the next generation of a workstream that has ended."""
        now, before, book = self.house.book.now_us(), self.record, self.house.book
        after = replace(
            before,
            state=WorkstreamState.PLANNED,
            previous_state=None,
            generation=before.generation + 1,
            updated_at=now,
            owner=self.house.owner,
            retry_count=0,
            started_at=None,
            completed_at=None,
            deadline_at=None,
            last_error=None,
            merge=None,
            workspace=before.workspace if before.merge is None or before.merge.commit is None else None,
        )
        book.move(Entity.WORKSTREAM, before, after, WorkstreamTrigger.RESET, reason=why, who=who)
        self.record = after

    # Its tasks, as long as they are no actors

    def create(self, node: Node, trigger: TaskTrigger = TaskTrigger.CREATED, who: str | None = None) -> None:
        """Give a task its record, or the record of its next generation."""
        node.generation += 1
        node.state, node.trigger = TaskState.PENDING, trigger._value_
        node.created_at = self.house.book.now_us()
        node.output = ABSENT
        self._write(node, None, self.pending_record(node), trigger, None, who)

    def settle(
        self,
        node: Node,
        state: TaskState,
        trigger: str,
        reason: str | None = None,
        who: str | None = None,
        output: Any = None,
    ) -> None:
        """End a task that waits. Raises where it may not."""
        before = self.pending_record(node)
        now = self.house.book.now_us()
        after = replace(
            before,
            state=state,
            previous_state=before.state._value_,
            trigger=str(trigger),
            updated_at=now,
            completed_at=now,
            last_error=reason,
            output=output,
        )
        self._write(node, before, after, trigger, reason, who)
        self.graph.end(node, state, str(trigger), output)

    def reject(self, node: Node, record: TaskRecord, error: str) -> None:
        """Fail a task of a process that has ended, because it cannot be run any more."""
        for state, trigger in _WAYS_OUT[record.state]:
            now, before = self.house.book.now_us(), record
            record = replace(
                before, state=state, previous_state=before.state._value_, trigger=trigger._value_, updated_at=now,
                worker_id=None, due_at=None, last_error=error,
                completed_at=now if state is TaskState.FAILED else None,
            )  # fmt: skip
            self._write(node, before, record, trigger, error, None)
        self.graph.end(node, record.state, record.trigger or "")

    def pending_record(self, node: Node) -> TaskRecord:
        """The record of a task that waits. It follows from its definition, so that nobody has to keep it."""
        definition = node.definition
        retry = self.planner.retry_of(definition)
        return TaskRecord(
            task_id(self.record.id, node.key),
            self.record.id,
            node.key,
            TaskState.PENDING,
            node.created_at,
            node.created_at,
            trigger=node.trigger,
            generation=node.generation,
            max_retries=retry.retries_max,
            priority=self.definition.priority + definition.priority,
            optional=definition.optional,
            depends_on=node.depends_on,
            owner=self.house.owner,
            definition=definition,
            map_of=None if node.map_of is None else node.map_of.key,
            item=node.item,
        )

    def _write(
        self,
        node: Node,
        before: TaskRecord | None,
        after: TaskRecord,
        trigger: str,
        reason: str | None,
        who: str | None,
    ) -> None:
        self.house.book.move(
            Entity.TASK, before, after, trigger, reason=reason, who=who, correlation_id=self.record.correlation_id
        )

    def look_at_added(self, tasks: Iterable[Task]) -> tuple[list[Task], list[Problem]]:
        """Of tasks that a running one adds: those that are not there yet, and what is wrong with them."""
        known = self.graph.nodes
        new = [task for task in tasks if task.id not in known]
        stubs = tuple(Task(key, call="understudy:known") for key in known)
        problems = find_problems(replace(self.definition, tasks=(*stubs, *new)))
        for task in tasks:
            if task.id in known and known[task.id].definition != task:
                problems.append(Problem("$.tasks", f"there is another task {task.id}", "give it an id of its own"))
        if self.record.ending is not None:
            problems.append(Problem("$", f"workstream {self.record.id} is about to end: {self.record.ending}"))
        return new, problems

    # What a task is given

    def condition(self, node: Node) -> bool:
        return bool(bind(node.definition.condition, lambda parts: self._look_up(node, parts)))

    def items(self, node: Node) -> list[Any]:
        """What a map is to be done for. Raises `Unbound` where that is no list."""
        each = node.definition.each
        found: Any = bind(each, lambda parts: self._look_up(node, parts)) if is_reference(each) else each
        if not isinstance(found, list | tuple):
            raise Unbound(f"`each` of {node.key} is not a list but {type(found).__name__}")
        return list(cast("Any", found))

    def lacks_items(self, node: Node) -> bool:
        """Whether a map is yet to be unfolded, wholly or where a crash has left it."""
        if node.definition.each is None:
            return False
        return node.items is None or len(node.items) < len(self.items(node))

    def inputs(self, node: Node) -> dict[str, Any]:
        """Its arguments, bound. Of a map whose items have ended: what they gave."""
        if node.items is not None:
            return {"items": [None if each.output is ABSENT else each.output for each in node.items]}
        given = node.definition.inputs
        return bind(given, lambda parts: self._look_up(node, parts)) if given else {}

    def job(self, node: Node, plan: Plan) -> Job:
        """What it is to do. Raises `Unbound` where something has no value."""
        return make_job(plan, self.inputs(node), lambda parts: self._look_up(node, parts))

    def absent(self, node: Node) -> list[Node]:
        """Nodes whose outputs it takes, and which are not in memory."""
        takes = node if node.map_of is None else node.map_of
        return [
            each for each in self.graph.taken(takes) if each.satisfies and each.output is ABSENT and each is not node
        ]

    def _item(self, node: Node) -> Any:
        """What is written out in `each` is bound only now, so that no secret is stored; what is data never is."""
        if node.map_of is None or is_reference(node.map_of.definition.each):
            return node.item
        return bind(node.item, lambda parts: self._look_up(node, parts))

    def _look_up(self, node: Node, parts: tuple[str, ...]) -> Any:
        name = ".".join(parts)
        match parts:
            case ("params" | "secrets" | "directory", *_):
                return self._look_up_outside(parts)
            case ("item", *rest):
                return follow(self._item(node), tuple(rest), name)
            case (key, "output", *rest):
                output = self.graph.nodes[key].output
                return follow(None if output is ABSENT else output, tuple(rest), name)
            case _:
                raise InternalError(f"${{{name}}} was let through")

    def _look_up_outside(self, parts: tuple[str, ...]) -> Any:
        """What is known without any task."""
        name = ".".join(parts)
        match parts:
            case ("params", *rest):
                return follow(self.definition.params, tuple(rest), name)
            case ("secrets", secret):
                value = self.house.secret(secret)
                if value is None:
                    raise Unbound(f"${{{name}}} has no value: the variable {secret} is not set")
                return value
            case ("directory",):
                return self.definition.directory or "."
            case _:
                raise InternalError(f"${{{name}}} was let through")

    # Where it works

    @property
    def place(self) -> Place | None:
        """What relative paths of its tasks refer to."""
        if self.record.workspace is not None:
            return Place(self.record.workspace, is_closed=True)
        return None if self.definition.directory is None else Place(self.definition.directory)

    def workspace(self) -> Workspace:
        """As it is asked for, with its references written out."""
        asked = self.definition.workspace
        bound = {
            name: bind_text(text, self._look_up_outside)
            for name, text in (("path", asked.path), ("branch", asked.branch))
            if text is not None and "${" in text
        }
        return replace(asked, **bound) if bound else asked

    @property
    def lacks_workspace(self) -> bool:
        return self.definition.workspace.kind is not WorkspaceKind.NONE and self.record.workspace is None

    @property
    def is_merged_into(self) -> bool:
        """Whether what it did is to be merged in the end."""
        return self.definition.workspace.kind is WorkspaceKind.WORKTREE and self.record.workspace is not None

    def final_checks(self) -> tuple[Check, ...]:
        return tuple(bind_check(check, self._look_up_outside) for check in self.definition.checks)


_S, _T = TaskState, TaskTrigger
_WAYS_OUT: dict[TaskState, tuple[tuple[TaskState, TaskTrigger], ...]] = {
    _S.QUEUED: ((_S.FAILED, _T.REJECTED),),
    _S.RUNNING: ((_S.ERRORED, _T.WORKER_LOST), (_S.FAILED, _T.PERMANENT_ERROR)),
    _S.ERRORED: ((_S.FAILED, _T.PERMANENT_ERROR),),
    _S.TIMED_OUT: ((_S.FAILED, _T.RETRIES_EXHAUSTED),),
    _S.VALIDATING: ((_S.FAILED, _T.VALIDATION_FAILED),),
    _S.RETRYING: ((_S.QUEUED, _T.RETRY_DELAY_ELAPSED), (_S.FAILED, _T.REJECTED)),
    _S.CIRCUIT_OPEN: ((_S.FAILED, _T.GAVE_UP),),
    _S.HALF_OPEN: ((_S.QUEUED, _T.PROBE_SCHEDULED), (_S.FAILED, _T.REJECTED)),
}
