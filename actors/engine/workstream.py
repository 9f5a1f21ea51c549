"""A workstream: creates its tasks, wakes those that are ready, and follows its policy when one fails.

A task becomes an actor when nothing before it is left, and only so many are at once. Everything that could be long
is done in chunks, a turn each, so that a graph of 100,000 tasks does not hold up anybody.
"""

from functools import partial
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from understudy.actors.definition import (
    DefinitionError,
    OnFailure,
    When,
)
from understudy.actors.definition.bindings import Unbound
from understudy.actors.engine import explaining, merging, operating
from understudy.actors.engine import messages as m
from understudy.actors.engine.graph import Node, Verdict
from understudy.actors.engine.progress import ENDS, ChildLeft, Leave, PastDeadline, Progress, RetryNow, Validated
from understudy.actors.engine.task import TaskActor
from understudy.actors.engine.task_seat import TaskSeat
from understudy.actors.engine.workstream_seat import WorkstreamSeat
from understudy.actors.kernel import Failed, Outcome, Reply, Succeeded
from understudy.actors.lifecycle import WORKSTREAM, Entity, TaskState, TaskTrigger, WorkstreamState, WorkstreamTrigger
from understudy.actors.records import TaskRecord, task_id

S, T = WorkstreamState, WorkstreamTrigger


class _Continue(msgspec.Struct, frozen=True):
    """Go on with what was too much for one turn."""


class _Fetched(msgspec.Struct, frozen=True):
    """Outputs that were not in memory."""

    node: Node
    outcome: Outcome[list[tuple[Node, Any]]]


class WorkstreamActor(Progress):
    __slots__ = ("_continuing",)

    mailbox_capacity = 10_000_000  # bounded by its active tasks, a few messages for each

    def __init__(self, seat: WorkstreamSeat) -> None:
        super().__init__(seat)
        self._continuing = False

    def started(self) -> None:
        record = self.seat.record
        if WORKSTREAM.is_terminal(record.state):
            self.leave_soon()  # back in memory because somebody wants something of it, or about to leave
            return
        self.arm_timers()
        self.reserve()
        self.uncreated.extend(node for node in self.graph.nodes.values() if node.state is None)
        restored, self.seat.restored = self.seat.restored, {}
        for key, task in restored.items():
            self._restore(self.graph.nodes[key], task)
        if record.ending is not None:
            self.doom_rest(record.last_error or f"the workstream ends: {record.ending}")
        else:
            for node in list(self.graph.broken.values()):
                self.broke(node)
            if record.state is S.VALIDATING:
                self.run_checks()
            elif self.seat.lacks_workspace:
                merging.prepare(self)
        self.advance()

    def receive(self, message: Any) -> None:
        match message:
            case m.TaskStarted():
                self.waiting.pop(message.key, None)
                self.to_executing()
            case m.TaskEnded():
                self._task_ended(message)
            case m.TaskWaits():
                self.waiting[message.key] = message.state
                self.review()
            case _Continue():
                self._continuing = False
                self.advance()
            case _Fetched(node, outcome):
                self._fetched(node, outcome)
            case m.Act():
                operating.act(self, message.request, message.answer)
                if not self.is_live:
                    self.leave_soon()
            case m.Cancel():
                if self.is_live:
                    self.end_by(message.trigger, message.who, message.why)
            case m.AddTasks():
                self._add(message)
            case m.Explain():
                explaining.explain(self, message)
            case m.Recheck():
                self._recheck()
            case RetryNow(generation):
                self.retry_now(generation)
            case PastDeadline(generation):
                if generation == self.seat.record.generation and self.may_time_out:
                    self.end_by(T.TIMED_OUT, None, f"its deadline of {self.seat.definition.deadline:g} s is over")
            case Validated(outcome):
                self.validated(outcome)
            case ChildLeft():
                self.review()
            case merging.Prepared() | merging.Tried() | merging.Merged() | merging.CleanUp() | merging.CleanedUp():
                merging.obey(self, message)
            case Leave():
                self.leave()
            case _:
                assert_never(message)

    # Going on

    def advance(self) -> None:
        """Do as much as one turn allows, and come back for the rest."""
        if self.placing and self.seat.record.state is S.PLANNED:
            return
        left = self.house.limits.chunk
        left = self._create_some(left)
        left = self._end_some(left)
        if self.seat.record.state is not S.PLANNED:
            left = self._wake_some(left)
        self.review()
        more = self.uncreated or self.doomed or (self.graph.ready and self._has_room())
        if more and not self._continuing:
            self._continuing = True
            self.context.tell(_Continue())

    def _create_some(self, left: int) -> int:
        while self.uncreated and left:
            node = self.uncreated.popleft()
            self.seat.create(node)
            if not node.waits:
                self.graph.ready.append(node)
            left -= 1
        if not self.uncreated and self.added:
            self.house.book.then(partial(_send_all, self.added))
            self.added = []
        if not self.uncreated and self.seat.record.state is S.PLANNED:
            self.seat.definition = replace(self.seat.definition, tasks=())
            self.seat.move(S.READY, T.ALL_TASKS_CREATED, definition=self.seat.definition)
        return left

    def _end_some(self, left: int) -> int:
        while self.doomed and left:
            node, state, trigger, reason = self.doomed.popleft()
            left -= 1
            if node.ref is not None and node.ref.alive:
                node.ref.tell(m.Cancel(TaskTrigger.WORKSTREAM_CANCELLED, None, reason))
            elif node.ref is not None:
                operating.end_quarantined(self, node, TaskState.CANCELLED, TaskTrigger.WORKSTREAM_CANCELLED, reason)
            elif node.state is TaskState.PENDING:
                self.seat.settle(node, state, trigger, reason)
        return left

    def _wake_some(self, left: int) -> int:
        graph = self.graph
        while graph.ready and left:
            node = graph.ready[0]
            is_ready = node.state is TaskState.PENDING and node.ref is None and not node.waits
            if is_ready and not self._has_room():
                break
            graph.ready.popleft()
            if is_ready:
                self._wake(node)
                left -= 1
        return left

    def _has_room(self) -> bool:
        return self.graph.active - len(self.waiting) < self.house.room

    def _wake(self, node: Node) -> None:
        """Everything before a task has ended: run it, skip it, or hold it."""
        match self.graph.judge(node):
            case Verdict.HOLD:
                self.graph.held[node.key] = node
                return
            case Verdict.SKIP:
                self.seat.settle(
                    node, TaskState.SKIPPED, TaskTrigger.DEPENDENCY_FAILED, "what it waits for did not succeed"
                )
                return
            case Verdict.RUN:
                pass
        absent = self.seat.absent(node)
        if absent:
            self._fetch(node, absent)
            return
        try:
            if node.items is None and not self.seat.condition(node):
                self.seat.settle(node, TaskState.SKIPPED, TaskTrigger.CONDITION_NOT_MET, "its condition is not met")
            elif self.seat.lacks_items(node):
                self.uncreated.extend(self.graph.unfold(node, self.seat.items(node)))
            else:
                self._spawn(node, self.seat.pending_record(node))
        except (Unbound, LookupError) as error:
            self.seat.settle(node, TaskState.FAILED, TaskTrigger.REJECTED, str(error))
            if node.broken:
                self.broke(node)

    def _spawn(self, node: Node, record: TaskRecord) -> None:
        plan = self.seat.planner.plan(node)
        self.seat.planner.open_breaker(plan)
        node.seat = seat = TaskSeat(self.seat, self.context, record, plan, self.seat.job(node, plan))
        if record.attempts > (record.state is TaskState.RUNNING):  # of the process before
            seat.cause = f"retry after: {record.last_error}"
        node.ref = self.context.spawn(TaskActor, seat, name=record.id)
        self.graph.active += 1

    def _restore(self, node: Node, record: TaskRecord) -> None:
        """Make a task of a process that has ended an actor again."""
        if node.ref is None:
            absent = self.seat.absent(node)
            if absent:
                self.seat.restored[node.key] = record
                self._fetch(node, absent, record)
                return
            try:
                self._spawn(node, record)
            except (Unbound, LookupError) as error:
                self.seat.reject(node, record, str(error))
                if node.broken:
                    self.broke(node)

    def _fetch(self, node: Node, absent: list[Node], record: TaskRecord | None = None) -> None:
        """Read outputs that are not in memory, and look at the task again then."""
        self.fetching += 1
        store, workstream_id = self.house.store, self.seat.record.id

        async def read() -> list[tuple[Node, Any]]:
            found: list[tuple[Node, Any]] = []
            for each in absent:
                task = await store.load(Entity.TASK, task_id(workstream_id, each.key))
                found.append((each, task.output if isinstance(task, TaskRecord) else None))
            return found

        self.context.start(read, lambda outcome: _Fetched(node, outcome))

    def _fetched(self, node: Node, outcome: Outcome[list[tuple[Node, Any]]]) -> None:
        self.fetching -= 1
        match outcome:
            case Succeeded(found):
                for each, output in found:
                    each.output = output
                record = self.seat.restored.pop(node.key, None)
                if record is not None:
                    self._restore(node, record)
                else:
                    self.graph.ready.appendleft(node)
                self.advance()
            case Failed(error):
                raise error  # supervision: a new life tries again
            case _:
                pass

    def _task_ended(self, message: m.TaskEnded) -> None:
        node = self.graph.nodes[message.key]
        if node.ended or message.generation != node.generation:
            return
        self.waiting.pop(message.key, None)
        ref = node.ref
        self.graph.end(node, message.state, message.trigger, message.output)
        if ref is not None:
            ref.stop(drain=True)  # what was told to it before is still answered
        if node.broken:
            self.broke(node)
        self.advance()

    # When something has failed

    def broke(self, node: Node) -> None:
        if self.seat.definition.on_failure is not OnFailure.FAIL or self.seat.record.ending is not None:
            return
        reason = f"task {node.key} {node.state}"
        self._doom_dependents(node)
        self.doom_rest(reason, keep=When.ALL_DONE)

    def _doom_dependents(self, node: Node) -> None:
        """Skip what can never run now, without waiting for the rest of what it waits for."""
        waiting = [node]
        reason = "what it waits for did not succeed"
        seen = {node.key}
        while waiting:
            for each in waiting.pop().dependents:
                rule = When.ALL_SUCCEEDED if each.items is not None else each.definition.when
                if each.key not in seen and each.ref is None and not each.ended and rule is When.ALL_SUCCEEDED:
                    seen.add(each.key)
                    waiting.append(each)
                    self.doomed.append((each, TaskState.SKIPPED, TaskTrigger.DEPENDENCY_FAILED, reason))

    def doom_rest(self, reason: str, keep: When | None = None) -> None:
        """Cancel everything that has not ended, but for tasks with a rule that lets them run after failures."""
        for each in self.graph.nodes.values():
            if not each.ended and (keep is None or each.definition.when is not keep):
                self.doomed.append((each, TaskState.CANCELLED, TaskTrigger.WORKSTREAM_CANCELLED, reason))
        for child in self.house.children.get(self.seat.record.id, ()):
            self.house.workstreams[child].tell(m.Cancel(T.PARENT_CANCELLED, None, reason))

    def end_by(self, trigger: str, who: str | None, why: str | None) -> None:
        """Begin an end that somebody wants. Raises where it may not, and then nothing has changed."""
        record = self.seat.record
        WORKSTREAM.check(record.id, record.state, trigger, ENDS[trigger])
        if record.ending is None:
            self.seat.change(ending=trigger, last_error=why)
            self.seat.ending_by = who
            self.doom_rest(why or f"the workstream ends: {trigger}")
            self.advance()

    # The rest

    def _add(self, message: m.AddTasks) -> None:
        """A running task adds to its own graph. What is there already is left as it is."""
        new, problems = self.seat.look_at_added(message.tasks)
        if problems:
            message.reply.fail(DefinitionError(problems))
            return
        self.uncreated.extend(self.graph.add(new))
        self.added.append(message.reply)
        self.advance()

    def _recheck(self) -> None:
        """The sweep: whatever is alive must have somebody that will move it."""
        for node in (graph := self.graph).nodes.values():
            if node.ref is not None and node.ref.alive:
                node.ref.tell(m.Recheck())
        stranded = graph.stranded() - self.fetching
        if stranded > 0 and not self.doomed:
            self.house.note("repaired tasks that nothing would move", workstream=self.seat.record.id, tasks=stranded)
            graph.settle()
        if self.is_live:
            self.advance()


def _send_all(replies: list[Reply[None]]) -> None:
    for reply in replies:
        reply.send(None)
