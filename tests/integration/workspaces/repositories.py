"""Real repositories, and how a user or an agent works in them."""

import subprocess
from pathlib import Path

from understudy.actors.definition import Workspace, WorkspaceKind


class Tree:
    """A working tree, as whoever sits in front of it uses it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def says_yes(self, *arguments: str) -> bool:
        return (
            subprocess.run(["git", "-C", str(self.path), *arguments], capture_output=True, check=False).returncode == 0
        )

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def commit(self, name: str, text: str) -> str:
        self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "-m", f"change {name}")
        return self.git("rev-parse", "HEAD")

    def tip(self, branch: str) -> str:
        return self.git("rev-parse", f"refs/heads/{branch}")

    def has_branch(self, branch: str) -> bool:
        return self.says_yes("rev-parse", "--verify", f"refs/heads/{branch}")

    def shown(self, branch: str, name: str) -> str:
        return self.git("show", f"{branch}:{name}")

    def files(self, branch: str) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", branch).splitlines()

    def worktrees(self) -> int:
        return self.git("worktree", "list").count("\n") + 1

    def state(self) -> tuple[str, ...]:
        """Everything that a plan must leave as it is."""
        return (
            self.git("rev-parse", "HEAD"),
            self.git("symbolic-ref", "HEAD"),
            self.git("status", "--porcelain"),
            self.git("stash", "list"),
            self.git("for-each-ref", "refs/heads/main"),
        )


def make_repository(path: Path) -> Tree:
    path.mkdir(parents=True)
    tree = Tree(path)
    tree.git("init", "--initial-branch=main")
    tree.git("config", "user.name", "A User")
    tree.git("config", "user.email", "user@example.org")
    tree.write("README", "first\n")
    tree.commit("code.py", "one = 1\n")
    return tree


def worktree_of(tree: Tree, branch: str | None = None) -> Workspace:
    return Workspace(kind=WorkspaceKind.WORKTREE, path=str(tree.path), branch=branch)
