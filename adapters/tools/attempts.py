"""One attempt, from an order to its report: find the function, call it, store what it gave.

Whatever the code in it raises becomes a report. Only its own cancellation passes through.
"""

import asyncio
import inspect
from typing import Any

import msgspec

from understudy.actors.ports.workplace import Report
from understudy.adapters.tools.calls import BadArguments, Called, find
from understudy.adapters.tools.context import TaskContext
from understudy.adapters.tools.failures import describe
from understudy.adapters.tools.storing import to_stored


async def attempt_async(context: TaskContext) -> Report:
    """Run an async function in the calling asyncio task."""
    token = context.enter(asyncio.current_task())
    try:
        called, arguments = _prepare(context)
        if not called.is_async:
            raise BadArguments(f"{called.path} is a plain function: it needs a worker of kind thread or process")
        return _succeeded(context, await called.function(**arguments))
    except asyncio.CancelledError as error:
        if context.cancelled:
            raise
        return failed(context, error)  # the code has raised it by itself
    except BaseException as error:
        return failed(context, error)
    finally:
        context.leave(token)


def attempt_plain(context: TaskContext) -> Report:
    """Run a plain function in the calling thread."""
    token = context.enter()
    try:
        called, arguments = _prepare(context)
        if called.is_async:
            raise BadArguments(f"{called.path} is async: it needs a worker of kind async or process")
        return _succeeded(context, called.function(**arguments))
    except BaseException as error:
        return failed(context, error)
    finally:
        context.leave(token)


def failed(context: TaskContext, error: BaseException) -> Report:
    return describe(error, context.secrets.hide if context.secrets else None)


def _prepare(context: TaskContext) -> tuple[Called, dict[str, Any]]:
    called = find(context.order.call)
    return called, called.prepare(context.order.inputs)


def _succeeded(context: TaskContext, value: Any) -> Report:
    try:
        stored, size = to_stored(value)
    except BaseException:
        if inspect.iscoroutine(value):
            value.close()  # a plain function that calls an async one: it would be warned of besides
        raise
    if context.secrets:
        stored = context.secrets.hide_in(stored)
        size = len(msgspec.json.encode(stored))
    return Report(stored, size)
