"""What cannot be run here though it makes sense: functions that do not exist, and schemas that are none."""

from collections.abc import Iterator

from understudy.actors.definition import Check, Problem, Workstream
from understudy.actors.ports.workplace import Workplaces


def find_unrunnable(definition: Workstream, workplaces: Workplaces) -> list[Problem]:
    """Every task and check that would surely fail, before anything has begun."""
    problems: list[Problem] = []
    known: dict[str, str | None] = {}

    def look_at(call: str | None, path: str) -> None:
        if call is None:
            return
        if call not in known:
            try:
                workplaces.kinds_for(call)
                known[call] = None
            except LookupError as error:
                known[call] = str(error)
        if (fault := known[call]) is not None:
            problems.append(Problem(path, fault))

    for index, task in enumerate(definition.tasks):
        tool = definition.tools.get(task.tool or "")
        look_at(task.call or (tool.call if tool is not None else None), f"$.tasks[{index}].call")
    for path, check in _checks_of(definition):
        look_at(check.call, f"{path}.call")
        if check.output_schema is not None:
            problems += _of_schema(f"{path}.output_schema", check.output_schema)
    return problems


def _checks_of(definition: Workstream) -> Iterator[tuple[str, Check]]:
    for index, task in enumerate(definition.tasks):
        for position, check in enumerate(task.checks):
            yield f"$.tasks[{index}].checks[{position}]", check
    for position, check in enumerate(definition.checks):
        yield f"$.checks[{position}]", check


def _of_schema(path: str, schema: dict[str, object]) -> Iterator[Problem]:
    from understudy.adapters.checks.outputs import fault_of_schema  # noqa: PLC0415 - heavy, and seldom needed

    fault = fault_of_schema(schema)
    if fault is not None:
        yield Problem(path, f"it is not a JSON Schema: {fault}")
