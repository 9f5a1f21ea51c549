"""Whether an output is as a pattern or a JSON Schema wants it.

A schema stands for itself: what it refers to is looked for in it, and never fetched.
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import msgspec

from understudy.actors.definition.problems import step

ERRORS_SHOWN: Final = 3
SHOWN_MAX: Final = 300  # characters of one error, or of an output


def find_fault_by_pattern(pattern: str, output: Any) -> str | None:
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return None if re.search(pattern, text) else f"{pattern!r} is not in the output: {_short(text)}"


def find_fault_by_schema(schema: dict[str, Any], output: Any) -> str | None:
    """The first few places where an output is not as it should be."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - it takes long to import
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    if (fault := fault_of_schema(schema)) is not None:
        return fault
    validator = validators.validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    try:
        errors = list(islice(validator.iter_errors(output), ERRORS_SHOWN + 1))
    except Unresolvable as error:
        return f"the schema refers to {error.ref!r}, which is not in it: what is elsewhere is not fetched"
    except RecursionError:
        return "the schema refers to itself without end"
    shown = [f"{_path(each.absolute_path)}: {_short(each.message)}" for each in errors[:ERRORS_SHOWN]]
    more = ["and more"] if len(errors) > ERRORS_SHOWN else []
    return "\n".join(shown + more) or None


def fault_of_schema(schema: dict[str, Any]) -> str | None:
    """Why it is no JSON Schema, where it is none."""
    from jsonschema import Draft202012Validator, SchemaError, validators  # noqa: PLC0415

    if not isinstance(schema.get("$schema", ""), str):
        return "it is no JSON Schema: $.$schema: is not a text"
    try:
        validators.validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"it is no JSON Schema: {_path(error.absolute_path)}: {_short(error.message)}"
    except RecursionError:
        return "it is no JSON Schema that can be used: it is nested too deep"
    return None


def _path(steps: Iterable[str | int]) -> str:
    path = "$"
    for each in steps:
        path = step(path, each)
    return path


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]} [...]"
