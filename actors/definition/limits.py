"""The limits that definitions keep, and the shapes of their words. A limit stands here with its reason."""

from typing import Annotated, Final

from msgspec import Meta

ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}$(?!\n)"  # safe in a file name, a URL and a shell
TASK_ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_\-]{0,127}$(?!\n)"  # a dot leads into an output
RESERVED_IDS: Final = frozenset({"params", "item", "secrets", "output", "directory"})  # with a meaning in ${...}
TASKS_MAX: Final = 1_000_000
DEPTH_MAX: Final = 5  # of workstreams within workstreams

Id = Annotated[str, Meta(pattern=ID_PATTERN, description="Letters, digits, dot, dash and underscore; at most 128.")]
TaskId = Annotated[
    str, Meta(pattern=TASK_ID_PATTERN, description="Letters, digits, dash and underscore, no dots; at most 128.")
]
Argv = Annotated[tuple[str, ...], Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]  # up to a year
Delay = Annotated[float, Meta(ge=0, le=86_400)]
Share = Annotated[float, Meta(ge=0, le=1)]
Attempts = Annotated[int, Meta(ge=1, le=1_000)]
Threshold = Annotated[int, Meta(ge=1, le=10_000)]
ReservedWorkers = Annotated[int, Meta(ge=1, le=10)]
Priority = Annotated[int, Meta(ge=-100, le=100, description="Higher runs first.")]
ExitCode = Annotated[int, Meta(ge=-64, le=255)]
