"""Workspaces: where the tasks of a workstream work, and how what they did comes back.

Every operation may be done again after a crash, and then does no harm.
"""

from typing import Protocol

import msgspec

from understudy.actors.definition import Workspace
from understudy.actors.errors import UnderstudyError


class Place(msgspec.Struct, frozen=True, gc=False):
    """A directory that relative paths refer to."""

    directory: str
    is_closed: bool = False  # whether paths may not lead out of it: so in every workspace


class MergePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a merge will bring, or what keeps it from being done."""

    branch: str
    target: str  # the branch that it is merged into
    commits: int = 0
    files: tuple[str, ...] = ()  # that differ; at most a hundred
    conflicts: tuple[str, ...] = ()  # files that both have changed
    commit: str | None = None  # that the target has become, once it is merged


class WorkspaceError(UnderstudyError):
    """A workspace cannot be made or merged. The text says why, and what to do."""


class Workspaces(Protocol):
    async def prepare(self, workstream_id: str, workspace: Workspace, directory: str | None) -> str:
        """Make a workspace, or find it again. `directory` is what relative paths refer to. Answers its path."""
        ...

    async def plan_merge(self, workstream_id: str, workspace: Workspace, path: str) -> MergePlan:
        """Put everything in a worktree into its branch, and try the merge.

        Where there is no conflict nobody else merges into this repository until `merge` or `let_go`.
        """
        ...

    async def merge(self, workstream_id: str, workspace: Workspace, path: str) -> str:
        """Merge as it was planned. Answers the commit that the target has become. Done already, it is the same."""
        ...

    def let_go(self, workstream_id: str) -> None:
        """Give up a merge that was planned: others may merge."""
        ...

    async def remove(self, workstream_id: str, workspace: Workspace, path: str) -> None:
        """Clean up what was merged: the worktree and its branch."""
        ...
