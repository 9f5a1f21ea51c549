"""A crash in the middle of things, and what is left of it: run this file.

A child process runs a workstream with a task that fails once and a tool that is out of order for a while. Half way it
is killed with SIGKILL. Another one opens the same file, says what it recovered, and finishes.
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from understudy.actors.lifecycle import Entity
from understudy.actors.ports.store import AttemptQuery
from understudy.actors.records import Attempt, TaskRecord, Transition
from understudy.adapters.stores.sqlite import SqliteStore
from understudy.adapters.stores.sqlite.inspection import examine
from understudy.runtime import (
    BreakerPolicy,
    Limits,
    RetryPolicy,
    Runtime,
    Task,
    Tool,
    TransientError,
    WorkerDefinition,
    WorkerKind,
    Workstream,
    current_task,
)

HERE = "__main__"
PAGES = 6
REFUSALS = 3  # of the payment service, before it is back
KILLED_AFTER = 3  # pages
console = Console(highlight=False)


# What is to be done


async def moment(seconds: float) -> None:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)


async def fetch(page: int) -> str:
    await moment(0.7)
    return f"page {page}"


async def parse(pages: list[str]) -> int:
    if current_task().attempt == 1:
        raise ValueError("half a page")
    return len(pages)


def charge(ledger: str, order: str) -> str:
    """Of the tool `payments`, which is out of order until it has refused a few times."""
    path = Path(ledger)
    refused = len(path.read_text()) if path.exists() else 0
    if refused < REFUSALS:
        path.write_text("x" * (refused + 1))
        raise TransientError("payments: 503")
    return f"paid for {order}"


async def report(pages: int) -> str:
    return f"{pages} pages read, all orders paid"


def workstream(folder: Path) -> Workstream:
    soon = RetryPolicy(max_attempts=8, base_delay=0.3, max_delay=1.0)
    fetching = [Task(f"fetch-{n}", call=f"{HERE}:fetch", inputs={"page": n}) for n in range(1, PAGES + 1)]
    charging = [
        Task(f"charge-{order}", tool="payments", inputs={"ledger": str(folder / "ledger"), "order": order})
        for order in ("tea", "cups")
    ]
    pages = [f"${{{each.id}.output}}" for each in fetching]
    return Workstream(
        (
            *charging,
            *fetching,
            Task("parse", call=f"{HERE}:parse", inputs={"pages": pages}, retry=soon),
            Task(
                "report",
                call=f"{HERE}:report",
                inputs={"pages": "${parse.output}"},
                after=tuple(each.id for each in charging),
            ),
        ),
        tools={
            "payments": Tool(
                call=f"{HERE}:charge", retry=soon, breaker=BreakerPolicy(failure_threshold=2, cooldown=1.5)
            )
        },
    )


# The child: opens the file, takes up what it finds, and tells of it


async def work(folder: Path) -> None:
    known = examine(folder / "state.db").transitions if (folder / "state.db").exists() else 0
    workers = [WorkerDefinition("loop", max_concurrent_tasks=4), WorkerDefinition("threads", WorkerKind.THREAD)]
    async with Runtime(folder / "state.db", workers=workers, limits=Limits(release_spread_s=0.3)) as runtime:
        say(str(runtime.recovery))
        handle = await runtime.submit(workstream(folder), request_id="the demo")
        async for event in runtime.events(after=known):
            tell(event)
            if event.entity is Entity.WORKSTREAM and event.to_state == "completed":
                break
        say(f"result: {await handle.output('report')}")


def tell(event: Transition) -> None:
    what = event.record_id.partition("/")[2]
    match event.entity, event.to_state:
        case Entity.TASK, "running" if event.attempt and event.attempt > 1:
            say(f"{what}: attempt {event.attempt}, {event.reason}")
        case Entity.TASK, "completed":
            say(f"{what}: done")
        case Entity.TASK, "retrying" | "circuit_open":
            say(f"{what}: waits, {event.reason}")
        case Entity.BREAKER, state:
            say(f"breaker of {event.record_id}: {state} {f'({event.reason})' if event.reason else ''}".rstrip())
        case _:
            pass


def say(text: str) -> None:
    print(text, flush=True)


# The parent: starts it, kills it, looks, and starts it again


def live(folder: Path, colour: str, kill_after: int | None = None) -> None:
    """One life of the child. What it says is shown as it comes."""
    command = [sys.executable, "-W", "ignore", __file__, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:  # noqa: S603
        pages = 0
        for line in child.stdout or ():
            console.print(f"[{colour}]{child.pid}[/] {line.rstrip()}")
            pages += line.startswith("fetch") and "done" in line
            if pages == kill_after:
                child.send_signal(signal.SIGKILL)
                break
    console.print(f"[{colour}]{child.pid}[/] ended with {child.returncode}")


def show_what_is_kept(folder: Path) -> None:
    found = examine(folder / "state.db")
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.tasks.items()))
    console.print(f"{found.transitions} moves are kept. Of the tasks are: {states}")


async def show_attempts(folder: Path) -> bool:
    table = Table("task", "state", "attempts", box=box.SIMPLE_HEAD)
    async with SqliteStore(folder / "state.db") as store:
        tasks = [each for each in await store.page(Entity.TASK) if isinstance(each, TaskRecord)]
        for task in tasks:
            attempts = await store.attempts(AttemptQuery(task_id=task.id))
            table.add_row(task.key, task.state, "\n".join(_shown(each) for each in reversed(attempts)))
    console.print(table)
    return all(task.state == "completed" for task in tasks)


def _shown(attempt: Attempt) -> str:
    cause = f", because: {attempt.cause}" if attempt.cause else ""
    return f"{attempt.attempt} {attempt.outcome}{cause}"


def main(folder: Path) -> int:
    console.print(Rule("one life, until it is killed half way"))
    live(folder, "cyan", KILLED_AFTER)
    console.print(Rule("what is left is a file"))
    show_what_is_kept(folder)
    console.print(Rule("another life, on the same file"))
    live(folder, "green")
    console.print(Rule("every attempt, and why there was one"))
    return 0 if asyncio.run(show_attempts(folder)) else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(Path(sys.argv[1])))
        sys.exit()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)))
