"""What a runtime logs, and where to when nobody says: to structlog as the program has configured it, else to `logging`.

A library that prints by itself would be in everybody's way: `logging` shows warnings on stderr, and no more.
"""

import logging
from typing import Any

import structlog

from understudy.actors.lifecycle import Severity
from understudy.actors.ports.store import Batch

LINES_MAX = 50  # for one commit: a thousand tasks that fail together need no thousand lines
_LEVELS = {Severity.WARNING: "warning", Severity.ERROR: "error", Severity.CRITICAL: "critical"}
_PROCESSORS: list[Any] = [
    structlog.stdlib.filter_by_level,
    structlog.processors.KeyValueRenderer(key_order=["event"], drop_missing=True),
]


def default_log(database: str) -> Any:
    if structlog.is_configured():
        return structlog.get_logger("understudy").bind(database=database)
    plain = logging.getLogger("understudy")
    wrapped = structlog.wrap_logger(plain, processors=_PROCESSORS, wrapper_class=structlog.stdlib.BoundLogger)
    return wrapped.bind(database=database)


def log_batch(log: Any, batch: Batch) -> None:
    """What is not as it should be, of what was committed."""
    notable = [move for move in batch.transitions if move.severity is not Severity.INFO]
    for move in notable[:LINES_MAX]:
        getattr(log, _LEVELS[move.severity])(
            f"{move.entity} {move.to_state}",
            record=move.record_id,
            workstream=move.workstream_id,
            trigger=move.trigger,
            attempt=move.attempt,
            reason=move.reason,
        )
    if len(notable) > LINES_MAX:
        log.warning("and more of these: look into the trail", more=len(notable) - LINES_MAX)
