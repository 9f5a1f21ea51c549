"""`understudy show`: all that is known of a workstream or a task. Secrets are not: records hold only their names."""

from typing import Any

import msgspec
import typer

from understudy.actors.lifecycle import Document, Entity
from understudy.actors.records import Attempt, CheckResult, TaskRecord, WorkstreamRecord
from understudy.runtime.cli.options import DEFAULT_DATABASE, AsDocument, AsJson, Database, Target
from understudy.runtime.cli.output import print_json, print_table
from understudy.runtime.cli.wording import cut, in_words, instant, say_state, took


class ShownWorkstream(msgspec.Struct, frozen=True):
    workstream: WorkstreamRecord
    tasks: list[TaskRecord]
    checks: list[CheckResult]


class ShownTask(msgspec.Struct, frozen=True):
    task: TaskRecord
    attempts: list[Attempt]  # the newest first
    checks: list[CheckResult]


def show(
    target: Target, database: Database = DEFAULT_DATABASE, document: AsDocument = None, as_json: AsJson = False
) -> None:
    """Show a workstream with its tasks, or a task with its attempts and checks."""
    from understudy.actors.ports.store import AttemptQuery
    from understudy.adapters.clock import wall_us
    from understudy.runtime.cli.looking import look
    from understudy.runtime.reading import Reading

    async def find(reading: Reading) -> ShownWorkstream | ShownTask:
        if "/" in target:
            attempts = await reading.attempts(AttemptQuery(task_id=target))
            return ShownTask(await reading.task(target), attempts, await reading.checks(target))
        tasks = [each async for each in reading.all_tasks(target)]
        return ShownWorkstream(await reading.workstream(target), tasks, await reading.checks(target))

    shown = look(database, find)
    if as_json:
        print_json(_said(shown, document))
    elif isinstance(shown, ShownTask):
        _print_task(shown, document, wall_us())
    else:
        _print_workstream(shown, document, wall_us())


def _said(shown: ShownWorkstream | ShownTask, document: Document | None) -> Any:
    """For programs."""
    said = msgspec.to_builtins(shown)
    match shown:
        case ShownTask(task):
            [said["task"]] = in_words(Entity.TASK, [task], document)
        case ShownWorkstream(workstream, tasks):
            [said["workstream"]] = in_words(Entity.WORKSTREAM, [workstream], document)
            said["tasks"] = in_words(Entity.TASK, tasks, document)
    return said


def _print_workstream(shown: ShownWorkstream, document: Document | None, now: int) -> None:
    record = shown.workstream
    _print_facts(
        f"{record.id}: {say_state(Entity.WORKSTREAM, record, document)}",
        {
            "name": record.name,
            "generation": record.generation,
            "created": instant(record.created_at),
            "started": instant(record.started_at),
            "ended": instant(record.completed_at),
            "took": took(record.started_at, record.completed_at, now),
            "last error": record.last_error,
            "workspace": record.workspace,
            "merge": _pretty(record.merge),
        },
    )
    rows = [
        [each.key, say_state(Entity.TASK, each, document), each.attempts,
         took(each.started_at, each.completed_at, now), cut(each.last_error)]
        for each in shown.tasks
    ]  # fmt: skip
    print_table("tasks", ["task", "state", "attempts", "took", "last error"], rows)
    _print_checks(shown.checks)


def _print_task(shown: ShownTask, document: Document | None, now: int) -> None:
    record = shown.task
    _print_facts(
        f"{record.id}: {say_state(Entity.TASK, record, document)}",
        {
            "generation": record.generation,
            "after": ", ".join(record.depends_on) or None,
            "worker": record.worker_id,
            "started": instant(record.started_at),
            "ended": instant(record.completed_at),
            "took": took(record.started_at, record.completed_at, now),
            "retries": f"{record.retry_count} of {record.max_retries}",
            "last error": record.last_error,
            "definition": _pretty(record.definition),
            "item": _pretty(record.item),
            "output": _pretty(record.output),
        },
    )
    rows = [
        [each.generation, each.attempt, each.outcome, each.worker_id, instant(each.started_at),
         took(each.started_at, each.ended_at, now), each.exit_code, cut(each.error)]
        for each in shown.attempts
    ]  # fmt: skip
    headings = ["generation", "attempt", "outcome", "worker", "started", "took", "exit code", "error"]
    print_table("attempts, the newest first", headings, rows)
    _print_checks(shown.checks)


def _print_checks(checks: list[CheckResult]) -> None:
    if checks:
        rows = [
            [each.generation, each.attempt, each.name, "passed" if each.passed else "failed", cut(each.detail, 100)]
            for each in checks
        ]
        print_table("checks", ["generation", "attempt", "check", "result", "detail"], rows)


def _print_facts(title: str, facts: dict[str, object]) -> None:
    typer.secho(title, bold=True)
    for name, value in facts.items():
        if value is not None:
            first, *rest = str(value).split("\n")
            typer.echo(f"  {name:<11} {first}")
            for line in rest:
                typer.echo(f"  {'':<11} {line}")


def _pretty(value: Any) -> str | None:
    return None if value is None else msgspec.json.format(msgspec.json.encode(value)).decode()
