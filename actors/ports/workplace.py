"""The workplace: where a worker's attempts are run, on the loop, in threads, as processes, or in a simulation.

An attempt ends in a `Report`, whatever the code in it does. What a workplace hears besides, signs of life and its own
death, it passes on through `Hearing`. What running code may ask of the engine is behind `Services`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from understudy.actors.definition import Gives, HttpRequest, Task, WorkerDefinition, Workstream
from understudy.actors.ports.workspaces import Place

OUTPUT_BYTES_MAX = 2**20  # of one result, as JSON: a result is kept in memory and in the database


def token_of(task_id: str, generation: int, attempt: int) -> str:
    """Stands for one attempt and no other."""
    return f"{task_id}/{generation}/{attempt}"


class Program(msgspec.Struct, frozen=True, gc=False):
    """A program that is to be run, with nothing left to be filled in."""

    argv: tuple[str, ...]  # with `shell`: the script, and what it finds in $1 and on
    shell: bool = False
    env: dict[str, str] = {}  # beside what the runtime itself has
    cwd: str | None = None  # below the place, or a path of its own where the place is open
    stdin: str | None = None
    expected_exit_codes: tuple[int, ...] = (0,)
    grace_s: float = 5.0  # between TERM and KILL
    gives: Gives = Gives.TEXT


class Order(msgspec.Struct, frozen=True, gc=False):
    """One attempt: what is to be done, by whom, and by when."""

    task_id: str
    workstream_id: str
    key: str  # the task's id within its workstream
    generation: int
    attempt: int
    worker_id: str
    inputs: dict[str, Any]  # bound, with secrets in them: an order is never stored or shown
    timeout_s: float
    deadline_at: int  # microseconds since 1970
    call: str | None = None  # module:function; exactly one of these three is given
    program: Program | None = None
    request: HttpRequest | None = None
    place: Place | None = None  # where relative paths lead to
    secrets: tuple[str, ...] = ()  # names of variables of the environment whose values are to be hidden
    previous_error: str | None = None  # how the attempt before ended
    cause: str | None = None  # why there is an attempt after the first
    correlation_id: str | None = None

    @property
    def token(self) -> str:
        """The fence, and the key under which a tool may recognise an attempt again."""
        return token_of(self.task_id, self.generation, self.attempt)


class Report(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How an attempt ended. It succeeded where there is no `error`."""

    output: Any = None  # as JSON would hold it
    output_bytes: int = 0
    exit_code: int | None = None
    error: str | None = None
    kinds: tuple[str, ...] = ()  # names of the exception's type and of its parents, with and without module
    text: str = ""  # where the patterns of error rules are searched for
    retry_after_s: float | None = None  # the tool's own wish
    permanent: bool = False  # the tool itself knows that another attempt is no use


class Hearing(Protocol):
    """What a workplace tells of itself. Called on the loop."""

    def beat(self) -> None:
        """A sign of life."""
        ...

    def died(self, why: str) -> None:
        """It has ended by itself, and with it all that ran there."""
        ...


class Workplace(Protocol):
    async def open(self, hearing: Hearing) -> None:
        """Be ready to run. Raises what keeps it from being so."""
        ...

    async def run(self, order: Order) -> Report:
        """Run one attempt. To cancel it ends the attempt, if the code in it lets it end."""
        ...

    async def close(self) -> None:
        """End in order. Nothing is running any more."""
        ...

    def kill(self) -> None:
        """End at once."""
        ...


class Workplaces(Protocol):
    """Makes the workplaces of workers."""

    def make(self, worker_id: str, definition: WorkerDefinition) -> Workplace: ...

    def kinds_for(self, call: str) -> frozenset[str]:
        """The kinds of workers that can run a function. Raises `LookupError` where there is no such function."""
        ...


class Services(Protocol):
    """What running code may ask of the engine."""

    def progress(self, order: Order, share: float | None, note: str | None) -> None: ...

    async def spawn(self, order: Order, definition: Workstream, number: int) -> str:
        """Submit a child workstream, the `number`th of this task. The same one is answered again. Answers its id."""
        ...

    async def result_of(self, workstream_id: str) -> dict[str, Any]:
        """Wait for a workstream's end. Its outputs by task; raises where it did not complete."""
        ...

    async def add(self, order: Order, tasks: Sequence[Task]) -> None:
        """Add tasks to the graph that the running one belongs to. Those that are there already are left as they are."""
        ...


class Audience(Services, Protocol):
    """The same, and an ear for programs."""

    def output(self, order: Order, line: str) -> None:
        """A line that a program wrote, without secrets. Heard by whoever watches; the log has it as well."""
        ...
