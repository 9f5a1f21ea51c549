"""Who watches a runtime: told of every commit when it has landed, and of every line that a program writes.

A watcher is called on the loop and must be quick. One that raises is taken away, and the runtime goes on.
"""

from typing import Any, Protocol

from understudy.actors.ports.store import Batch
from understudy.actors.ports.workplace import Order


class Watcher(Protocol):
    def landed(self, batch: Batch) -> None:
        """What was committed: records as they are now, and the moves that led there."""
        ...

    def heard(self, order: Order, line: str) -> None:
        """A line that a program wrote, or what a function said of its progress, without secrets."""
        ...


class Watchers:
    def __init__(self, log: Any) -> None:
        self._log = log
        self._watchers: list[Watcher] = []

    def add(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def remove(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def landed(self, batch: Batch) -> None:
        for watcher in tuple(self._watchers):
            try:
                watcher.landed(batch)
            except Exception as error:  # noqa: BLE001, RUF100 - whatever a watcher raises is not ours
                self._dismiss(watcher, error)

    def heard(self, order: Order, line: str) -> None:
        for watcher in tuple(self._watchers):
            try:
                watcher.heard(order, line)
            except Exception as error:  # noqa: BLE001, RUF100
                self._dismiss(watcher, error)

    def _dismiss(self, watcher: Watcher, error: Exception) -> None:
        self.remove(watcher)
        self._log.error("a watcher has failed and is told no more", reason=repr(error))
