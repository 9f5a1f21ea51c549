"""Whether a definition makes sense as a whole: what it refers to exists, and its graph can be run.

Every problem is collected. Nothing here recurses: a chain of 100,000 tasks is checked like any other graph.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from understudy.actors.definition.bindings import Reference, has_holes, is_reference, placeholders, references
from understudy.actors.definition.cycles import find_cycles
from understudy.actors.definition.limits import RESERVED_IDS, TASKS_MAX
from understudy.actors.definition.policies import Check, ErrorRules, RetryPolicy
from understudy.actors.definition.problems import Problem, did_you_mean
from understudy.actors.definition.workstream import Task, Tool, Workspace, WorkspaceKind, Workstream

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
OUTSIDE = ("params", "secrets", "directory")  # what is known without any task
SUGGESTIONS_MAX = 50  # likenesses that are looked for in one definition: each compares with every known word


def find_problems(definition: Workstream) -> list[Problem]:
    """Every problem of a definition, in the order of its parts."""
    if len(definition.tasks) > TASKS_MAX:
        return [Problem("$.tasks", f"{len(definition.tasks)} tasks are too many: at most {TASKS_MAX}")]
    scope = _Scope(definition)
    problems = [problem for name, tool in definition.tools.items() for problem in _of_tool(f"$.tools.{name}", tool)]
    for index, task in enumerate(definition.tasks):
        if not scope.is_plainly_sound(task):
            problems += scope.of_task(f"$.tasks[{index}]", task)
    problems += scope.of_tools()
    problems += _of_workers(definition)
    problems += _of_checks("$.checks", definition.checks)
    problems += scope.of_final_checks(definition.checks)
    problems += scope.of_workspace(definition.workspace)
    problems += _of_retry("$.retry", definition.retry)
    problems += _of_cycles(definition)
    return problems


def dependencies(definition: Workstream) -> dict[str, list[str]]:
    """What each task waits for, by id: what `after` names, and the tasks whose outputs it takes."""
    known = {task.id for task in definition.tasks}
    found: dict[str, list[str]] = {}
    for task in definition.tasks:
        waits_for = dict.fromkeys((*task.after, *outputs_taken(task)))
        found.setdefault(task.id, []).extend(each for each in waits_for if each in known)
    return found


def _has_order(task: Task) -> bool:
    return bool(task.after) or next(_references(task), None) is not None


def outputs_taken(task: Task) -> tuple[str, ...]:
    """The tasks whose outputs a task takes, each once."""
    found: dict[str, None] = {}
    for _, reference in _references(task):
        if reference.parts and reference.parts[0] not in RESERVED_IDS:
            found[reference.parts[0]] = None
    return tuple(found)


class _Scope:
    """What a task of one definition can refer to."""

    def __init__(self, definition: Workstream) -> None:
        self.tools = definition.tools
        self.params = definition.params
        self.secrets = set(definition.secrets)
        self.ids: dict[str, None] = dict.fromkeys(task.id for task in definition.tasks)
        self.offered = {each for worker in definition.workers for each in worker.capabilities}
        self.has_workers = bool(definition.workers)
        self.seen: set[str] = set()
        self.functions: set[str] = set()  # names that have been looked at, and are well formed
        self.suggestions_left = SUGGESTIONS_MAX

    def suggest(self, word: str, known: Iterable[str]) -> str | None:
        self.suggestions_left -= 1
        return did_you_mean(word, known) if self.suggestions_left >= 0 else None

    def is_plainly_sound(self, task: Task) -> bool:
        """Whether a task is of the most common kind, in which nothing can be wrong: most of a large graph is."""
        sound = (
            task.call in self.functions
            and task.id not in self.seen
            and (task.tool, task.argv, task.each, task.retry) == _NOTHING
            and task.condition is True
            and not (task.after or task.checks or task.capabilities or task.id in RESERVED_IDS)
            and all(value.__class__ in _PLAIN for value in task.inputs.values())
        )
        if sound:
            self.seen.add(task.id)
        return sound

    def of_task(self, path: str, task: Task) -> Iterator[Problem]:
        if task.id in self.seen:
            yield Problem(f"{path}.id", f"there is another task {task.id!r}", "give each task an id of its own")
        self.seen.add(task.id)
        if task.id in RESERVED_IDS:
            yield Problem(f"{path}.id", f"{task.id!r} has a meaning of its own in ${{...}}", "choose another id")
        yield from _of_kinds(path, "a task has exactly one of tool, call and argv", task.kinds)
        if task.call is not None:
            faults = list(_of_function(f"{path}.call", task.call))
            yield from faults
            if not faults:
                self.functions.add(task.call)
        if task.tool is not None and task.tool not in self.tools:
            suggestion = self.suggest(task.tool, self.tools)
            yield Problem(f"{path}.tool", f"there is no tool {task.tool!r}", suggestion)
        if task.each is not None and not isinstance(task.each, list | tuple) and not is_reference(task.each):
            yield Problem(f"{path}.each", "it is neither a list nor a ${...} that gives one")
        yield from self._of_order(path, task)
        yield from self._of_references(path, task)
        yield from self._of_placeholders(path, task)
        yield from self._of_capabilities(path, task)
        if task.checks:
            yield from _of_checks(f"{path}.checks", task.checks)
        if task.retry is not None:
            yield from _of_retry(f"{path}.retry", task.retry)

    def of_tools(self) -> Iterator[Problem]:
        """Texts of tools may refer to params and secrets, but know nothing of tasks."""
        for name, tool in self.tools.items():
            yield from self._of_texts(f"$.tools.{name}", _texts_of(tool), "a tool knows params, secrets and directory")

    def of_final_checks(self, checks: tuple[Check, ...]) -> Iterator[Problem]:
        for index, check in enumerate(checks):
            texts = _texts_of_check(check)
            yield from self._of_texts(
                f"$.checks[{index}]", texts, "checks of the whole know params, secrets and directory"
            )

    def of_workspace(self, workspace: Workspace) -> Iterator[Problem]:
        texts = (workspace.path or "", workspace.branch or "")
        yield from self._of_texts("$.workspace", texts, "a workspace knows params, secrets and directory")

    def _of_texts(self, path: str, texts: tuple[str, ...], rule: str) -> Iterator[Problem]:
        for _, reference in references(texts):
            known = reference.parts is not None and reference.parts[0] in OUTSIDE
            fault = self._fault_of(reference, has_item=False) if known else (rule, None)
            if fault is not None:
                yield Problem(path, f"${{{reference.text}}} is not bound: {fault[0]}", fault[1])

    def _of_order(self, path: str, task: Task) -> Iterator[Problem]:
        for index, before in enumerate(task.after):
            if before not in self.ids:
                suggestion = self.suggest(before, self.ids)
                yield Problem(f"{path}.after[{index}]", f"there is no task {before!r}", suggestion)

    def _of_references(self, path: str, task: Task) -> Iterator[Problem]:
        for where, reference in _references(task):
            fault = self._fault_of(reference, has_item=task.each is not None and not where.startswith(".each"))
            if fault is not None:
                yield Problem(f"{path}{where}", f"${{{reference.text}}} is not bound: {fault[0]}", fault[1])

    def _fault_of(self, reference: Reference, has_item: bool) -> tuple[str, str | None] | None:
        match reference.parts:
            case None:
                return "it cannot be read", "write ${params.name}, ${task.output.field} or ${item}"
            case ("params", name, *_):
                return None if name in self.params else (f"there is no param {name!r}", self.suggest(name, self.params))
            case ("secrets", name):
                known = self.secrets
                return None if name in known else (f"{name!r} is not in secrets", self.suggest(name, known))
            case ("directory",):
                return None
            case ("item", *_):
                return None if has_item else ("there is an item only where `each` is given", None)
            case (task, "output", *_):
                return None if task in self.ids else (f"there is no task {task!r}", self.suggest(task, self.ids))
            case (name, *_):
                what = f"{name!r} is neither params, secrets, directory, item nor the output of a task"
                return what, f"write ${{{name}.output}}" if name in self.ids else self.suggest(name, RESERVED_IDS)
            case _:
                return "it is empty", None

    def _of_placeholders(self, path: str, task: Task) -> Iterator[Problem]:
        tool = self.tools.get(task.tool or "")
        texts = _texts_of(tool) if tool is not None else task.argv or ()
        for name in placeholders(texts):
            if name not in task.inputs:
                suggestion = self.suggest(name, task.inputs) or f"add {name} under `with`"
                yield Problem(f"{path}.with", f"{{{name}}} is not bound: the input is missing", suggestion)

    def _of_capabilities(self, path: str, task: Task) -> Iterator[Problem]:
        if not self.has_workers:
            return
        tool = self.tools.get(task.tool or "")
        for capability in (*task.capabilities, *(tool.capabilities if tool else ())):
            if capability not in self.offered:
                suggestion = self.suggest(capability, self.offered)
                yield Problem(f"{path}.capabilities", f"no worker offers {capability!r}", suggestion)


def _references(task: Task) -> Iterator[tuple[str, Reference]]:
    if task.inputs and not all(value.__class__ in _PLAIN for value in task.inputs.values()):
        yield from references(task.inputs, ".with")
    if task.condition is not True:
        yield from references(task.condition, ".if")
    if task.each is not None:
        yield from references(task.each, ".each")
    if task.argv is not None:
        yield from references(task.argv, ".argv")
    for index, check in enumerate(task.checks):
        yield from references(_texts_of_check(check), f".checks[{index}]")


_NOTHING = (None, None, None, None)
_PLAIN = frozenset({int, float, bool, type(None)})  # refer to nothing


def _texts_of(tool: Tool) -> tuple[str, ...]:
    """The texts of a tool in which `{name}` stands for an input."""
    http = tool.http
    request = (http.url, *http.headers.values(), http.body or "", *_texts_in(http.json)) if http else ()
    return (*(tool.argv or ()), *tool.env.values(), tool.cwd or "", tool.stdin or "", *request)


def _texts_in(value: Any) -> list[str]:
    """Every text in a value, however deep. Does not recurse."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, dict):
            waiting += cast("dict[str, Any]", each).values()
        elif isinstance(each, list | tuple):
            waiting += cast("list[Any]", each)
    return found


def _texts_of_check(check: Check) -> tuple[str, ...]:
    """The texts of a check in which `${...}` is bound."""
    return (check.file_exists or "", check.python_import or "", check.js_import or "", *(check.command or ()))


def _of_workers(definition: Workstream) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, worker in enumerate(definition.workers):
        if worker.id in seen:
            yield Problem(f"$.workers[{index}].id", f"there is another worker {worker.id!r}")
        seen.add(worker.id)
    if definition.workspace.kind is WorkspaceKind.WORKTREE and definition.workspace.path is None:
        yield Problem("$.workspace", "a worktree needs the path of its repository", "add path")


def _of_tool(path: str, tool: Tool) -> Iterator[Problem]:
    yield from _of_kinds(path, "a tool has exactly one of argv, call and http", tool.kinds)
    if tool.call is not None:
        yield from _of_function(f"{path}.call", tool.call)
    if tool.shell and tool.argv and has_holes(tool.argv[0]):
        remedy = 'write "$1" in the script, and the value behind it in argv'
        yield Problem(
            f"{path}.argv[0]", "a shell script takes no values in its text: they could become commands", remedy
        )
    if tool.http is not None and tool.http.json is not None and tool.http.body is not None:
        yield Problem(f"{path}.http", "a request has json or body, not both")
    yield from _of_retry(f"{path}.retry", tool.retry)


def _of_kinds(path: str, rule: str, kinds: tuple[str, ...]) -> Iterator[Problem]:
    if len(kinds) != 1:
        yield Problem(path, f"{rule}; this one has {' and '.join(kinds) or 'none'}")


def _of_function(path: str, name: str) -> Iterator[Problem]:
    if not _FUNCTION.fullmatch(name):
        yield Problem(path, f"{name!r} is not the name of a function", "write package.module:function")


def _of_checks(path: str, checks: Iterable[Check]) -> Iterator[Problem]:
    for index, check in enumerate(checks):
        yield from _of_kinds(f"{path}[{index}]", "a check has exactly one kind", check.kinds)
        if check.call is not None:
            yield from _of_function(f"{path}[{index}].call", check.call)
        if check.output_matches is not None:
            yield from _of_pattern(f"{path}[{index}].output_matches", check.output_matches)


def _of_retry(path: str, retry: RetryPolicy) -> Iterator[Problem]:
    if retry.base_delay > retry.max_delay:
        yield Problem(f"{path}.base_delay", f"{retry.base_delay} s is more than max_delay, {retry.max_delay} s")
    for name, rules in (("transient", retry.transient), ("permanent", retry.permanent)):
        if rules != ErrorRules():
            for index, pattern in enumerate(rules.patterns):
                yield from _of_pattern(f"{path}.{name}.patterns[{index}]", pattern)


def _of_pattern(path: str, pattern: str) -> Iterator[Problem]:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        yield Problem(path, f"{pattern!r} is not a regular expression: {error}")


def _of_cycles(definition: Workstream) -> Iterator[Problem]:
    if not any(_has_order(task) for task in definition.tasks):
        return
    cycles = find_cycles(dependencies(definition))
    if cycles:
        places = {task.id: index for index, task in enumerate(definition.tasks)}
        for cycle in cycles:
            yield Problem(f"$.tasks[{places[cycle[0]]}].after", f"tasks wait for each other: {' -> '.join(cycle)}")
