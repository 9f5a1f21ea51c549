"""The worktree of one workstream, and the branch that its work is kept in.

What it will be merged into is remembered first, then the branch is made, then the worktree. So each step that was
done before a crash is found again. They are undone with the worktree last: it is what leads to the others.
"""

from pathlib import Path

from understudy.actors.ports.workspaces import WorkspaceError
from understudy.adapters.workspaces.git import Git
from understudy.adapters.workspaces.repository import Repository, check_branch_name


class Worktree:
    def __init__(self, repository: Repository, workstream_id: str, path: Path) -> None:
        self.repository = repository
        self.workstream_id = workstream_id
        self.path = path
        self.scratch = path.with_name(f".{path.name}.merge")  # no id begins with a dot
        self.branch = f"understudy/{workstream_id}"
        self._section = f"branch.{self.branch}"

    async def prepare(self, named_target: str | None, origin: Git) -> None:
        """Make it, or repair what a crash or somebody's hand has left of it. `origin` is where the user works."""
        git = self.repository.git
        await check_branch_name(git, self.branch)
        async with self.repository.writing:
            target = named_target or await self._recall_target() or await _checked_out(origin)
            await check_branch_name(git, target)
            start = await self.repository.tip(target)
            if start is None:
                raise await _no_start(origin, target)
            await git.run("config", f"{self._section}.understudyTarget", target)
            if await self.repository.tip(self.branch) is None:
                await git.run("branch", "--no-track", self.branch, start)
            await self._place()

    async def target(self, named_target: str | None) -> str:
        """The branch that it is merged into."""
        target = named_target or await self._recall_target()
        if target is None:
            raise WorkspaceError(
                f"nothing says what workstream {self.workstream_id} is merged into: "
                f"name a branch with git config {self._section}.understudyTarget"
            )
        await check_branch_name(self.repository.git, target)
        return target

    async def gather(self) -> str:
        """Put everything in the worktree into its branch. Answers the branch's tip."""
        here = Git(self.path)
        if not (self.path / ".git").is_file():  # without it git would look for a repository around it
            raise WorkspaceError(
                f"no worktree is left at {self.path}: bring it back with git worktree add {self.path} {self.branch}"
            )
        head = await here.ask("symbolic-ref", "--quiet", "HEAD")
        if head != f"refs/heads/{self.branch}":
            raise WorkspaceError(
                f"the worktree {self.path} is not on {self.branch}: bring its work there, and git switch to it"
            )
        if unmerged := await unmerged_files(here):
            raise WorkspaceError(
                f"a merge in {self.path} is not finished: resolve and git add {', '.join(unmerged[:10])}"
            )
        await here.run("add", "--all")
        if await self._has_something_to_commit(here):
            message = f"understudy: {self.workstream_id}"
            await (await here.with_identity()).run("commit", "--quiet", "--no-verify", "--message", message)
        return await self.tip()

    async def tip(self) -> str:
        tip = await self.repository.tip(self.branch)
        if tip is None:
            raise WorkspaceError(f"branch {self.branch} is gone: look for its last commit with git reflog")
        return tip

    async def remove(self, named_target: str | None) -> None:
        """The worktree, and the branch where everything in it was merged."""
        async with self.repository.writing:
            await self._remove_branch(named_target or await self._recall_target())
            await self.repository.git.run("config", "--remove-section", self._section, accepted=(0, 128))
            await self.repository.clear(self.scratch)
            await self.repository.remove_worktree(self.path)

    async def _remove_branch(self, target: str | None) -> None:
        tip = await self.repository.tip(self.branch)
        target_tip = None if target is None else await self.repository.tip(target)
        if tip is None or target_tip is None or not await self.repository.contains(target_tip, tip):
            return
        users = [each.path for each in await self.repository.checkouts() if each.branch == self.branch]
        if users in ([], [self.path]):
            await self.repository.git.run("update-ref", "-d", f"refs/heads/{self.branch}", tip)

    async def _recall_target(self) -> str | None:
        return await self.repository.git.ask("config", "--get", f"{self._section}.understudyTarget")

    async def _place(self) -> None:
        if await self.repository.is_checked_out(self.path):
            if await self._is_complete():
                return
            if not _is_taken(self.path) or (self.path / ".git").is_file():
                await self.repository.remove_worktree(self.path)
        if _is_taken(self.path):
            raise WorkspaceError(
                f"{self.path} holds something that is no worktree of {self.repository.git.directory}: move it away"
            )
        await self.repository.git.run("worktree", "add", "--quiet", str(self.path), self.branch)

    async def _is_complete(self) -> bool:
        """The index is what git writes last: without it nobody has worked here yet."""
        if not (self.path / ".git").is_file():
            return False
        index = await Git(self.path).run("rev-parse", "--git-path", "index")
        return (self.path / index.text.removesuffix("\n")).exists()

    async def _has_something_to_commit(self, here: Git) -> bool:
        is_same = await here.ask("diff", "--cached", "--quiet") is not None
        return not is_same or await here.ask("rev-parse", "--quiet", "--verify", "MERGE_HEAD") is not None


async def unmerged_files(git: Git) -> tuple[str, ...]:
    return (await git.run("diff", "--name-only", "--diff-filter=U", "-z")).names


async def _checked_out(origin: Git) -> str:
    head = await origin.ask("symbolic-ref", "--quiet", "HEAD")
    if head is None:
        raise WorkspaceError(
            f"no branch is checked out in {origin.directory}: name one to merge into in workspace.branch"
        )
    return head.removeprefix("refs/heads/")


async def _no_start(origin: Git, target: str) -> WorkspaceError:
    if await origin.ask("rev-list", "--all", "--max-count=1"):
        return WorkspaceError(f"{origin.directory} has no branch {target}: make it, or name another")
    return WorkspaceError(f"{origin.directory} has no commit yet: make one, so that there is something to start from")


def _is_taken(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
