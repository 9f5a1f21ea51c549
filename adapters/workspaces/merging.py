"""How a branch is merged: tried apart first, then the target is moved to what came out.

The target is only moved from the commit that the merge was tried on. Where it is checked out its files follow, and
git itself refuses if somebody's changes would be lost.
"""

from pathlib import Path

import msgspec

from understudy.actors.ports.workspaces import WorkspaceError
from understudy.adapters.workspaces.git import EXIT_CODES, Git
from understudy.adapters.workspaces.repository import Repository
from understudy.adapters.workspaces.worktree import unmerged_files


class Attempt(msgspec.Struct, frozen=True):
    """A merge that was tried. It has given a commit, or conflicts."""

    tip: str  # what was merged
    onto: str  # where the target was
    commit: str | None = None
    conflicts: tuple[str, ...] = ()


async def try_merge(repository: Repository, tip: str, onto: str, message: str, scratch: Path) -> Attempt:
    """Neither the target nor anybody's files change."""
    if await repository.contains(onto, tip):
        return Attempt(tip, onto, onto)
    async with repository.scratch(scratch, onto) as here:
        git = await here.with_identity()
        merged = await git.run("merge", "--quiet", "--no-ff", "--no-verify", "-m", message, tip, accepted=(0, 1))
        if merged.code == 0:
            return Attempt(tip, onto, await git.ask("rev-parse", "HEAD"))
        conflicts = await unmerged_files(git)
        if not conflicts:
            raise git.refusal(merged, "merge")
        return Attempt(tip, onto, conflicts=conflicts)


async def land(repository: Repository, target: str, onto: str, commit: str) -> bool:
    """Move the target to a commit. False where somebody has moved it meanwhile."""
    tree = next((each.path for each in await repository.checkouts() if each.branch == target), None)
    if tree is None or not tree.is_dir():
        move = ("update-ref", "-m", "understudy: merge", f"refs/heads/{target}", commit, onto)
        answer = await repository.git.run(*move, accepted=EXIT_CODES)
    else:
        answer = await Git(tree).run("merge", "--quiet", "--ff-only", "--no-autostash", commit, accepted=EXIT_CODES)
    now = await repository.tip(target)
    if now is not None and await repository.contains(now, commit):
        return True
    if now != onto or answer.code == 0:
        return False
    raise WorkspaceError(
        f"{target} could not be moved to the merge {commit[:12]}, and nothing was changed: {answer.complaint}\n"
        f"Put right what is in the way in {tree or repository.git.directory}, and merge again"
    )
