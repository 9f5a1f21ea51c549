"""A workstream's workspace: made before its tasks are, merged when its checks have passed, removed when that is stored.

Each step may be done again after a crash. A merge that cannot be done blocks the workstream; nothing is thrown away.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import msgspec
from msgspec.structs import replace

from understudy.actors.kernel import Cancelled, Failed, Outcome, Succeeded
from understudy.actors.lifecycle import WorkstreamState, WorkstreamTrigger
from understudy.actors.ports.workspaces import MergePlan

if TYPE_CHECKING:
    from understudy.actors.engine.progress import Progress

S, T = WorkstreamState, WorkstreamTrigger
SHOWN = 5  # files that a sentence names


class Prepared(msgspec.Struct, frozen=True):
    """The workspace is there, or cannot be made."""

    outcome: Outcome[str]


class Tried(msgspec.Struct, frozen=True):
    """What a merge would bring."""

    outcome: Outcome[MergePlan]


class Merged(msgspec.Struct, frozen=True):
    outcome: Outcome[str]


class CleanUp(msgspec.Struct, frozen=True):
    """That it is merged is durable."""


class CleanedUp(msgspec.Struct, frozen=True):
    outcome: Outcome[None]


Message = Prepared | Tried | Merged | CleanUp | CleanedUp


def prepare(stream: "Progress") -> None:
    """Make the workspace. Its tasks are not created before."""
    seat, workspaces = stream.seat, stream.house.workspaces
    record = seat.record
    _start(stream, lambda: workspaces.prepare(record.id, seat.workspace(), seat.definition.directory), Prepared)


def try_merge(stream: "Progress") -> None:
    """See what a merge would bring, while a conflict can still block the workstream."""
    seat, workspaces = stream.seat, stream.house.workspaces
    record = seat.record
    _start(
        stream,
        lambda: workspaces.plan_merge(record.id, seat.workspace(), record.workspace or ""),
        Tried,
    )


def merge(stream: "Progress") -> None:
    """Bring what was done to where it belongs. Where that was done before a crash, only the cleaning up is left."""
    seat, workspaces = stream.seat, stream.house.workspaces
    record = seat.record
    if record.merge is not None and record.merge.commit is not None:
        _clean_up(stream)
        return
    _start(stream, lambda: workspaces.merge(record.id, seat.workspace(), record.workspace or ""), Merged)


def obey(stream: "Progress", message: Message) -> None:
    """Go on with what a step has given."""
    stream.placing = False
    match message:
        case Prepared(outcome):
            _prepared(stream, outcome)
        case Tried(outcome):
            _tried(stream, outcome)
        case Merged(outcome):
            _merged(stream, outcome)
        case CleanUp():
            _clean_up(stream)
        case CleanedUp(outcome):
            if isinstance(outcome, Failed):
                stream.house.note("workspace not removed", workstream=stream.seat.record.id, reason=str(outcome.error))
            if not isinstance(outcome, Cancelled):
                stream.complete()
        case _:
            assert_never(message)


def let_go(stream: "Progress") -> None:
    """Others may merge into the repository."""
    if stream.seat.is_merged_into:
        stream.house.workspaces.let_go(stream.seat.record.id)


def _start(stream: "Progress", work: Any, wrap: Any) -> None:
    stream.placing = True
    stream.context.start(work, wrap)


def _clean_up(stream: "Progress") -> None:
    seat, workspaces = stream.seat, stream.house.workspaces
    record = seat.record
    _start(stream, lambda: workspaces.remove(record.id, seat.workspace(), record.workspace or ""), CleanedUp)


def _prepared(stream: "Progress", outcome: Outcome[str]) -> None:
    match outcome:
        case Succeeded(path):
            stream.seat.change(workspace=path)
            stream.advance()
        case Failed(error) if stream.seat.record.ending is None:
            stream.uncreated.clear()
            stream.finish(S.FAILED, T.REJECTED, f"its workspace cannot be made: {error}")
        case Failed(_):
            stream.advance()
        case _:
            pass  # it stops: the next life prepares again


def _tried(stream: "Progress", outcome: Outcome[MergePlan]) -> None:
    if stream.seat.record.ending is not None:
        stream.review()
        return
    match outcome:
        case Succeeded(plan) if plan.conflicts:
            stream.block(f"{plan.branch} conflicts with {plan.target} in {_shown(plan.conflicts)}", merge=plan)
        case Succeeded(plan):
            stream.begin_validation(merge=plan)
        case Failed(error):
            stream.block(f"it cannot be merged: {error}")
        case _:
            pass


def _merged(stream: "Progress", outcome: Outcome[str]) -> None:
    seat = stream.seat
    match outcome:
        case Succeeded(commit):
            plan = seat.record.merge or MergePlan("", "")
            seat.change(merge=replace(plan, commit=commit))
            if seat.record.ending is None:
                stream.placing = True
                stream.house.book.then(partial(stream.context.tell, CleanUp()))
            else:
                stream.review()
        case Failed(_) if seat.record.ending is not None:
            stream.review()
        case Failed(error):
            stream.finish(S.FAILED, T.VALIDATION_FAILED, f"it cannot be merged: {error}")
        case _:
            pass


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
