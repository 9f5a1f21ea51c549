"""Makes a git repository of the shop for the agents to work on, in place of the one of the last run.

Says which folder the agents' own scripts are in: in a worktree that cannot be known.
"""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHOP = HERE / ".state" / "shop"


def git(*arguments: str) -> None:
    author = ("-c", "user.name=You", "-c", "user.email=you@localhost", "-c", "commit.gpgSign=false")
    subprocess.run(["git", "-C", SHOP, *author, *arguments], check=True)  # noqa: S603, S607


if __name__ == "__main__":
    shutil.rmtree(SHOP, ignore_errors=True)
    shutil.copytree(HERE / "shop", SHOP, ignore=shutil.ignore_patterns("__pycache__"))
    (SHOP / ".gitignore").write_text("__pycache__/\n")
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "A shop that can multiply")
    print(HERE)
