"""What belongs to a database besides its rows: logs of attempts, workspaces, and the processes that were started.

It all lies in one folder beside the database, which only its owner may read.
"""

import re
from pathlib import Path
from typing import Final

import msgspec

_LOG: Final = re.compile(r"(.+)\.(\d+)\.(\d+)\.log")


class LogFile(msgspec.Struct, frozen=True):
    """The log of one attempt."""

    path: Path
    key: str  # of the task
    generation: int
    attempt: int


class Folders:
    def __init__(self, database: Path) -> None:
        whole = database.resolve()  # two names of one file are one file
        self.root = whole.with_name(f"{whole.name}.files")
        self.workspaces = self.root / "workspaces"
        self.outputs = self.root / "outputs"  # where programs that are running write their results
        self.processes = self.root / "processes"  # a line for each process that started or ended

    def log(self, workstream_id: str, key: str, generation: int, attempt: int) -> Path:
        return self.root / "logs" / workstream_id / f"{key}.{generation}.{attempt}.log"

    def logs(self, workstream_id: str, key: str | None = None) -> list[LogFile]:
        """The logs of a workstream or of one of its tasks, in the order of attempts."""
        found: list[LogFile] = []
        for path in (self.root / "logs" / workstream_id).glob("*.log"):
            parts = _LOG.fullmatch(path.name)
            if parts is not None and key in (None, parts[1]):
                found.append(LogFile(path, parts[1], int(parts[2]), int(parts[3])))
        return sorted(found, key=lambda each: (each.key, each.generation, each.attempt))


def make_private(folder: Path) -> Path:
    """A folder that is there, and that nobody else may look into where it was made now."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
