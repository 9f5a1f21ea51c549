"""How actors end: children before parents, the last started first, and nothing dropped unseen.

A stop is taken step by step in the turns of the actor that stops, so that even a million children do not
hold the loop. A kill is done at once. Mail that is left over becomes dead letters either way.
"""

from typing import TYPE_CHECKING, Any

from understudy.actors.kernel.contract import EndReason, Terminated
from understudy.actors.kernel.errors import ActorStopped
from understudy.actors.kernel.observer import DeadReason
from understudy.actors.kernel.order import LEAVING, NOTHING, STOP, STOPPED, STOPPING, Order

if TYPE_CHECKING:
    from understudy.actors.kernel.cell import Cell, Ties


def is_wanted(cell: "Cell[Any]") -> bool:
    """Whether somebody waits for the actor to end."""
    parent = cell.parent
    leaving = parent is not None and (parent.state is STOPPING or parent.state is LEAVING)
    return leaving or STOP in (cell.control or ()) or STOP in (cell.queue or ())


def begin(cell: "Cell[Any]") -> None:
    """Enter the stop: at once where there are no children, over the next turns where there are."""
    cell.state = STOPPING
    cell.kernel.quarantine.pop(cell.serial, None)  # nobody can revive it any more
    if cell.ties and cell.ties.children:
        cell.enqueue()
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
        if not child.receives or child.control is not None or (child.ties and child.ties.children):
            children[serial] = child
            cell.state = LEAVING  # until the end of the child
            child.stop()
            return step
        _end(child, _orderly(child))
        if cell.state is not STOPPING:  # the child's last word has killed its parent
            return step
    cell.enqueue()
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
    cell.kernel.counts.killed += len(doomed)
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
    parent = cell.parent
    if parent is not None and parent.state is LEAVING:
        parent.state = STOPPING
        parent.enqueue()


def _end(cell: "Cell[Any]", reason: EndReason) -> None:
    cell.state = STOPPING  # for its last word: no children, no work, no second stop
    if reason is EndReason.STOPPED:
        _say_goodbye(cell)
        if cell.ended is not None:  # it killed itself with its last word
            return
    kernel = cell.kernel
    cell.end_life()
    cell.state = STOPPED
    cell.ended = reason
    cell.snapshot = NOTHING
    if cell.head is not NOTHING or cell.queue or cell.control:
        _bury_mail(cell)
    if cell.ties:
        _cut(cell, cell.ties, reason)
    if cell.parent is not None and cell.parent.ties:
        cell.parent.ties.children.pop(cell.serial, None)
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
        if watched.ties:
            watched.ties.watchers.pop(cell, None)
    for watcher in ties.watchers:
        if watcher.ties:
            watcher.ties.watching.pop(cell, None)
        if watcher.receives:
            watcher.put_control(Terminated(cell, reason))
    for promise in list(ties.joins):
        if not promise.done():
            promise.set_result(reason)
    cell.ties = None
