"""Who may write: one process per file, on a disk that keeps its word.

The lock is the operating system's, on a file beside the database, and ends with the process that holds it. The
file names its owner for whoever comes second.
"""

import fcntl
import os
from pathlib import Path
from typing import Final

from understudy.actors.ports.store import StoreRefused

_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs"})
_HEADER_BYTES: Final = 100


class Ownership:
    """Held from `take` to `release`."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".owner")
        self._file: int | None = None
        self.pid: int | None = None

    def take(self) -> None:
        refuse_network(self._database)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            what = f"{self._database} is in use by pid {owner}; stop that process, or use another file"
            raise StoreRefused(what) from None
        os.truncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file, self.pid = file, os.getpid()

    def release(self) -> None:
        if self._file is not None:
            os.truncate(self._file, 0)
            os.close(self._file)
            self._file = self.pid = None

    def check(self) -> None:
        """A forked child has the file but not the lock's promise: it must not write."""
        if self.pid != os.getpid():
            raise StoreRefused(f"{self._database} was opened by pid {self.pid}; open it again after a fork")


def owner_of(database: Path) -> int | None:
    """The pid that has a database open for writing, if one has."""
    path = database.with_name(database.name + ".owner")
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(file, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdigit() else None
    else:
        return None
    finally:
        os.close(file)


def refuse_stranger(database: Path) -> None:
    """SQLite would take a short file for an empty database, and write over it."""
    if database.exists() and (size := database.stat().st_size):
        with database.open("rb") as file:
            if size < _HEADER_BYTES or not file.read(_HEADER_BYTES).startswith(b"SQLite format 3\0"):
                raise StoreRefused(f"{database} cannot be opened: is it a database of understudy? It is left as it is")


def refuse_network(database: Path, mounts: str | None = None) -> None:
    """SQLite's locks and WAL do not work over a network."""
    if mounts is None:
        table = Path("/proc/mounts")
        mounts = table.read_text() if table.exists() else ""
    target = str(database.absolute())
    best = ("", "")
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split()
        if (target == point or target.startswith(point.rstrip("/") + "/")) and len(point) > len(best[0]):
            best = (point, kind)
    if best[1] in _NETWORK:
        raise StoreRefused(f"{database} lies on a network file system ({best[1]}); put it on a local disk")
