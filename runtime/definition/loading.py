"""From a file to a checked definition, or to every problem that it has, each with its line where there are lines."""

import json
import tomllib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec
from yaml import YAMLError

from understudy.actors.definition import DefinitionError, Problem, Workstream, find_problems
from understudy.runtime.definition.conformity import Mismatch, find_mismatches
from understudy.runtime.definition.yaml_reading import Position, locate, read_yaml

FILE_BYTES_MAX: Final = 64 * 2**20


class Format(StrEnum):
    YAML = "yaml"
    TOML = "toml"
    JSON = "json"


_ENDINGS: Final = {".yaml": Format.YAML, ".yml": Format.YAML, ".toml": Format.TOML, ".json": Format.JSON}


def load(path: str | Path) -> Workstream:
    """Read and check a file. Raises `DefinitionError` with all its problems."""
    path = Path(path)
    file = str(path).encode(errors="replace").decode()  # a name may hold bytes that are no text
    form = _ENDINGS.get(path.suffix.lower())
    if form is None:
        what = f"{path.suffix or 'a name without ending'} is not known"
        raise DefinitionError([Problem("$", what, "use .yaml, .toml or .json", file)])
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise DefinitionError([Problem("$", f"{size} bytes are too many: at most {FILE_BYTES_MAX}", None, file)])
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DefinitionError([Problem("$", f"it cannot be read: {error.strerror}", None, file)]) from None
    except UnicodeDecodeError as error:
        raise DefinitionError([Problem("$", f"it is not UTF-8: {error.reason}", None, file)]) from None
    definition = load_text(text, form, file)
    directory = path.parent.resolve() / (definition.directory or "")
    return msgspec.structs.replace(definition, directory=str(directory.resolve()))


def load_text(text: str, form: Format, file: str | None = None) -> Workstream:
    """Read and check a text."""
    try:
        data = _READERS[form](text, file)
    except RecursionError:
        raise DefinitionError([Problem("$", "nested too deeply", None, file)]) from None
    except ValueError as error:  # such as a number of five thousand digits
        raise DefinitionError([Problem("$", str(error), None, file)]) from None
    try:
        return load_data(data)
    except DefinitionError as error:
        places = {} if form is Format.TOML else _places_in(text)
        placed = [_placed(problem, file, places) for problem in error.problems]
        raise DefinitionError(sorted(placed, key=lambda each: (each.line or 0, each.column or 0))) from None


def load_data(data: Any) -> Workstream:
    """Check data that has been read already."""
    try:
        definition = msgspec.convert(data, Workstream)
    except msgspec.ValidationError:
        mismatches = find_mismatches(data, Workstream)
        problems = [each.problem for each in mismatches] + _beyond(data, mismatches)
        raise DefinitionError(problems or [Problem("$", "it does not fit")]) from None
    problems = find_problems(definition)
    if problems:
        raise DefinitionError(problems)
    return definition


def _beyond(data: Any, mismatches: list[Mismatch]) -> list[Problem]:
    """What is wrong besides: checked on a copy from which everything that does not fit was taken out."""
    repaired = msgspec.json.decode(msgspec.json.encode(data, enc_hook=str))
    try:
        for mismatch in reversed(mismatches):
            _take_out(repaired, mismatch)
        return find_problems(msgspec.convert(repaired, Workstream))
    except (msgspec.ValidationError, LookupError, TypeError):
        return []


def _take_out(data: Any, mismatch: Mismatch) -> None:
    """Remove the innermost field that holds the mismatch; a missing id gets a stand-in."""
    if not mismatch.path:
        raise LookupError("nothing is left of it")
    *path, last = mismatch.path
    if mismatch.missing or last == "id":
        for part in path:
            data = data[part]
        data[last] = "-".join(["unnamed", *(str(part) for part in path)]) if last == "id" else []
        return
    cut = max(index for index, part in enumerate(mismatch.path) if isinstance(part, str))
    for part in mismatch.path[:cut]:
        data = data[part]
    data.pop(mismatch.path[cut], None)


def _placed(problem: Problem, file: str | None, places: dict[str, Position]) -> Problem:
    """With the line of the value, or of what it stands in."""
    path = problem.path
    while path not in places and (cut := max(path.rfind("."), path.rfind("["))) > 0:
        path = path[:cut]
    line, column = places.get(path, (None, None))
    return msgspec.structs.replace(problem, file=file, line=line, column=column)


def _places_in(text: str) -> dict[str, Position]:
    """Where things stand. Not all JSON is YAML: then a problem has a path, but no line."""
    try:
        return locate(text)
    except YAMLError:
        return {}


def _read_json(text: str, file: str | None) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise DefinitionError([Problem("$", f"the key {twice!r} is there twice", None, file)])
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise DefinitionError([Problem("$", error.msg, None, file, error.lineno, error.colno)]) from None


_READERS: Final[dict[Format, Callable[[str, str | None], Any]]] = {
    Format.YAML: read_yaml,
    Format.TOML: lambda text, _: tomllib.loads(text),
    Format.JSON: _read_json,
}
