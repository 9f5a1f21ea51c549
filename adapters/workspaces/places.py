"""Workspaces on this machine: directories, and worktrees of git repositories.

A repository is merged into by one workstream at a time: from a plan without conflicts until it is merged or given up.
"""

import asyncio
import re
from pathlib import Path
from typing import Final

from understudy.actors.definition import Workspace, WorkspaceKind
from understudy.actors.definition.limits import ID_PATTERN
from understudy.actors.errors import MisuseError
from understudy.actors.ports.workspaces import MergePlan, WorkspaceError
from understudy.adapters.folders import Folders, make_private
from understudy.adapters.workspaces.git import Git
from understudy.adapters.workspaces.merging import Attempt, land, try_merge
from understudy.adapters.workspaces.repository import Repository, find_git_directory
from understudy.adapters.workspaces.worktree import Worktree

FILES_MAX: Final = 100  # of a plan: it is kept in the database
MERGES_MAX: Final = 5  # tries, when others move the target all the time


class RealWorkspaces:
    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._repositories: dict[Path, Repository] = {}
        self._repository_of: dict[str, Repository] = {}  # by workstream
        self._turns: dict[str, _Turn] = {}  # by workstream

    async def prepare(self, workstream_id: str, workspace: Workspace, directory: str | None) -> str:
        _check_id(workstream_id)
        start = _folder(directory)
        try:
            if workspace.kind is WorkspaceKind.DIRECTORY:
                return str(self._make_directory(workstream_id, workspace, start))
            _demand_worktree(workstream_id, workspace)
            origin = Git(start / (workspace.path or ""))
            repository = await self._open(workstream_id, origin)
            path = self._make_private_place() / workstream_id
        except (OSError, ValueError) as error:
            raise WorkspaceError(f"no workspace could be made for workstream {workstream_id}: {error}") from error
        await Worktree(repository, workstream_id, path).prepare(workspace.branch, origin)
        return str(path)

    async def plan_merge(self, workstream_id: str, workspace: Workspace, path: str) -> MergePlan:
        try:
            worktree = await self._find(workstream_id, workspace, path)
            turn = self._turn(worktree)
            tip = await worktree.gather()
            await turn.take()
            target = await worktree.target(workspace.branch)
            attempt = turn.attempt = await self._try(worktree, target, tip)
            plan = await _describe(worktree, target, attempt)
        except BaseException:
            self.let_go(workstream_id)
            raise
        if plan.conflicts:
            self.let_go(workstream_id)
        return plan

    async def merge(self, workstream_id: str, workspace: Workspace, path: str) -> str:
        try:
            worktree = await self._find(workstream_id, workspace, path)
            turn = self._turn(worktree)
            await turn.take()
            target = await worktree.target(workspace.branch)
            return await self._merge(worktree, target, turn.attempt)
        finally:
            self.let_go(workstream_id)

    def let_go(self, workstream_id: str) -> None:
        turn = self._turns.pop(workstream_id, None)
        if turn is not None:
            turn.give_back()

    async def remove(self, workstream_id: str, workspace: Workspace, path: str) -> None:
        self.let_go(workstream_id)
        if workspace.kind is WorkspaceKind.DIRECTORY:
            return  # what was made there is the result
        _demand_worktree(workstream_id, workspace)
        repository = await self._look_for(workstream_id, workspace, Path(path))
        if repository is not None:
            await Worktree(repository, workstream_id, Path(path)).remove(workspace.branch)
        self._repository_of.pop(workstream_id, None)

    def _make_directory(self, workstream_id: str, workspace: Workspace, start: Path) -> Path:
        if workspace.path is None:
            return make_private(self._make_private_place() / workstream_id)
        made = start / workspace.path / workstream_id
        made.mkdir(parents=True, exist_ok=True)
        return made

    def _make_private_place(self) -> Path:
        make_private(self._folders.root)
        return make_private(self._folders.workspaces).resolve()  # as git will call it

    async def _open(self, workstream_id: str, git: Git) -> Repository:
        directory = await find_git_directory(git)
        repository = self._repositories.setdefault(directory, Repository(directory))
        self._repository_of[workstream_id] = repository
        return repository

    async def _find(self, workstream_id: str, workspace: Workspace, path: str) -> Worktree:
        _demand_worktree(workstream_id, workspace)
        repository = await self._look_for(workstream_id, workspace, Path(path))
        if repository is None:
            raise WorkspaceError(f"no worktree of workstream {workstream_id} is left at {path}: prepare it again")
        return Worktree(repository, workstream_id, Path(path))

    async def _look_for(self, workstream_id: str, workspace: Workspace, path: Path) -> Repository | None:
        known = self._repository_of.get(workstream_id)
        if known is not None:
            return known
        way = _way_to_repository(workspace, path)
        return None if way is None else await self._open(workstream_id, Git(way))

    def _turn(self, worktree: Worktree) -> "_Turn":
        return self._turns.setdefault(worktree.workstream_id, _Turn(worktree.repository.turn))

    async def _try(self, worktree: Worktree, target: str, tip: str) -> Attempt:
        repository = worktree.repository
        onto = await repository.tip(target)
        if onto is None:
            raise WorkspaceError(f"{repository.git.directory} has no branch {target} any more: make it again")
        return await try_merge(repository, tip, onto, f"Merge workstream {worktree.workstream_id}", worktree.scratch)

    async def _merge(self, worktree: Worktree, target: str, planned: Attempt | None) -> str:
        repository = worktree.repository
        tip = await worktree.tip() if planned is None else planned.tip
        for _ in range(MERGES_MAX):
            attempt = planned
            if attempt is None or attempt.onto != await repository.tip(target):
                attempt = await self._try(worktree, target, tip)
            if attempt.commit == attempt.onto:
                return await repository.merge_of(tip, attempt.onto)
            if attempt.commit is None:
                raise WorkspaceError(
                    f"{target} has changed since the merge of {worktree.branch} was planned, and now both have changed "
                    f"{', '.join(attempt.conflicts[:10])}: merge {target} into {worktree.path} by hand, and try again"
                )
            if await land(repository, target, attempt.onto, attempt.commit):
                return attempt.commit
        raise WorkspaceError(f"{target} was moved by others {MERGES_MAX} times while {worktree.branch} was merged")


class _Turn:
    """The turn of one workstream to merge into a repository."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._is_held = False
        self._is_over = False
        self.attempt: Attempt | None = None

    async def take(self) -> None:
        if not self._is_held:
            await self._lock.acquire()
            self._is_held = True
            if self._is_over:  # it was given up while it waited
                self.give_back()

    def give_back(self) -> None:
        self._is_over = True
        if self._is_held:
            self._is_held = False
            self._lock.release()


def _check_id(workstream_id: str) -> None:
    if re.match(ID_PATTERN, workstream_id) is None:
        raise WorkspaceError(f"{workstream_id!r} is no id that a workspace can be named for: choose another")


def _folder(directory: str | None) -> Path:
    return Path(directory or "").absolute()


def _way_to_repository(workspace: Workspace, path: Path) -> Path | None:
    """A folder to find it from: the worktree, or where that is gone the path, if it is one by itself."""
    if (path / ".git").is_file():
        return path
    named = Path(workspace.path or "")
    return named if named.is_absolute() and named.is_dir() else None


def _demand_worktree(workstream_id: str, workspace: Workspace) -> None:
    if workspace.kind is not WorkspaceKind.WORKTREE:
        raise MisuseError(f"workstream {workstream_id} has no worktree, but {workspace.kind}: ask only for a worktree")


async def _describe(worktree: Worktree, target: str, attempt: Attempt) -> MergePlan:
    git = worktree.repository.git
    counted = await git.run("rev-list", "--count", f"{attempt.onto}..{attempt.tip}")
    changed = await git.run("diff", "--name-only", "--no-renames", "-z", f"{attempt.onto}...{attempt.tip}")
    return MergePlan(
        branch=worktree.branch,
        target=target,
        commits=int(counted.text),
        files=changed.names[:FILES_MAX],
        conflicts=attempt.conflicts[:FILES_MAX],
    )
