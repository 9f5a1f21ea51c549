"""What an actor has under way outside its mailbox: timers and async work.

Each belongs to the life in which it was begun. When that is over, by a crash or by the end of the actor,
the timer does nothing and the outcome of the work is a dead letter.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from understudy.actors.errors import InternalError
from understudy.actors.kernel.observer import DeadReason
from understudy.actors.kernel.order import Order
from understudy.actors.kernel.work import AnyOutcome, Cancelled

if TYPE_CHECKING:
    from understudy.actors.kernel.cell import Cell


class ActorTimer:
    """A message that an actor will tell itself."""

    __slots__ = ("_cell", "_life", "_message")

    def __init__(self, cell: "Cell[Any]", message: Any) -> None:
        self._cell: Cell[Any] | None = cell
        self._life = cell.life
        self._message = message

    @property
    def armed(self) -> bool:
        return self._cell is not None and self._life == self._cell.life

    def fire(self) -> None:
        cell, message = self._cell, self._message
        self.cancel()
        if cell is not None:
            cell.deliver(message)

    def cancel(self) -> None:
        self._cell = self._message = None  # it may stay in the queue for a while, and is to keep nobody


class ActorWork:
    """Async work that an actor has started."""

    __slots__ = ("_cell", "_end", "_life", "_then")

    def __init__(self, cell: "Cell[Any]", then: Callable[[Any], Any]) -> None:
        self._cell = cell
        self._life = cell.life
        self._then = then
        self._end: Callable[[], None] | None = None
        cell.tie().works[self] = None

    @property
    def name(self) -> str:
        return f"work of {self._cell.name}"

    def run(self, end: Callable[[], None]) -> None:
        """Remember how the kernel that runs the work can end it early."""
        self._end = end

    def cancel(self) -> None:
        if self._end is not None:
            self._end()

    def finish(self, outcome: AnyOutcome) -> None:
        cell, then = self._cell, self._then
        self._end, self._then = None, _finished  # whoever keeps this is not to keep what `then` knows
        if cell.ties:
            cell.ties.works.pop(self, None)
        if self._life == cell.life:
            try:
                message = then(outcome)
            except BaseException as error:
                cell.put_control(Order("fail", error, self._life))
            else:
                cell.deliver(message)
        elif not isinstance(outcome, Cancelled):
            cell.kernel.bury(cell, outcome, DeadReason.LATE)


def _finished(outcome: Any) -> Any:
    raise InternalError(f"work has finished twice, the second time with {outcome!r}")
