"""Who may write: one process per file, on a disk that keeps its word.

The lock is the operating system's, on a file beside the database, and ends with the process that holds it. The
file names its owner for whoever comes second.
"""

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from understudy.actors.ports.store import StoreRefused
from understudy.adapters.stores.sqlite.connection import uri_of
from understudy.adapters.stores.sqlite.statements import SCHEMA_VERSION

_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs"})
_HEADER_BYTES: Final = 100


class Ownership:
    """Held from `take` to `release`."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = _owner_file(database)
        self._file: int | None = None
        self._inodes: tuple[int, int] | None = None
        self.pid: int | None = None

    def take(self) -> None:
        """Lock the file for this process, and make it, for its owner's eyes only, if it is not there."""
        refuse_network(self._database)
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.close(os.open(self._database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StoreRefused(f"{self._database} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            what = f"{self._database} is in use by pid {owner}; stop that process, or use another file"
            raise StoreRefused(what) from None
        os.truncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file, self.pid, self._inodes = file, os.getpid(), self._look()
        _held.add(file)

    def release(self) -> None:
        if self._file is not None:
            _held.discard(self._file)
            os.truncate(self._file, 0)
            os.close(self._file)
            self._file = self.pid = None

    def check(self) -> None:
        """Still ours, and still the file that was opened? A forked child has no right to write."""
        if self.pid != os.getpid():
            what = "is not open" if self.pid is None else f"was opened by pid {self.pid}; open it again after a fork"
            raise StoreRefused(f"{self._database} {what}")
        if self._look() != self._inodes:
            raise StoreRefused(f"{self._database} was removed or replaced while it was open; start again")

    def _look(self) -> tuple[int, int] | None:
        try:
            return self._database.stat().st_ino, self._path.stat().st_ino
        except OSError:
            return None


def _owner_file(database: Path) -> Path:
    return database.with_name(database.name + ".owner")


_held: set[int] = set()  # the locks of this process, which a forked child must not keep


def _let_go() -> None:
    for file in _held:
        os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def owner_of(database: Path) -> int | None:
    """The pid that has a database open for writing, if one has."""
    try:
        file = os.open(_owner_file(database.resolve()), os.O_RDONLY)
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
    """Look before anything is changed: at what SQLite would take for an empty database, and at what is not ours."""
    if not database.exists() or not (size := database.stat().st_size):
        return
    with database.open("rb") as file:
        if size < _HEADER_BYTES or not file.read(_HEADER_BYTES).startswith(b"SQLite format 3\0"):
            raise StoreRefused(f"{database} cannot be opened: is it a database of understudy? It is left as it is")
    with closing(sqlite3.connect(uri_of(database, "ro"), uri=True)) as connection:
        [(version,)] = connection.execute("PRAGMA user_version").fetchall()
        [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    if version == 0 and tables:
        raise StoreRefused(f"{database} belongs to another program; use another file")
    if version > SCHEMA_VERSION:
        what = f"its schema is version {version}, and this understudy knows up to {SCHEMA_VERSION}"
        raise StoreRefused(f"{database} is too new: {what}; install a newer understudy")


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
