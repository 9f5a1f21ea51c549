"""What the workplaces of the tests run. Every claim has an async and a plain function, by its name with `_async`."""

import asyncio
import math
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from understudy.adapters.tools import PermanentError, TransientError, current_task


class Point(msgspec.Struct):
    x: int
    y: float


@dataclass
class Parcel:
    to: Point
    weight: float


class Own(BaseException):
    pass


class Boxed:
    """A function with options, as the builder has it."""

    def __init__(self, function: Any) -> None:
        self.function = function


def double(number: int) -> int:
    return 2 * number


def send(parcel: Parcel, by: str = "post") -> Parcel:
    assert isinstance(parcel, Parcel)
    assert isinstance(parcel.to, Point)
    assert by == "post"
    return Parcel(Point(parcel.to.x + 1, parcel.to.y), parcel.weight)


def keep_path(path: Path, note: Any, plain) -> list[str]:  # type: ignore[no-untyped-def]
    return [type(each).__name__ for each in (path, note, plain)]


def spoil(items: list[Any], more: Any) -> int:
    items.append(1)
    more.append(1)
    return len(items) + len(more)


def fail(how: str) -> None:
    errors: dict[str, BaseException] = {
        "value": ValueError("bad input"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "generator": GeneratorExit(),
        "own": Own("mine"),
        "cancelled": asyncio.CancelledError(),
        "permanent": PermanentError("no use"),
        "transient": TransientError("later", retry_after=7),
        "long": ValueError("a" * 10_000 + "z"),
        "surrogate": ValueError("\ud800"),
    }
    raise errors[how]


def odd(what: str) -> Any:
    cycle: list[Any] = []
    cycle.append(cycle)
    values: dict[str, Any] = {
        "nan": {"items": [1, math.nan]},
        "struct": [Point(1, math.inf)],
        "cycle": cycle,
        "object": {"a": object()},
        "key": {"a": {1: 2}},
        "big": {"n": 2**64},
        "large": "x" * 2**21,
        "set": {1},
        "surrogate": ["\ud800"],
    }
    return values[what]


def tell(secret: str, how: str) -> Any:
    if how == "raise":
        raise ValueError(f"refused {secret}")
    return {"said": f"<{secret}>", secret: [os.environ["TOKEN_OF_TESTS"]]}


def know() -> dict[str, Any]:
    task = current_task()
    assert task.remaining_s() > 0
    names = (
        "task_id", "key", "workstream_id", "attempt", "generation", "token", "deadline_at", "inputs",
        "previous_error", "cause", "worker_id", "correlation_id", "cancelled",
    )  # fmt: skip
    return {name: getattr(task, name) for name in names}


def progress() -> None:
    current_task().progress(0.5, "half")
    current_task().progress(note="note")


def log() -> None:
    current_task().log.info("called", token=os.environ["TOKEN_OF_TESTS"])


async def wait_async() -> str:
    current_task().progress(note="started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        assert current_task().cancelled
        raise
    return "never"


def wait() -> None:
    current_task().progress(note="started")
    never = threading.Event()
    while True:
        current_task().check_cancelled()
        never.wait(0.01)


async def ignore_async() -> None:
    current_task().progress(note="started")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


def ignore() -> None:
    current_task().progress(note="started")
    threading.Event().wait()


async def family_async() -> Any:
    from understudy.actors.definition import Task, Workstream

    task = current_task()
    child = Workstream(tasks=(Task("a", call="m:f"),))
    ids = [await task.spawn(child), await task.spawn(child)]
    await task.add([Task("b", call="m:f", inputs={"x": 1})])
    return [ids, await task.result_of(ids[1])]


def family() -> Any:
    from understudy.actors.definition import Task, Workstream

    task = current_task()
    child = Workstream(tasks=(Task("a", call="m:f"),))
    ids = [task.wait(task.spawn, child), task.wait(task.spawn, child)]
    task.wait(task.add, [Task("b", call="m:f", inputs={"x": 1})])
    return [ids, task.wait(task.result_of, ids[1])]


async def refused_async() -> Any:
    return await current_task().result_of("missing")


def refused() -> Any:
    return current_task().wait(current_task().result_of, "missing")


def wait_for_ever() -> Any:
    task = current_task()
    task.progress(note="started")
    return task.wait(task.result_of, "endless")


def leave(code: int) -> None:
    os._exit(code)


def fork_and_leave() -> None:
    """Leaves a process behind that holds the pipe open."""
    if (pid := os.fork()) == 0:
        signal.pause()
    current_task().progress(note=str(pid))
    os._exit(3)


def shout() -> str:
    print("to stdout")  # noqa: T201
    return "done"


async def double_async(number: int) -> int:
    return double(number)


async def send_async(parcel: Parcel, by: str = "post") -> Parcel:
    return send(parcel, by)


async def keep_path_async(path: Path, note: Any, plain) -> list[str]:  # type: ignore[no-untyped-def]
    return keep_path(path, note, plain)


async def spoil_async(items: list[Any], more: Any) -> int:
    return spoil(items, more)


async def fail_async(how: str) -> None:
    fail(how)


async def odd_async(what: str) -> Any:
    return odd(what)


async def tell_async(secret: str, how: str) -> Any:
    return tell(secret, how)


async def know_async() -> dict[str, Any]:
    return know()


async def progress_async() -> None:
    progress()


async def log_async() -> None:
    log()


boxed = Boxed(double)
boxed_async = Boxed(double_async)
not_a_function = 3


_all_here = threading.Barrier(5)


def meet() -> None:
    """All of them are there before any goes on."""
    _all_here.wait(60)


async def meet_async() -> None:
    await asyncio.to_thread(meet)
