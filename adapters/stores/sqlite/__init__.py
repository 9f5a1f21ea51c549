"""The store in a SQLite file: WAL, one writer, whole transactions on the connection's own thread."""

from understudy.adapters.stores.sqlite.durability import Durability
from understudy.adapters.stores.sqlite.reader import SqliteReader
from understudy.adapters.stores.sqlite.store import SqliteStore

__all__ = ["Durability", "SqliteReader", "SqliteStore"]
