"""Functions by their import path: found once, with a decoder that gives their arguments the annotated types.

What cannot be found raises `NoSuchFunction`, what cannot be called with its inputs `BadArguments`; neither is worth
another attempt.
"""

import functools
import importlib
import inspect
import typing
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from understudy.actors.definition.problems import did_you_mean
from understudy.actors.errors import UnderstudyError

CALLS_KEPT: Final = 4_096
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class NoSuchFunction(UnderstudyError, LookupError):
    """An import path that leads to no function."""

    permanent = True


class BadArguments(UnderstudyError, TypeError):
    """Inputs that a function cannot be called with."""

    permanent = True


class Called:
    """A function, and what is known of it."""

    def __init__(self, path: str, function: Callable[..., Any]) -> None:
        self.path = path
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
        )
        self._arguments, self._takes_any = _arguments(function)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of workers that can run it."""
        own = "async" if self.is_async else "thread"
        # What is defined in the program that was started cannot be imported by another process.
        return frozenset({own}) if self.path.startswith("__main__:") else frozenset({own, "process"})

    def prepare(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Arguments from inputs, as copies of their own: what a function changes must not reach its next attempt."""
        copied: dict[str, Any] = msgspec.to_builtins(inputs)
        if self._arguments is None:
            return copied
        try:
            found = msgspec.convert(copied, self._arguments, str_keys=True)
        except msgspec.ValidationError as error:
            raise BadArguments(f"{self.path} cannot be called with these inputs: {error}") from None
        known = {name: getattr(found, name) for name in found.__struct_fields__ if name in copied}
        return {**copied, **known} if self._takes_any else known


@functools.lru_cache(CALLS_KEPT)
def find(path: str) -> Called:
    """The function at `module:function`. Raises `NoSuchFunction`."""
    module_name, _, names = path.partition(":")
    if not module_name or not names:
        raise NoSuchFunction(f"{path!r} is not an import path: write module:function")
    found: Any = _import(path, module_name)
    for name in names.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            hint = did_you_mean(name, dir(found)) or f"it must be defined at the top of {module_name}"
            raise NoSuchFunction(f"{path}: there is no {name!r} in {_named(found)} ({hint})") from None
    function = _within(found)
    if not callable(function):
        raise NoSuchFunction(f"{path} is no function but {type(function).__name__}: name a function")
    try:
        return Called(path, function)
    except TypeError as error:
        raise NoSuchFunction(f"{path} {error}") from None


def _import(path: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            hint = "is it installed here, and on sys.path?"
            raise NoSuchFunction(f"{path}: there is no module {error.name!r} ({hint})") from None
        raise NoSuchFunction(f"{path}: the module {name} cannot be imported: {error}") from error
    except BaseException as error:  # a module may do anything on its way in, even exit
        raise NoSuchFunction(f"{path}: the module {name} cannot be imported: {error!r}") from error


def _within(found: Any) -> Any:
    """The function itself, where a decorator has put it into an object with options."""
    if inspect.isroutine(found) or inspect.isclass(found):
        return found
    inner: Any = getattr(found, "function", None)
    return inner if callable(inner) else found


def _named(found: Any) -> str:
    return str(getattr(found, "__name__", type(found).__name__))


def _arguments(function: Callable[..., Any]) -> tuple[type[msgspec.Struct] | None, bool]:
    """A struct of what a function takes by name, and whether it takes other names too. None where nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None, True  # some builtins do not tell
    if any(each.kind is each.POSITIONAL_ONLY and each.default is each.empty for each in parameters):
        raise TypeError("takes arguments by position only, and a task passes them by name: wrap it in a function")
    annotations = _annotations(function)
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in parameters:
        if each.kind in _BY_NAME:
            kind = annotations.get(each.name, Any)
            wanted = kind if _is_known(kind) else Any
            given = () if each.default is inspect.Parameter.empty else (msgspec.UNSET,)
            fields.append(cast("tuple[str, Any]", (each.name, wanted, *given)))
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=not takes_any)
    return struct, takes_any


def _annotations(function: Any) -> dict[str, Any]:
    """Types by parameter. One that cannot be read leaves the others in place."""
    holder = function.__init__ if inspect.isclass(function) else function
    holder = holder if inspect.isroutine(holder) else getattr(holder, "__call__", holder)  # noqa: B004
    holder = inspect.unwrap(holder)
    try:
        return typing.get_type_hints(holder, include_extras=True)
    except Exception:  # a name that is only imported for type checkers
        return {name: kind for name, kind in inspect.get_annotations(holder).items() if not isinstance(kind, str)}


def _is_known(kind: Any) -> bool:
    """Whether msgspec can make such values from JSON."""
    try:
        return not _has_custom(msgspec.inspect.type_info(kind), set())
    except Exception:  # it says so in many ways
        return False


def _has_custom(info: Any, seen: set[int]) -> bool:
    if isinstance(info, msgspec.inspect.CustomType):
        return True
    if isinstance(info, tuple):
        return any(_has_custom(each, seen) for each in cast("Any", info))
    if not isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field) or id(info) in seen:
        return False
    seen.add(id(info))
    return any(_has_custom(getattr(info, name), seen) for name in cast("Any", info).__struct_fields__)
