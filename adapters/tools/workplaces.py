"""Which workplace a worker has, by its kind, and which kinds can run a function."""

from typing import assert_never

from understudy.actors.definition import WorkerDefinition, WorkerKind
from understudy.actors.ports.workplace import Services, Workplace
from understudy.adapters.tools.calls import find
from understudy.adapters.tools.in_process import CANCEL_GRACE_S, ProcessWorkplace
from understudy.adapters.tools.in_thread import ThreadWorkplace
from understudy.adapters.tools.on_loop import LoopWorkplace


class FunctionWorkplaces:
    """Makes workplaces for Python functions."""

    def __init__(self, services: Services, *, cancel_grace_s: float = CANCEL_GRACE_S) -> None:
        self._services = services
        self._cancel_grace_s = cancel_grace_s

    def make(self, worker_id: str, definition: WorkerDefinition) -> Workplace:
        match definition.kind:
            case WorkerKind.ASYNC:
                return LoopWorkplace(self._services)
            case WorkerKind.THREAD:
                return ThreadWorkplace(worker_id, definition.max_concurrent_tasks, self._services)
            case WorkerKind.PROCESS:
                return ProcessWorkplace(worker_id, definition, self._services, cancel_grace_s=self._cancel_grace_s)
            case _:
                assert_never(definition.kind)

    def kinds_for(self, call: str) -> frozenset[str]:
        return find(call).kinds
