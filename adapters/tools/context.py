"""What running code may know of its attempt, and ask of the engine: `current_task()`.

Its progress, its log, whether it is to stop, and children of its own. What goes out holds no secrets.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from understudy.actors.definition import Task, Workstream
from understudy.actors.errors import MisuseError
from understudy.actors.ports.workplace import Order, Services
from understudy.adapters.tools.failures import cut
from understudy.adapters.tools.secrets import Secrets

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

P = ParamSpec("P")
T = TypeVar("T")
Waiting = Callable[[Callable[[], Awaitable[Any]]], Any]  # how a thread waits for what is async
_current: Final[ContextVar["TaskContext"]] = ContextVar("understudy_task")


def current_task() -> "TaskContext":
    """The task that this code runs in."""
    found = _current.get(None)
    if found is None:
        raise MisuseError("no task is running here: call current_task() from a function that a worker runs")
    return found


class TaskContext:
    """One attempt, as seen from inside."""

    __slots__ = ("_cancelled", "_log", "_numbers", "_services", "_task", "_waiting", "order", "secrets")

    def __init__(self, order: Order, services: Services, waiting: Waiting | None = None) -> None:
        self.order = order
        self.secrets = Secrets(order.secrets) if order.secrets else None
        self._services = services
        self._waiting = waiting
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._log: FilteringBoundLogger | None = None
        self._numbers: itertools.count[int] | None = None

    @property
    def task_id(self) -> str:
        return self.order.task_id

    @property
    def key(self) -> str:
        """The task's id within its workstream."""
        return self.order.key

    @property
    def workstream_id(self) -> str:
        return self.order.workstream_id

    @property
    def attempt(self) -> int:
        return self.order.attempt

    @property
    def generation(self) -> int:
        return self.order.generation

    @property
    def token(self) -> str:
        """Stands for this attempt and no other: give it to tools that can refuse what is out of date."""
        return self.order.token

    @property
    def directory(self) -> str | None:
        """Where the task works: its workspace, or the folder of the file that it is written in."""
        return None if self.order.place is None else self.order.place.directory

    @property
    def inputs(self) -> dict[str, Any]:
        """As they were bound."""
        return self.order.inputs

    @property
    def previous_error(self) -> str | None:
        """How the attempt before ended."""
        return self.order.previous_error

    @property
    def cause(self) -> str | None:
        """Why there is an attempt after the first."""
        return self.order.cause

    @property
    def worker_id(self) -> str:
        return self.order.worker_id

    @property
    def correlation_id(self) -> str | None:
        return self.order.correlation_id

    @property
    def deadline_at(self) -> int:
        """When the attempt is cut off, in microseconds since 1970."""
        return self.order.deadline_at

    def remaining_s(self) -> float:
        """Seconds until then, and not below 0."""
        return max(0.0, self.order.deadline_at / 1e6 - time.time())

    @property
    def log(self) -> "FilteringBoundLogger":
        """A structlog logger that knows workstream, task and attempt, and hides secrets."""
        if self._log is None:
            self._log = _logger(self.order, self.secrets)
        return self._log

    @property
    def cancelled(self) -> bool:
        """Whether this attempt is to end. A plain function looks for itself; an async one is interrupted besides."""
        return self._cancelled or (self._task is not None and self._task.cancelling() > 0)

    def check_cancelled(self) -> None:
        """Raises `asyncio.CancelledError` where the attempt is to end."""
        if self.cancelled:
            raise asyncio.CancelledError(f"attempt {self.token} was cancelled")

    def progress(self, share: float | None = None, note: str | None = None) -> None:
        """Say how far it is: a share from 0 to 1, or a note, or both."""
        if share is not None and not 0 <= share <= 1:
            raise MisuseError(f"progress is a share from 0 to 1, not {share}")
        if note is not None:
            note = cut(self.secrets.hide(note) if self.secrets else note).encode(errors="backslashreplace").decode()
        self._services.progress(self.order, share, note)

    async def spawn(self, definition: Workstream) -> str:
        """Submit a child workstream. Where an earlier attempt did, the same one is answered. Answers its id."""
        if self._numbers is None:
            self._numbers = itertools.count()
        return await self._services.spawn(self.order, definition, next(self._numbers))

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        """Wait for a workstream's end. Its outputs by task; raises where it did not complete."""
        return await self._services.result_of(workstream_id)

    async def add(self, tasks: Sequence[Task]) -> None:
        """Add tasks to the graph that this one belongs to."""
        await self._services.add(self.order, tasks)

    def wait(self, ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same from a plain function: `context.wait(context.spawn, definition)`."""
        if self._waiting is None:
            raise MisuseError("wait(...) would block the loop: await it instead")
        self.check_cancelled()
        answered: T = self._waiting(lambda: ask(*args, **kwargs))
        return answered

    def cancel(self) -> None:
        """For workplaces: tell the code in it to end. May be called from another thread."""
        self._cancelled = True
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended, and so has the code
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def enter(self, task: "asyncio.Task[Any] | None" = None) -> "Token[TaskContext]":
        """For workplaces: this is the current task from here on, in this asyncio task or thread."""
        self._task = task
        if task is not None and self._cancelled:
            task.cancel()  # it was told before it began
        return _current.set(self)

    def leave(self, token: "Token[TaskContext]") -> None:
        _current.reset(token)


def _logger(order: Order, secrets: Secrets | None) -> "FilteringBoundLogger":
    import structlog  # noqa: PLC0415 - worker processes start without it, and most tasks log nothing

    names: dict[str, Any] = {"workstream": order.workstream_id, "task": order.key, "attempt": order.attempt}
    if secrets is None:
        fresh: FilteringBoundLogger = structlog.get_logger().bind(**names)
        return fresh

    def hide(_logger: Any, _method: str, event: Any) -> Any:
        return secrets.hide_in(event)

    # A traceback is written out first, or a later processor would write one with secrets in it.
    first: list[Any] = [structlog.processors.format_exc_info, hide]
    logger: FilteringBoundLogger = structlog.wrap_logger(
        None, processors=[*first, *structlog.get_config()["processors"]], **names
    ).bind()
    return logger
