"""What a task, a workstream, a worker and a breaker may do: one literal table each, and all that derives from it."""

from typing import Final

from understudy.actors.lifecycle.breaker import BREAKER, BreakerState, BreakerTrigger
from understudy.actors.lifecycle.documents import DOCUMENTS, Document
from understudy.actors.lifecycle.machine import START, Entity, InvalidTransition, Machine, Move, Severity, Trait
from understudy.actors.lifecycle.task import TASK, TaskState, TaskTrigger, breaks_workstream, satisfies_dependents
from understudy.actors.lifecycle.worker import WORKER, WorkerState, WorkerTrigger
from understudy.actors.lifecycle.workstream import WORKSTREAM, WorkstreamState, WorkstreamTrigger

MACHINES: Final[dict[Entity, Machine]] = {machine.entity: machine for machine in (TASK, WORKSTREAM, WORKER, BREAKER)}

__all__ = [
    "BREAKER",
    "DOCUMENTS",
    "MACHINES",
    "START",
    "TASK",
    "WORKER",
    "WORKSTREAM",
    "BreakerState",
    "BreakerTrigger",
    "Document",
    "Entity",
    "InvalidTransition",
    "Machine",
    "Move",
    "Severity",
    "TaskState",
    "TaskTrigger",
    "Trait",
    "WorkerState",
    "WorkerTrigger",
    "WorkstreamState",
    "WorkstreamTrigger",
    "breaks_workstream",
    "satisfies_dependents",
]
