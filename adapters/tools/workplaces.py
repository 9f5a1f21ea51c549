"""Which workplace a worker has, by its kind, and which kinds can run a function."""

from typing import assert_never

from understudy.actors.definition import WorkerDefinition, WorkerKind
from understudy.actors.ports.workplace import Audience, Workplace
from understudy.adapters.folders import Folders
from understudy.adapters.tools.calls import find
from understudy.adapters.tools.in_process import CANCEL_GRACE_S, ProcessWorkplace
from understudy.adapters.tools.in_thread import ThreadWorkplace
from understudy.adapters.tools.on_loop import LoopWorkplace
from understudy.adapters.tools.orphans import ProcessLedger
from understudy.adapters.tools.programs import ProgramWorkplace


class RealWorkplaces:
    """Makes workplaces for Python functions, for programs and for requests."""

    def __init__(self, audience: Audience, folders: Folders, *, cancel_grace_s: float = CANCEL_GRACE_S) -> None:
        self._audience = audience
        self._folders = folders
        self._ledger = ProcessLedger(folders.processes)
        self._cancel_grace_s = cancel_grace_s

    def make(self, worker_id: str, definition: WorkerDefinition) -> Workplace:
        match definition.kind:
            case WorkerKind.ASYNC:
                return LoopWorkplace(self._audience)
            case WorkerKind.THREAD:
                return ThreadWorkplace(worker_id, definition.max_concurrent_tasks, self._audience)
            case WorkerKind.PROCESS:
                return ProcessWorkplace(worker_id, definition, self._audience, cancel_grace_s=self._cancel_grace_s)
            case WorkerKind.PROGRAM:
                return ProgramWorkplace(self._audience, self._folders, self._ledger)
            case _:
                assert_never(definition.kind)

    def kinds_for(self, call: str) -> frozenset[str]:
        return find(call).kinds
