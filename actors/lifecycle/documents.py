"""The five documents that describe this system, each in its own words: its moves, and how our states read there.

A document that does not know an entity has no vocabulary for it. The proof that our tables refine all of
these at once is a test: tests/unit/lifecycle/test_refinement.py.
"""

from typing import Final

from understudy.actors.lifecycle.machine import Entity, Word
from understudy.actors.lifecycle.vocabulary import ByPrevious, ByRun, Vocabulary


class Document(Word):
    """The documents, by the names under which `--as` knows them."""

    ORCHESTRATION = "orchestration"
    PIPELINE = "pipeline"
    LIFECYCLE = "lifecycle"
    SUPERVISOR = "supervisor"
    TASKER = "tasker"


Vocabularies = dict[Entity, Vocabulary]

_BY_HAND = "only tasker lets an operator resolve a task by hand; the others do not forbid it"
_CHECKED_AGAIN = (
    "a failed check is retried where the definition asks for it: lifecycle allows that, this document does not"
)
_CANCEL_ALWAYS = "tasker cancels from any live state, and a user expects a cancel to work at any time"
_UNBLOCKED = "tasker leaves a repaired task blocked for ever; whoever repairs a task expects its workstream to go on"

ORCHESTRATION: Final[Vocabularies] = {
    Entity.TASK: Vocabulary(
        {
            "pending": ("queued",),
            "queued": ("running",),
            "running": ("validating", "retrying", "failed", "cancelled"),
            "retrying": ("queued",),
            "validating": ("completed", "failed"),
        },
        {
            "pending": "pending",
            "queued": "queued",
            "running": "running",
            "errored": ByPrevious("running", {"validating": "validating"}),
            "timed_out": "running",
            "validating": "validating",
            "completed": "completed",
            "failed": "failed",
            "retrying": "retrying",
            "circuit_open": "retrying",
            "half_open": "retrying",
            "skipped": "cancelled",
            "cancelled": "cancelled",
            "resolved": "completed",
        },
        reconciled={
            ("pending", "resolved"): _BY_HAND,
            ("retrying", "resolved"): _BY_HAND,
            ("circuit_open", "resolved"): _BY_HAND,
            ("half_open", "resolved"): _BY_HAND,
            ("errored", "retrying"): _CHECKED_AGAIN,
            ("errored", "circuit_open"): _CHECKED_AGAIN,
            ("errored", "cancelled"): _CHECKED_AGAIN,
            ("validating", "cancelled"): _CANCEL_ALWAYS,
        },
    ),
    Entity.WORKSTREAM: Vocabulary(
        {
            "planned": ("ready", "cancelled"),
            "ready": ("executing", "cancelled"),
            "executing": ("validating", "failed", "cancelled"),
            "validating": ("completed", "failed"),
        },
        {
            "planned": "planned",
            "ready": "ready",
            "executing": "executing",
            "waiting_for_dependencies": "executing",
            "waiting_for_retry": "executing",
            "retrying": "executing",
            "blocked": "executing",
            "validating": "validating",
            "completed": "completed",
            "failed": "failed",
            "cancelled": "cancelled",
            "resolved": "completed",
        },
        reconciled={
            ("validating", "cancelled"): _CANCEL_ALWAYS,
        },
    ),
    Entity.WORKER: Vocabulary(
        {
            "initializing": ("idle",),
            "idle": ("busy", "shutdown"),
            "busy": ("idle", "unresponsive", "shutdown"),
            "unresponsive": ("idle", "shutdown"),
        },
        {
            "initializing": "initializing",
            "idle": "idle",
            "busy": "busy",
            "paused": "busy",
            "unresponsive": "unresponsive",
            "shutdown": "shutdown",
            "failed": "shutdown",
            "terminated": "shutdown",
        },
    ),
}

PIPELINE: Final[Vocabularies] = {
    Entity.WORKSTREAM: Vocabulary(
        {
            "S_PENDING": ("S_RUNNING",),
            "S_RUNNING": ("S_SUCCESS", "S_FAILED", "S_ABANDONED"),
            "S_FAILED": ("S_RETRYING", "S_ABANDONED"),
            "S_RETRYING": ("S_RUNNING",),
        },
        {
            "planned": "S_PENDING",
            "ready": "S_PENDING",
            "executing": "S_RUNNING",
            "waiting_for_dependencies": "S_RUNNING",
            "waiting_for_retry": "S_RUNNING",
            "retrying": "S_RETRYING",
            "blocked": "S_FAILED",
            "validating": "S_RUNNING",
            "completed": "S_SUCCESS",
            "failed": "S_ABANDONED",
            "cancelled": "S_ABANDONED",
            "resolved": "S_ABANDONED",
        },
    ),
    Entity.TASK: Vocabulary(
        {
            "S_PENDING": ("S_RUNNING",),
            "S_RUNNING": ("S_SUCCESS", "S_FAILED"),
            "S_FAILED": ("S_RETRYING",),
            "S_RETRYING": ("S_RUNNING",),
        },
        {
            "pending": "S_PENDING",
            "queued": ByPrevious("S_PENDING", {"retrying": "S_RETRYING", "half_open": "S_RETRYING"}),
            "running": "S_RUNNING",
            "errored": "S_FAILED",
            "timed_out": "S_FAILED",
            "validating": "S_RUNNING",
            "completed": "S_SUCCESS",
            "failed": "S_FAILED",
            "retrying": "S_RETRYING",
            "circuit_open": "S_RETRYING",
            "half_open": "S_RETRYING",
            "skipped": "S_FAILED",
            "cancelled": "S_FAILED",
            "resolved": "S_SUCCESS",
        },
    ),
    Entity.BREAKER: Vocabulary(
        {
            "CLOSED": ("OPEN",),
            "OPEN": ("HALF_OPEN", "CLOSED"),
            "HALF_OPEN": ("CLOSED", "OPEN"),
        },
        {
            "closed": "CLOSED",
            "open": "OPEN",
            "half_open": "HALF_OPEN",
        },
    ),
}

LIFECYCLE: Final[Vocabularies] = {
    Entity.TASK: Vocabulary(
        {
            "PENDING": ("IN_PROGRESS", "SKIPPED", "CANCELLED"),
            "IN_PROGRESS": ("VALIDATING", "FAILED", "TIMEOUT", "CANCELLED"),
            "VALIDATING": ("COMPLETED", "FAILED"),
            "FAILED": ("CIRCUIT_OPEN", "RETRYING"),
            "RETRYING": ("IN_PROGRESS", "CIRCUIT_OPEN"),
            "CIRCUIT_OPEN": ("HALF_OPEN", "PENDING", "CANCELLED"),
            "HALF_OPEN": ("IN_PROGRESS", "CIRCUIT_OPEN"),
            "TIMEOUT": ("RETRYING", "FAILED"),
        },
        {
            "pending": "PENDING",
            "queued": ByPrevious("PENDING", {"retrying": "RETRYING", "half_open": "HALF_OPEN"}),
            "running": "IN_PROGRESS",
            "errored": "FAILED",
            "timed_out": "TIMEOUT",
            "validating": "VALIDATING",
            "completed": "COMPLETED",
            "failed": "CIRCUIT_OPEN",
            "retrying": "RETRYING",
            "circuit_open": "CIRCUIT_OPEN",
            "half_open": "HALF_OPEN",
            "skipped": "SKIPPED",
            "cancelled": "CANCELLED",
            "resolved": "COMPLETED",
        },
        reconciled={
            ("errored", "resolved"): _BY_HAND,
            ("timed_out", "resolved"): _BY_HAND,
            ("circuit_open", "resolved"): _BY_HAND,
        },
    ),
}

SUPERVISOR: Final[Vocabularies] = {
    Entity.WORKER: Vocabulary(
        {
            "IDLE": ("RUNNING", "TERMINATED"),
            "RUNNING": ("PAUSED", "COMPLETED", "FAILED", "TERMINATED"),
            "PAUSED": ("RUNNING", "TERMINATED"),
        },
        {
            "initializing": "IDLE",
            "idle": ByRun(fresh="IDLE", has_run="RUNNING"),
            "busy": "RUNNING",
            "paused": "PAUSED",
            "unresponsive": "RUNNING",
            "shutdown": "COMPLETED",
            "failed": "FAILED",
            "terminated": "TERMINATED",
        },
    ),
    Entity.WORKSTREAM: Vocabulary(
        {
            "SUBMITTED": ("PENDING", "CANCELED"),
            "PENDING": ("RUNNING", "CANCELED"),
            "RUNNING": ("COMPLETED", "FAILED", "CANCELED"),
        },
        {
            "planned": "SUBMITTED",
            "ready": "PENDING",
            "executing": "RUNNING",
            "waiting_for_dependencies": "RUNNING",
            "waiting_for_retry": "RUNNING",
            "retrying": "RUNNING",
            "blocked": "RUNNING",
            "validating": "RUNNING",
            "completed": "COMPLETED",
            "failed": "FAILED",
            "cancelled": "CANCELED",
            "resolved": "COMPLETED",
        },
    ),
}

TASKER: Final[Vocabularies] = {
    Entity.WORKSTREAM: Vocabulary(
        {
            "Pending": ("Initializing", "Cancelled"),
            "Initializing": ("EnqueuingSteps", "Complete", "WaitingForDependencies", "Cancelled"),
            "EnqueuingSteps": ("StepsInProcess", "Error", "Cancelled"),
            "StepsInProcess": ("EvaluatingResults", "WaitingForRetry", "Cancelled"),
            "EvaluatingResults": (
                "Complete",
                "EnqueuingSteps",
                "WaitingForDependencies",
                "BlockedByFailures",
                "Cancelled",
            ),
            "WaitingForDependencies": ("EvaluatingResults", "Cancelled"),
            "WaitingForRetry": ("EnqueuingSteps", "Cancelled"),
            "BlockedByFailures": ("Error", "ResolvedManually", "Cancelled"),
            "Error": ("Pending",),
        },
        {
            "planned": "Pending",
            "ready": "Initializing",
            "executing": "StepsInProcess",
            "waiting_for_dependencies": "WaitingForDependencies",
            "waiting_for_retry": "WaitingForRetry",
            "retrying": "WaitingForRetry",
            "blocked": "BlockedByFailures",
            "validating": "EvaluatingResults",
            "completed": "Complete",
            "failed": "Error",
            "cancelled": "Cancelled",
            "resolved": "ResolvedManually",
        },
        reconciled={
            ("blocked", "executing"): _UNBLOCKED,
        },
        passed_through=frozenset({"EnqueuingSteps"}),
    ),
    Entity.TASK: Vocabulary(
        {
            "Pending": ("Enqueued", "InProgress", "Error", "Cancelled", "ResolvedManually"),
            "Enqueued": ("InProgress", "Error", "Cancelled", "ResolvedManually"),
            "InProgress": (
                "EnqueuedForOrchestration",
                "EnqueuedAsErrorForOrchestration",
                "Complete",
                "Error",
                "Cancelled",
                "ResolvedManually",
            ),
            "EnqueuedForOrchestration": ("Complete", "Error", "Cancelled", "ResolvedManually"),
            "EnqueuedAsErrorForOrchestration": ("WaitingForRetry", "Error", "Cancelled", "ResolvedManually"),
            "WaitingForRetry": ("Pending", "Cancelled", "ResolvedManually"),
            "Error": ("Cancelled", "ResolvedManually", "Pending"),
        },
        {
            "pending": "Pending",
            "queued": "Enqueued",
            "running": "InProgress",
            "errored": "EnqueuedAsErrorForOrchestration",
            "timed_out": "EnqueuedAsErrorForOrchestration",
            "validating": "EnqueuedForOrchestration",
            "completed": "Complete",
            "failed": "Error",
            "retrying": "WaitingForRetry",
            "circuit_open": "WaitingForRetry",
            "half_open": "WaitingForRetry",
            "skipped": "Cancelled",
            "cancelled": "Cancelled",
            "resolved": "ResolvedManually",
        },
        reconciled={
            ("validating", "errored"): _CHECKED_AGAIN,
        },
    ),
}

DOCUMENTS: Final[dict[Document, Vocabularies]] = {
    Document.ORCHESTRATION: ORCHESTRATION,
    Document.PIPELINE: PIPELINE,
    Document.LIFECYCLE: LIFECYCLE,
    Document.SUPERVISOR: SUPERVISOR,
    Document.TASKER: TASKER,
}
