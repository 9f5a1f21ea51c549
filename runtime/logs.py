"""Where a runtime's log goes when nobody says: to structlog as the program has configured it, else to `logging`.

A library that prints by itself would be in everybody's way: `logging` shows warnings on stderr, and no more.
"""

import logging
from typing import Any

import structlog

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
