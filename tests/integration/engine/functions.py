"""What the engine's tests let tasks do. A gate keeps a task where it is until a test opens it."""

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

import anyio
import structlog

from understudy.runtime import PermanentError, RetryPolicy, Task, Workstream, current_task

HERE = "tests.integration.engine.functions"


class Gates:
    """Events by name. Those of the loop and those of threads are apart."""

    def __init__(self) -> None:
        self._of_loop: dict[str, anyio.Event] = {}
        self._of_threads: dict[str, threading.Event] = {}

    def async_gate(self, name: str) -> anyio.Event:
        return self._of_loop.setdefault(name, anyio.Event())

    def thread_gate(self, name: str) -> threading.Event:
        return self._of_threads.setdefault(name, threading.Event())

    def open(self, name: str) -> None:
        """On the loop."""
        self.async_gate(name).set()
        self.thread_gate(name).set()


gates = Gates()
tries: dict[str, int] = {}


async def add(a: int, b: int = 1) -> int:
    return a + b


def double(number: int) -> int:
    return 2 * number


def where() -> list[Any]:
    """Which process and which thread this is."""
    return [os.getpid(), threading.current_thread().name]


async def where_async() -> list[Any]:
    return where()


async def total(numbers: list[int]) -> int:
    return sum(numbers)


async def nothing() -> None: ...


async def note(path: str, text: str) -> None:
    """Leave a trace outside."""
    before = Path(path).read_text() if Path(path).exists() else ""
    Path(path).write_text(f"{before}{text}\n")


async def fail(why: str = "no use") -> None:
    raise PermanentError(why)


async def fail_until(name: str, attempt: int) -> int:
    """Fails until its attempt is this one."""
    tries[name] = tries.get(name, 0) + 1
    if current_task().attempt < attempt:
        raise ValueError(f"not yet {name}")
    return tries[name]


async def wait_at(gate: str) -> str:
    """Until a test opens the gate, or it is cancelled."""
    current_task().progress(note="waits")
    await gates.async_gate(gate).wait()
    return f"{gate} was open"


async def ignore_cancel(gate: str) -> str:
    """Swallows its cancellation, and goes on until the gate is open."""
    current_task().progress(note="waits")
    while not gates.async_gate(gate).is_set():
        try:
            await gates.async_gate(gate).wait()
        except asyncio.CancelledError:
            continue
    return "late"


def ignore_cancel_in_thread(gate: str) -> str:
    current_task().progress(note="waits")
    gates.thread_gate(gate).wait()
    return "late"


def ignore_for_ever() -> None:
    current_task().progress(note=str(os.getpid()))
    threading.Event().wait()


def wait_at_pipe(path: str) -> str:
    """The first attempt waits until somebody writes to the pipe; another one does not."""
    task = current_task()
    task.progress(note=str(os.getpid()))
    return Path(path).read_text() if task.attempt == 1 else "second"


def leave(code: int) -> None:
    os._exit(code)


def kill_own_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def make_text(size: int) -> str:
    return "x" * size


async def block_the_loop(gate: str, beyond_s: float) -> str:
    """Blocks the loop until the stall has been reported, and longer."""
    gates.thread_gate(gate).wait(10)
    threading.Event().wait(beyond_s)
    return "blocked"


async def speak(secret: str, how: str) -> Any:
    """Gives a secret away, in every way there is."""
    task = current_task()
    task.log.info("spoken", said=secret, deep={"er": [secret]})
    task.progress(note=f"I know {secret}")
    if how == "raise":
        raise PermanentError(f"refused: {secret}")
    return {"said": f"<{secret}>", secret: os.environ["TOKEN_OF_ENGINE"]}


async def log_a_line() -> None:
    current_task().log.info("a line")


async def raise_a_child(gate: str | None = None) -> Any:
    """Spawns a child and gives what it gave."""
    task = current_task()
    inner = Task("inner", call=f"{HERE}:wait_at", inputs={"gate": gate}) if gate else _adding()
    child = await task.spawn(Workstream((inner,)))
    task.progress(note=child)
    return [child, await task.result_of(child)]


async def nest() -> Any:
    """A child in a child, until nobody may go deeper."""
    task = current_task()
    child = await task.spawn(Workstream((Task("nest", call=f"{HERE}:nest", retry=RetryPolicy(max_attempts=1)),)))
    return await task.result_of(child)


async def add_tasks(count: int) -> int:
    """Adds to its own graph."""
    tasks = [Task(f"added-{number}", call=f"{HERE}:add", inputs={"a": number}) for number in range(count)]
    await current_task().add(tasks)
    return count


def _adding() -> Task:
    return Task("inner", call=f"{HERE}:add", inputs={"a": 1})


def raise_a_child_by_hand() -> Any:
    """The same from a plain function."""
    task = current_task()
    child = task.wait(task.spawn, Workstream((_adding(),)))
    return [child, task.wait(task.result_of, child)]


def keep_quiet() -> None:
    """For programs whose output is read by a test: no log."""
    structlog.configure(processors=[_drop])


def _drop(*_: Any) -> Any:
    raise structlog.DropEvent
