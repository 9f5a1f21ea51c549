"""`understudy logs`: what attempts have written, and what they write while somebody looks on."""

from pathlib import Path

import typer

from understudy.actors.lifecycle import TASK, WORKSTREAM
from understudy.adapters.folders import LogFile
from understudy.adapters.log_files import LogTail, wait_for_more
from understudy.runtime.cli.looking import look
from understudy.runtime.reading import Reading


def read_logs(target: str, database: Path, attempt: int | None, follow: bool, tail: int | None) -> None:
    async def read(reading: Reading) -> bool:
        return await _Reader(reading, target, attempt, tail).run(follow=follow)

    if not look(database, read):
        typer.echo(f"understudy: no attempt of {target} has written anything", err=True)


class _Reader:
    def __init__(self, reading: Reading, target: str, attempt: int | None, tail: int | None) -> None:
        self._reading = reading
        self._target = target
        self._workstream_id, _, key = target.partition("/")
        self._key = key or None
        self._attempt = attempt
        self._tail = tail
        self._open: dict[Path, tuple[LogTail, str]] = {}

    async def run(self, *, follow: bool) -> bool:
        """Print what there is, and follow it to the end of the target. Answers whether there was anything."""
        try:
            while True:
                has_ended = await self._has_ended()  # before the look: what is written after it is seen, too
                self._print_new()
                if has_ended or not follow:
                    return bool(self._open)
                await wait_for_more()
        finally:
            for log, _ in self._open.values():
                log.close()

    async def _has_ended(self) -> bool:
        if self._key is None:
            return WORKSTREAM.is_terminal((await self._reading.workstream(self._target)).state)
        return TASK.is_terminal((await self._reading.task(self._target)).state)

    def _print_new(self) -> None:
        for file in self._chosen():
            if file.path not in self._open:
                prefix = "" if self._key is not None else f"{file.key} | "
                self._open[file.path] = LogTail(file.path, self._tail), prefix
        for log, prefix in self._open.values():
            for line in log.read_on():
                typer.echo(f"{prefix}{line}")

    def _chosen(self) -> list[LogFile]:
        """The newest attempt of each task, or the one that is asked for."""
        newest: dict[str, LogFile] = {}
        for file in self._reading.folders.logs(self._workstream_id, self._key):
            if self._attempt in (None, file.attempt):
                newest[file.key] = file
        return list(newest.values())
