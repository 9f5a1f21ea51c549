"""What the actors of one engine share: the book, where to find each other, and what they were given from outside.

An actor changes nothing here but the entry that is its own.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from understudy.actors.definition import BreakerPolicy, Check, RetryPolicy, Tool
from understudy.actors.journal import Book
from understudy.actors.kernel import Actor, Ref
from understudy.actors.ports.checks import Checks
from understudy.actors.ports.store import Store
from understudy.actors.ports.workplace import Workplaces
from understudy.actors.ports.workspaces import Workspaces
from understudy.actors.records import WorkstreamRecord

GATHER = "understudy.adapters.tools.gathering:gather"  # what a map calls when its items have ended


class Limits(msgspec.Struct, frozen=True):
    """How much of anything there may be at once, and how long things may take."""

    active_tasks: int = 10_000  # of one workstream that are actors; the others wait as nodes of its graph
    chunk: int = 500  # tasks that a workstream deals with in one turn, so that others get theirs
    cancel_grace_s: float = 5.0  # for an attempt that was cancelled, before it is left to itself
    release_spread_s: float = 2.0  # over which tasks come back when a breaker closes
    sweep_s: float = 30.0  # between two looks for records that nothing will move
    respawn_s: float = 1.0  # before a worker that died is started again; doubles up to a minute


class Plan(msgspec.Struct, frozen=True):
    """How a task is to be run: its own wishes, its tool's, and the defaults, put together."""

    tool: Tool
    kinds: frozenset[str]  # of workers that can run it
    needs: frozenset[str]  # what a worker must offer
    retry: RetryPolicy
    timeout_s: float
    expected_exit_codes: tuple[int, ...]
    checks: tuple[Check, ...] = ()
    breaker: str | None = None
    breaker_policy: BreakerPolicy | None = None


class House:
    def __init__(
        self,
        *,
        book: Book,
        store: Store,
        workplaces: Workplaces,
        checks: Checks,
        workspaces: Workspaces,
        secret: Callable[[str], str | None],
        note: Callable[..., None],
        owner: str,
        limits: Limits,
        spawn: Callable[[Callable[[Any], Actor[Any]], Any, str], Ref[Any]],
    ) -> None:
        self.book = book
        self.store = store
        self.workplaces = workplaces
        self.checks = checks
        self.workspaces = workspaces
        self.secret = secret  # the value of a variable of the environment
        self.note = note  # something worth a line in the log, with its fields
        self.owner = owner
        self.limits = limits
        self.spawn = spawn  # an actor of nobody in particular: what builds it, from what, and its name
        self.scheduler: Ref[Any]
        self.supervisor: Ref[Any]
        self.reception: Ref[Any]
        self.workers: dict[str, Ref[Any]] = {}
        self.workstreams: dict[str, Ref[Any]] = {}
        self.children: dict[str, dict[str, None]] = {}  # of workstreams that are in memory, by their parents
        self.breakers: dict[str, Ref[Any]] = {}
        self.room = limits.active_tasks  # for tasks of one workstream that are actors: no more than could soon run
        self.open_breakers: dict[str, int | None] = {}  # until when, by their names
        self.ended: Callable[[WorkstreamRecord], None] = lambda record: None  # told after the commit
