"""A git repository that several workstreams work on.

One at a time changes what git itself locks, and one at a time merges. Both locks are for this process: against
others there are git's own, and every branch is moved only from where it was seen to be.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from understudy.actors.ports.workspaces import WorkspaceError
from understudy.adapters.workspaces.git import EXIT_CODES, Git


class Checkout(msgspec.Struct, frozen=True):
    """A working tree, and the branch that it is on."""

    path: Path
    branch: str | None


class Repository:
    def __init__(self, git_directory: Path) -> None:
        self.git = Git(git_directory, ("--git-dir", str(git_directory)))  # no search for it, which may be forbidden
        self.turn = asyncio.Lock()  # to merge: from a plan until it is done or given up
        self.writing = asyncio.Lock()  # whoever comes second to git's own locks would fail

    async def tip(self, branch: str) -> str | None:
        return await self.git.ask("rev-parse", "--quiet", "--verify", f"refs/heads/{branch}^{{commit}}")

    async def contains(self, commit: str, older: str) -> bool:
        return await self.git.ask("merge-base", "--is-ancestor", older, commit) is not None

    async def checkouts(self) -> list[Checkout]:
        listed = await self.git.run("worktree", "list", "--porcelain")
        return [_read_checkout(each) for each in listed.text.strip().split("\n\n")]

    async def is_checked_out(self, path: Path) -> bool:
        return any(each.path == path for each in await self.checkouts())

    async def remove_worktree(self, path: Path) -> None:
        """Only this one: pruning would forget every worktree that is on a disk that is not there now."""
        if await self.is_checked_out(path):
            _drop_empty(path)  # git takes a missing folder for deleted, but an empty one for a mistake
            await self.git.run("worktree", "remove", "--force", "--force", str(path))

    @contextlib.asynccontextmanager
    async def scratch(self, path: Path, commit: str) -> AsyncGenerator[Git, None]:
        """A worktree to try something in. Nothing of it is left."""
        try:
            async with self.writing:
                await self.clear(path)
                await self.git.run("worktree", "add", "--quiet", "--detach", str(path), commit)
            yield Git(path)
        finally:
            async with self.writing:
                await self.clear(path)

    async def clear(self, path: Path) -> None:
        """A worktree that nobody needs, or what a crash has left of it."""
        await self.git.run("worktree", "remove", "--force", "--force", str(path), accepted=EXIT_CODES)
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    async def merge_of(self, tip: str, target_tip: str) -> str:
        """The commit that has brought `tip` into a branch. Where there is none: what the branch is now."""
        listed = await self.git.run("rev-list", "--merges", "--parents", f"{tip}..{target_tip}")
        for line in reversed(listed.text.splitlines()):
            commit, _, *others = line.split()
            if tip in others:
                return commit
        return target_tip


async def find_git_directory(git: Git) -> Path:
    """The folder of the repository itself, the same for all of its worktrees."""
    if not git.directory.is_dir():
        raise WorkspaceError(f"{git.directory} is no folder: name a git repository in workspace.path")
    answer = await git.run("rev-parse", "--git-common-dir", accepted=(0, 128))
    if answer.code != 0:
        raise WorkspaceError(
            f"{git.directory} is no git repository that can be used ({answer.complaint}): "
            "name one in workspace.path, or make it with git init"
        )
    return (git.directory / answer.text.removesuffix("\n")).resolve()


async def check_branch_name(git: Git, name: str) -> None:
    if name.startswith("-") or await git.ask("check-ref-format", f"refs/heads/{name}") is None:
        raise WorkspaceError(f"{name!r} is no name for a git branch: choose another")


def _drop_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir()


def _read_checkout(text: str) -> Checkout:
    path, branch = Path(), None
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "worktree":
            path = Path(rest)
        elif word == "branch":
            branch = rest.removeprefix("refs/heads/")
    return Checkout(path, branch)
