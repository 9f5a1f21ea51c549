"""A definition's graph as people want to see it: Mermaid, DOT, or text."""

from collections.abc import Callable, Iterator

from understudy.actors.definition import Task, Workstream, dependencies


def mermaid(definition: Workstream) -> str:
    numbers = _numbers(definition)
    lines = ["flowchart TD"]
    for task in definition.tasks:
        label = _label(task, "<br/>").replace('"', "#quot;")
        lines.append(f'    t{numbers[task.id]}["{label}"]')
    lines += (f"    t{numbers[before]} --> t{numbers[after]}" for before, after in _edges(definition))
    return "\n".join(lines) + "\n"


def dot(definition: Workstream) -> str:
    lines = ["digraph workstream {", "    node [shape=box, style=rounded];"]
    lines += (f'    "{task.id}" [label="{_label(task, _DOT_BREAK, _quoted)}"];' for task in definition.tasks)
    lines += (f'    "{before}" -> "{after}";' for before, after in _edges(definition))
    return "\n".join([*lines, "}"]) + "\n"


def text(definition: Workstream) -> str:
    """One line a task, in an order in which they could run, by level: what is on one level can run at once."""
    waits_for = dependencies(definition)
    levels: dict[str, int] = {}
    followers: dict[str, list[str]] = {}
    for task_id, before in waits_for.items():
        for each in before:
            followers.setdefault(each, []).append(task_id)
    missing = {task_id: len(before) for task_id, before in waits_for.items()}
    ready = [task_id for task_id, count in missing.items() if not count]
    levels |= dict.fromkeys(ready, 0)
    for task_id in ready:  # grows while it is walked
        for follower in followers.get(task_id, ()):
            levels[follower] = max(levels.get(follower, 0), levels[task_id] + 1)
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    tasks = {task.id: task for task in definition.tasks}
    lines: list[str] = []
    for task_id in sorted(ready, key=lambda each: levels[each]):
        order = f"  after {', '.join(waits_for[task_id])}" if waits_for[task_id] else ""
        lines.append(f"{levels[task_id]:>4}  {_label(tasks[task_id], '  ')}{order}")
    return "\n".join(lines) + "\n"


_DOT_BREAK = r"\n"


def _quoted(text: str) -> str:
    """A text inside the quotes of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _label(task: Task, line_break: str, escape: Callable[[str], str] = str) -> str:
    does = " ".join((task.tool or task.call or " ".join(task.argv or ())).split())
    return f"{task.id}{line_break}{escape(does)}{' for each item' if task.each is not None else ''}"


def _edges(definition: Workstream) -> Iterator[tuple[str, str]]:
    return ((before, after) for after, found in dependencies(definition).items() for before in found)


def _numbers(definition: Workstream) -> dict[str, int]:
    return {task.id: number for number, task in enumerate(definition.tasks)}
