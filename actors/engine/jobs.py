"""What one task is to do, with everything put in: the function and its inputs, the program, or the HTTP request.

Whatever an input contains stays one argument, one header, one piece of a URL: it never becomes another.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from understudy.actors.definition import Check, HttpRequest, Tool
from understudy.actors.definition.bindings import (
    Unbound,
    bind_text,
    fill,
    fill_value,
    has_holes,
    parts_of,
    placeholders,
)
from understudy.actors.engine.house import Plan
from understudy.actors.ports.workplace import Program

LookUp = Callable[[tuple[str, ...]], Any]
Find = Callable[[str, bool], Any]
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Job(msgspec.Struct, frozen=True, gc=False):
    """Exactly one of `call`, `program` and `request` is given. With secrets in it: never stored or shown."""

    inputs: dict[str, Any]
    call: str | None = None
    program: Program | None = None
    request: HttpRequest | None = None
    checks: tuple[Check, ...] = ()


def make_job(plan: Plan, inputs: dict[str, Any], look_up: LookUp) -> Job:
    """Raises `Unbound` where something has no value."""
    checks = tuple(bind_check(check, look_up) for check in plan.checks)
    tool = plan.tool
    if tool.call is not None:
        return Job(inputs, tool.call, checks=checks)

    def find(name: str, is_reference: bool) -> Any:
        if is_reference:
            return look_up(parts_of(name))
        if name not in inputs:
            raise Unbound(f"{{{name}}} has no value: add {name} under `with`")
        return inputs[name]

    if tool.http is not None:
        return Job(inputs, request=_request(tool.http, find), checks=checks)
    return Job(inputs, program=_program(tool, plan.expected_exit_codes, find), checks=checks)


def bind_check(check: Check, look_up: LookUp) -> Check:
    """A check with its references written out."""
    changes: dict[str, Any] = {}
    for kind in ("file_exists", "python_import", "js_import"):
        text = getattr(check, kind)
        if text is not None and "${" in text:
            changes[kind] = bind_text(text, look_up)
            if kind == "file_exists":
                _keep_inside(changes[kind], "file_exists")
    if check.command is not None and any("${" in each for each in check.command):
        changes["command"] = tuple(bind_text(each, look_up) for each in check.command)
    return replace(check, **changes) if changes else check


def _program(tool: Tool, expected: tuple[int, ...], find: Find) -> Program:
    cwd = tool.cwd
    if cwd is not None and has_holes(cwd):
        cwd = fill(cwd, find, lambda value: _keep_inside(value, "cwd"))
    return Program(
        tuple(each for item in tool.argv or () for each in _arguments(item, find)),
        tool.shell,
        {name: fill(text, find) for name, text in tool.env.items()},
        cwd,
        None if tool.stdin is None else fill(tool.stdin, find),
        expected,
        tool.grace,
        tool.gives,
    )


def _arguments(item: str, find: Find) -> list[str]:
    """One argument; where it is nothing but a list, one for each of its items."""
    value = fill_value(item, find)
    values = _items(value) if isinstance(value, list) else [value]
    return [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in values]


def _items(value: Any) -> list[Any]:
    return list(value)


def _request(http: HttpRequest, find: Find) -> HttpRequest:
    return replace(
        http,
        url=_url(http.url, find),
        headers={name: fill(text, find) for name, text in http.headers.items()},
        json=fill_value(http.json, find),
        body=None if http.body is None else fill(http.body, find),
    )


def _url(template: str, find: Find) -> str:
    """What is put into a URL is escaped, but for what it begins with: that may be an address."""
    first = next(iter(placeholders((template,))), None)
    head = f"{{{first}}}"
    if first is not None and template.startswith(head):
        return fill(head, find) + fill(template.removeprefix(head), find, _escape)
    if template.startswith("${"):
        head, brace, rest = template.partition("}")
        return fill(head + brace, find) + fill(rest, find, _escape)
    return fill(template, find, _escape)


def _escape(text: str) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def _keep_inside(path: str, what: str) -> str:
    """What comes from an input may name something below a folder, and nothing else."""
    if path.startswith(("/", "~")) or ".." in path.split("/") or "\0" in path:
        raise Unbound(f"{what} {path!r} leads out of the workspace")
    return path
