"""Doing what supervision decided: restart, stop, escalate or quarantine, and revive by hand.

A crash is always dealt with in the turn of the actor that crashed; one that is escalated reaches the
parent as an order in its control lane, and becomes a crash in the parent's own turn.
"""

from typing import TYPE_CHECKING, Any

from understudy.actors.errors import MisuseError
from understudy.actors.kernel import stopping
from understudy.actors.kernel.contract import Quarantined
from understudy.actors.kernel.errors import ActorCrashed, ChildCrashed
from understudy.actors.kernel.observer import Poison
from understudy.actors.kernel.order import IDLE, QUARANTINED, Order
from understudy.actors.kernel.supervision import Verdict, decide, recent

if TYPE_CHECKING:
    from understudy.actors.kernel.cell import Cell


def crashed(cell: "Cell[Any]", message: Any, error: BaseException) -> None:
    """Deal with a crash. Never raises."""
    poison = cell.kernel.book(cell, message, error)
    if cell.actor is None:  # it ended itself, and then crashed
        return
    policy = cell.actor.supervision
    restarts = cell.tie().restarts
    while (verdict := decide(policy, restarts, poison.at)) is Verdict.RESTART:
        restarts[:] = [*recent(policy, restarts, poison.at), poison.at]
        _leave(cell, poison.error)
        try:
            cell.incarnate()
        except BaseException as failure:  # it cannot even be built: that is the next crash
            poison = cell.kernel.book(cell, None, failure)
        else:
            _note_restart(cell, poison.error)
            return
    _leave(cell, poison.error)
    cell.end_life()
    if verdict is Verdict.ESCALATE and cell.parent is cell.kernel.root:
        verdict = Verdict.QUARANTINE  # nobody is above: keep it where an operator sees it
    if verdict is Verdict.QUARANTINE and not stopping.is_wanted(cell):
        _quarantine(cell, poison)
        return
    if verdict is Verdict.ESCALATE:
        _escalate(cell, poison.error)
    stopping.begin(cell)


def revive(cell: "Cell[Any]") -> None:
    """Build a quarantined actor anew from its last snapshot, with its mail and a clean record."""
    if cell.state is not QUARANTINED:
        raise MisuseError(f"{cell.name} is {cell.state}, not quarantined: there is nothing to revive")
    cell.incarnate()
    cell.tie().restarts.clear()
    del cell.kernel.quarantine[cell.serial]
    cell.state = IDLE
    if cell.depth:
        cell.make_ready()
    cell.kernel.tell_observers(lambda observer: observer.revived(cell))


def _note_restart(cell: "Cell[Any]", error: BaseException) -> None:
    cell.kernel.counts.restarted += 1
    cell.kernel.tell_observers(lambda observer: observer.restarted(cell, error))


def _escalate(cell: "Cell[Any]", error: BaseException) -> None:
    parent: Cell[Any] = cell.parent  # type: ignore[assignment]  # only the root has none, and it runs no code
    escalated = ChildCrashed(parent.name, cell.name)
    escalated.__cause__ = error
    if parent.receives:
        parent.put_control(Order("fail", escalated))


def _quarantine(cell: "Cell[Any]", poison: Poison) -> None:
    cell.state = QUARANTINED
    cell.kernel.quarantine[cell.serial] = poison
    ties = cell.tie()
    for reply in list(ties.asks):  # those that still wait, too: who knows when they will be handled
        reply.fail(_no_answer(cell, poison.error))
    for watcher in ties.watchers:
        if watcher.receives:
            watcher.put_control(Quarantined(cell, poison.error))
    cell.kernel.tell_observers(lambda observer: observer.quarantined(cell, poison.error))


def _leave(cell: "Cell[Any]", cause: BaseException) -> None:
    """End what the crashed actor object had under way: its async work, and the asks that it had taken."""
    ties = cell.tie()
    for work in list(ties.works):
        work.cancel()
    ties.works.clear()
    waiting = {id(message) for message in (cell.head, *(cell.queue or ()), *(cell.control or ()))}
    for reply, message in list(ties.asks.items()):
        if id(message) not in waiting:
            reply.fail(_no_answer(cell, cause))


def _no_answer(cell: "Cell[Any]", cause: BaseException) -> ActorCrashed:
    answer = ActorCrashed(cell.name)
    answer.__cause__ = cause
    return answer
