"""The one way in which git is called.

A command that has begun comes to its end, whatever becomes of whoever waits for it: half a merge is worse than none.
No shell, no hooks, no questions to a terminal, and nothing of an environment that a hook of git has left behind.
"""

import asyncio
import os
import subprocess
from collections.abc import Container
from pathlib import Path
from typing import Final

import msgspec

from understudy.actors.kernel.uncut import uncut
from understudy.actors.ports.workspaces import WorkspaceError

_KEPT: Final = frozenset({
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES",
})  # fmt: skip
_SETTINGS: Final = (
    "-c", f"core.hooksPath={os.devnull}",
    "-c", "core.fsmonitor=false",  # it would start a daemon
    "-c", "gc.auto=0",  # it would go on in the background
    "-c", "commit.gpgSign=false",
    "-c", "rerere.enabled=false",
    "-c", "submodule.recurse=false",
)  # fmt: skip
_OWN_NAME: Final = ("-c", "user.name=understudy", "-c", "user.email=understudy@localhost")
EXIT_CODES: Final = range(256)


class Answer(msgspec.Struct, frozen=True):
    """How a command ended, and what it has said."""

    code: int
    text: str
    complaint: str

    @property
    def names(self) -> tuple[str, ...]:
        """What was asked for with -z."""
        return tuple(self.text.split("\0")[:-1])


class Git:
    """Git in one directory."""

    def __init__(self, directory: Path, options: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self._options = options

    async def run(self, *arguments: str, accepted: Container[int] = (0,)) -> Answer:
        command = ["git", "-C", str(self.directory), *_SETTINGS, *self._options, *arguments]
        # A thread and not a process of the loop: a loop that ends would kill that one.
        ended = asyncio.get_running_loop().run_in_executor(None, _run, command)
        try:
            done = await uncut(ended)
        except FileNotFoundError:
            raise WorkspaceError("git is not installed, or not on the PATH: a worktree needs it") from None
        except (OSError, ValueError) as error:  # a name that no program can be given
            raise WorkspaceError(f"git {arguments[0]} could not be started in {self.directory}: {error}") from error
        answer = Answer(done.returncode, _text(done.stdout), _text(done.stderr).strip())
        if answer.code not in accepted:
            raise self.refusal(answer, *arguments)
        return answer

    async def ask(self, *arguments: str) -> str | None:
        """What git says, or None where it answers no."""
        answer = await self.run(*arguments, accepted=(0, 1))
        return answer.text.strip() if answer.code == 0 else None

    def refusal(self, answer: Answer, *arguments: str) -> WorkspaceError:
        why = answer.complaint or answer.text.strip() or f"it ended with code {answer.code}"
        return WorkspaceError(f"git {arguments[0]} failed in {self.directory}: {why}")

    async def with_identity(self) -> "Git":
        """For commits: as the user, or as understudy where git does not know who the user is."""
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            known = await Git(self.directory, ("-c", "user.useConfigOnly=true")).run("var", name, accepted=EXIT_CODES)
            if known.code != 0:
                return Git(self.directory, _OWN_NAME)
        return self


def _run(command: list[str]) -> "subprocess.CompletedProcess[bytes]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return subprocess.run(  # noqa: S603  # never a shell, and names are checked where they come in
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env={**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        start_new_session=True,  # an interrupt from the terminal is for us alone
    )


def _text(output: bytes) -> str:
    return output.decode(errors="replace")
