"""Databases for the tests of commands, made by short runs of a real runtime, and one that is killed in the middle."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from tests.integration.engine.functions import keep_quiet
from tests.meta.house import ROOT
from understudy.adapters.folders import Folders
from understudy.runtime import BreakerPolicy, Check, OnFailure, RetryPolicy, Runtime, Task, Tool, Workstream

HERE = "tests.integration.cli.databases"
FUNCTIONS = "tests.integration.engine.functions"
AT_ONCE = RetryPolicy(max_attempts=2, base_delay=0, jitter=0)


def call(key: str, function: str, **fields: object) -> Task:
    inputs = fields.pop("inputs", {})
    return Task(key, call=f"{FUNCTIONS}:{function}", inputs=inputs, **fields)  # type: ignore[arg-type]


def accept(output: object) -> bool:
    """A check: whether it is a number."""
    return isinstance(output, int)


def blocked_workstream() -> Workstream:
    return Workstream(
        (
            call("build", "add", inputs={"a": 1}, checks=(Check(call=f"{HERE}:accept", name="a number"),)),
            call("fix", "fail_until", inputs={"name": "fix", "attempt": 9}, after=("build",), retry=AT_ONCE),
            call("publish", "add", inputs={"a": "${fix.output}"}),
        ),
        id="release",
        name="the release",
        on_failure=OnFailure.BLOCK,
    )


def failed_workstream() -> Workstream:
    task = call("fix", "fail", inputs={"why": "no disk"}, retry=AT_ONCE)
    return Workstream((call("build", "add", inputs={"a": 1}), task), id="failed")


def guarded_workstream() -> Workstream:
    policy = BreakerPolicy(failure_threshold=1, cooldown=3_600)
    tool = Tool(call=f"{FUNCTIONS}:fail_until", breaker=policy, retry=RetryPolicy(base_delay=0, jitter=0))
    return Workstream(
        (Task("ask", tool="api", inputs={"name": "ask", "attempt": 2}),), id="guarded", tools={"api": tool}
    )


async def run_until(path: Path, definition: Workstream, state: str) -> None:
    """Run a workstream until it, or one of its tasks, is in a state."""
    async with Runtime(path) as runtime:
        handle = await runtime.submit(definition, who="ada")
        async for move in runtime.events(workstream_id=handle.id):
            if move.to_state == state:
                return


def make(path: Path, definition: Workstream, state: str) -> Path:
    keep_quiet()
    anyio.run(run_until, path, definition, state)
    return path


def write_log(path: Path, workstream_id: str, key: str, attempt: int, *lines: str) -> Path:
    log = Folders(path).log(workstream_id, key, 1, attempt)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(f"{line}\n" for line in lines))
    return log


@contextmanager
def running(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process with a workstream whose only task waits for ever. It is killed in the end, if it still lives."""
    command = [sys.executable, "-m", "tests.integration.cli.databases", str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


async def wait_for_ever(path: Path) -> None:
    definition = Workstream((call("hang", "wait_at", inputs={"gate": "never"}),), id="stuck")
    async with Runtime(path) as runtime:
        await runtime.submit(definition)
        async for move in runtime.events(workstream_id="stuck"):
            if move.to_state == "running":
                sys.stdout.write("running\n")
                sys.stdout.flush()


if __name__ == "__main__":
    keep_quiet()
    anyio.run(wait_for_ever, Path(sys.argv[1]))
