"""Definitions in Python, with types: `flow.add(function, ...)` makes a task, and its `output` feeds the next.

A function is stored by its import path and its arguments as JSON. So it must be importable, and what cannot be
stored is refused here, with the path to the offender.
"""

from collections.abc import Callable, Coroutine, Iterable
from inspect import Parameter, signature
from itertools import chain, count
from math import isfinite
from types import ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from understudy.actors.definition import (
    BreakerPolicy,
    Check,
    DefinitionError,
    Problem,
    RetryPolicy,
    Task,
    When,
    Workstream,
)
from understudy.actors.definition.problems import step
from understudy.actors.errors import MisuseError
from understudy.runtime.definition.loading import load_data
from understudy.runtime.definition.yaml_reading import DEPTH_MAX

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")


class Options(msgspec.Struct, frozen=True):
    """What can be said of a task besides what it calls."""

    id: str | None = None
    after: tuple["Node[Any]", ...] = ()
    when: When = When.ALL_SUCCEEDED
    condition: Any = True
    optional: bool = False
    capabilities: tuple[str, ...] = ()
    priority: int = 0
    timeout: float | None = None
    retry: RetryPolicy | None = None
    breaker: BreakerPolicy | None = None
    checks: tuple[Check, ...] = ()


class Function(Generic[P, R]):
    """A function with options of its own. It can still be called."""

    def __init__(self, function: Callable[P, R], options: Options) -> None:
        self.function = function
        self.options = options
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


@overload
def task(function: Callable[P, R], /) -> Function[P, R]: ...
@overload
def task(
    *,
    optional: bool = False,
    capabilities: Iterable[str] = (),
    priority: int = 0,
    timeout: float | None = None,
    retry: RetryPolicy | None = None,
    breaker: BreakerPolicy | None = None,
    checks: Iterable[Check] = (),
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Give a function options for every task that calls it: `@task` or `@task(timeout=30)`."""
    for name in ("capabilities", "checks"):
        options[name] = tuple(options.get(name, ()))

    def decorate(function: Callable[P, R]) -> Function[P, R]:
        return Function(function, Options(**options))

    return decorate if function is None else decorate(function)


class Node(Generic[R]):
    """A task that has been added. Hand its `output` to another to bind the one to the other."""

    def __init__(self, id: str) -> None:  # noqa: A002 - the word of the definition
        self.id = id

    @property
    def output(self) -> R:
        """What the task will return. To the type checker a value, until then a `Binding` to it."""
        return cast("R", Binding(f"{self.id}.output"))


class Binding:
    """A value that is not there yet. Attributes and items of it are bindings too."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> "Binding":
        if name.startswith("_"):
            raise AttributeError(name)
        return Binding(f"{self._text}.{name}")

    def __getitem__(self, key: int | str) -> "Binding":
        if isinstance(key, str) and not key.replace("-", "_").isidentifier():
            raise MisuseError(f"{key!r} cannot be written in ${{...}}: take the whole and pick it inside the task")
        return Binding(f"{self._text}[{key}]" if isinstance(key, int) else f"{self._text}.{key}")

    def __str__(self) -> str:
        return f"${{{self._text}}}"

    def __eq__(self, other: object) -> bool:
        raise MisuseError(f"{self} has no value before it runs: compare it inside a task")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise MisuseError(f"{self} has no value before it runs: put the decision into a task, or use `condition`")

    def __iter__(self) -> Any:
        raise MisuseError(f"{self} has no items before it runs: use flow.map(...)")


class Adding:
    """Adds tasks to a flow, with what was said of them."""

    def __init__(self, flow: "Flow", said: Options) -> None:
        self._flow = flow
        self._said = said

    @overload
    def add(self, function: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> Node[R]: ...
    @overload
    def add(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Node[R]: ...
    def add(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Node[Any]:
        """Add a task that calls a function with these arguments, some of which may be outputs of others."""
        return self._flow.include(function, args, kwargs, self._said)

    @overload
    def map(
        self, function: Callable[Concatenate[Item, P], Coroutine[Any, Any, R]], items: Iterable[Item], /,
        *args: P.args, **kwargs: P.kwargs,
    ) -> Node[list[R]]: ...  # fmt: skip
    @overload
    def map(
        self, function: Callable[Concatenate[Item, P], R], items: Iterable[Item], /, *args: P.args, **kwargs: P.kwargs
    ) -> Node[list[R]]: ...
    def map(self, function: Callable[..., Any], items: Iterable[Any], /, *args: Any, **kwargs: Any) -> Node[list[Any]]:
        """Add a task that runs once for each item, which is the first argument. Its output is the list of results."""
        each: Any = items if isinstance(items, Binding) else list(items)
        return self._flow.include(function, (Binding("item"), *args), kwargs, self._said, each)


class Flow(Adding):
    """A workstream in the making. `build` checks it and gives the definition."""

    def __init__(self, id: str | None = None, **fields: Any) -> None:  # noqa: A002 - the word of the definition
        super().__init__(self, Options())
        self._fields: dict[str, Any] = {"id": id, **fields}
        self._tasks: list[Task] = []

    def having(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the word of the definition
        after: Iterable[Node[Any]] = (),
        when: When = When.ALL_SUCCEEDED,
        condition: Any = True,
    ) -> Adding:
        """Say more of the next task: `flow.having(id="notes", after=[fix]).add(write_notes, ...)`."""
        return Adding(self, Options(id=id, after=tuple(after), when=when, condition=condition))

    def build(self) -> Workstream:
        """The definition. Raises `DefinitionError` with everything that is wrong with it."""
        given = {name: _stored(value, f"$.{name}") for name, value in self._fields.items() if value is not None}
        return load_data({**given, "tasks": msgspec.to_builtins(self._tasks)})

    def include(self, function: Any, args: Any, kwargs: Any, said: Options, each: Any = None) -> Node[Any]:
        """What `add` and `map` come down to: a task from a function, its arguments and what was said of it."""
        own = function.options if isinstance(function, Function) else Options()
        plain = function.function if isinstance(function, Function) else function
        where = import_path(plain)
        id_ = said.id or self._next_id(plain.__name__.lstrip("_"))
        path = f"$.tasks[{len(self._tasks)}]"
        self._tasks.append(
            Task(
                id=id_,
                call=where,
                inputs=_stored(_bound(plain, args, kwargs), f"{path}.with"),
                after=tuple(node.id for node in said.after),
                when=said.when,
                condition=_stored(said.condition, f"{path}.if"),
                each=None if each is None else _stored(each, f"{path}.each"),
                optional=own.optional,
                capabilities=own.capabilities,
                priority=own.priority,
                timeout=own.timeout,
                retry=own.retry,
                breaker=own.breaker,
                checks=own.checks,
            )
        )
        return Node(id_)

    def _next_id(self, name: str) -> str:
        taken = {task.id for task in self._tasks if task.id.startswith(name)}
        return next(each for each in chain([name], (f"{name}-{n}" for n in count(2))) if each not in taken)


def import_path(function: Any) -> str:
    """Where a function can be imported from, as module:function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    bound_to = getattr(function, "__self__", None)
    is_instance = bound_to is not None and not isinstance(bound_to, type | ModuleType)
    if not module or not name or "<" in name or is_instance:
        what = name or repr(function)
        raise MisuseError(f"{what} cannot be imported by another process: define it at the top of a module")
    return f"{module}:{name}"


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, as they are stored."""
    try:
        bound = signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise MisuseError(f"{function.__qualname__} cannot be called so: {error}") from None
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind in (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL):
            raise MisuseError(f"{function.__qualname__} takes {name} by position only: a task passes arguments by name")
        found |= value if kind is Parameter.VAR_KEYWORD else {name: value}
    return found


def _stored(value: Any, path: str, depth: int = 0) -> Any:
    """A value as JSON would store it, with bindings written as `${...}`."""
    if isinstance(value, Binding):
        return str(value)
    if isinstance(value, Node):
        raise MisuseError(f"{path} is a task: hand on its output, {value.id}.output")
    if depth > DEPTH_MAX:
        raise DefinitionError([Problem(path, f"nested deeper than {DEPTH_MAX} levels")])
    if isinstance(value, dict):
        pairs = ((_key(key, path), each) for key, each in cast("Any", value).items())
        return {key: _stored(each, step(path, key), depth + 1) for key, each in pairs}
    if isinstance(value, list | tuple):
        return [_stored(each, step(path, index), depth + 1) for index, each in enumerate(cast("Any", value))]
    if isinstance(value, float) and not isfinite(value):
        raise DefinitionError([Problem(path, f"{value} cannot be stored as JSON")])
    try:
        stored = msgspec.to_builtins(value)
        msgspec.json.encode(stored)
    except (TypeError, OverflowError, ValueError):
        raise DefinitionError([Problem(path, f"{type(value).__name__} cannot be stored as JSON")]) from None
    return stored


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise DefinitionError([Problem(path, f"the key {key!r} is not a text")])
    return key
