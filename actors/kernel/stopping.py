"""How actors end: children before parents, the last started first, and nothing dropped unseen.

A stop is taken step by step in the turns of the actor that stops, so that even a million children do not
hold the loop. A kill is done at once. Mail that is left over becomes dead letters either way.
"""

from typing import TYPE_CHECKING, Any

from understudy.actors.kernel.contract import EndReason, Terminated
from understudy.actors.kernel.errors import ActorStopped
from understudy.actors.kernel.observer import DeadReason
from understudy.actors.kernel.order import IDLE, NOTHING, QUARANTINED, STOPPED, STOPPING, Order

if TYPE_CHECKING:
    from understudy.actors.kernel.cell import Cell, Ties


def begin(cell: "Cell[Any]") -> None:
    """Enter the stop: at once where there are no children, over the next turns where there are."""
    cell.state = STOPPING
    if cell.ties and cell.ties.children:
        cell.wake()
    else:
        _finish(cell)


def resume(cell: "Cell[Any]", limit: int) -> int:
    """End up to `limit` children, and after the last one the actor itself. Answers how many steps it took."""
    children = cell.tie().children
    for step in range(1, limit + 1):
        if not children:
            _finish(cell)
            return step
        serial, child = children.popitem()  # looking at the last one would scan over all that were removed
        resting = child.state is IDLE or child.state is QUARANTINED
        if not resting or (child.ties and child.ties.children):
            children[serial] = child
            child.stop()
            return step  # the end of the child wakes us
        _end(child, _orderly(child))
    cell.wake()
    return limit


def kill(cell: "Cell[Any]") -> None:
    """End an actor and all below it, here and now."""
    if cell.state is STOPPED:
        return
    doomed: list[Cell[Any]] = []
    stack = [cell]
    while stack:
        each = stack.pop()
        doomed.append(each)
        if each.ties:
            stack.extend(reversed(each.ties.children.values()))
    while doomed:
        _end(doomed.pop(), EndReason.KILLED)
    _wake_parent(cell)


def _finish(cell: "Cell[Any]") -> None:
    _end(cell, _orderly(cell))
    _wake_parent(cell)


def _orderly(cell: "Cell[Any]") -> EndReason:
    """A cell whose actor has crashed for good, and was discarded, has failed."""
    return EndReason.FAILED if cell.actor is None else EndReason.STOPPED


def _wake_parent(cell: "Cell[Any]") -> None:
    if cell.parent is not None and cell.parent.state is STOPPING:
        cell.parent.wake()


def _end(cell: "Cell[Any]", reason: EndReason) -> None:
    kernel = cell.kernel
    if reason is EndReason.STOPPED:
        _say_goodbye(cell)
    cell.state = STOPPED
    cell.ended = reason
    cell.actor = None
    cell.snapshot = NOTHING
    if cell.head is not NOTHING or cell.queue or cell.control:
        _bury_mail(cell)
    if cell.ties:
        _cut(cell, cell.ties, reason)
    if cell.parent is not None:
        cell.parent.tie().children.pop(cell.serial, None)
    kernel.quarantine.pop(cell.serial, None)
    kernel.counts.stopped += 1
    if kernel.observers.listening:
        kernel.observers.tell(lambda observer: observer.stopped(cell, reason))


def _bury_mail(cell: "Cell[Any]") -> None:
    left_over = (cell.head, *(cell.queue or ()), *(cell.control or ()))
    cell.head, cell.queue, cell.control = NOTHING, None, None
    for message in left_over:
        if message is not NOTHING and message.__class__ is not Order:
            cell.kernel.bury(cell, message, DeadReason.STOPPED)


def _say_goodbye(cell: "Cell[Any]") -> None:
    try:
        cell.actor.stopped()  # type: ignore[union-attr]  # an orderly end: there is an actor
    except BaseException as error:
        cell.kernel.book(cell, None, error)


def _cut(cell: "Cell[Any]", ties: "Ties", reason: EndReason) -> None:
    for work in list(ties.works):
        work.cancel()
    for reply in list(ties.asks):
        reply.fail(ActorStopped(cell.name))
    for watched in ties.watching:
        watched.tie().watchers.pop(cell, None)
    for watcher in ties.watchers:
        watcher.tie().watching.pop(cell, None)
        if watcher.alive:
            watcher.put_control(Terminated(cell, reason))
    for promise in ties.joins:
        if not promise.done():
            promise.set_result(reason)
    cell.ties = None
