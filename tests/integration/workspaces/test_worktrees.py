"""Worktrees: made, found again after every half-done step, and removed without harm."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.integration.workspaces.repositories import Tree, make_repository, worktree_of
from understudy.actors.definition import Workspace, WorkspaceKind
from understudy.actors.ports.workspaces import WorkspaceError
from understudy.adapters.folders import Folders
from understudy.adapters.workspaces.git import Git
from understudy.adapters.workspaces.places import RealWorkspaces

BRANCH = "understudy/ws-1"
TARGET = f"branch.{BRANCH}.understudyTarget"


async def test_a_worktree_has_a_branch_of_its_own_that_starts_at_the_target(
    workspaces: RealWorkspaces, repository: Tree, folders: Folders
) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    assert made.path == folders.workspaces / "ws-1"
    assert made.git("symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert made.git("rev-parse", "HEAD") == repository.tip("main")
    assert made.read("code.py") == "one = 1\n"
    assert made.git("status", "--porcelain") == ""


async def test_a_repository_is_found_from_the_folder_of_the_definition(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    workspace = Workspace(kind=WorkspaceKind.WORKTREE, path="../project")
    (repository.path.parent / "definitions").mkdir()
    await workspaces.prepare("ws-1", workspace, str(repository.path.parent / "definitions"))
    assert repository.has_branch(BRANCH)


async def test_a_repository_is_found_from_the_current_directory(
    workspaces: RealWorkspaces, repository: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.path)
    await workspaces.prepare("ws-1", Workspace(kind=WorkspaceKind.WORKTREE, path="."), None)
    assert repository.has_branch(BRANCH)


async def test_a_worktree_is_found_again_with_the_work_in_it(workspaces: RealWorkspaces, repository: Tree) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    committed = made.commit("code.py", "one = 2\n")
    made.write("new.py", "not committed")
    assert await workspaces.prepare("ws-1", worktree_of(repository), None) == str(made.path)
    assert made.git("rev-parse", "HEAD") == committed
    assert made.read("new.py") == "not committed"


async def test_the_target_is_what_was_checked_out_at_first(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    path = await workspaces.prepare("ws-1", worktree_of(repository), None)
    repository.git("switch", "--create", "other")
    after = RealWorkspaces(folders)
    assert await after.prepare("ws-1", worktree_of(repository), None) == path
    assert (await after.plan_merge("ws-1", worktree_of(repository), path)).target == "main"


async def test_a_crash_before_the_branch_was_made_keeps_the_target(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    repository.git("config", TARGET, "main")
    repository.git("switch", "--create", "other")
    repository.commit("other.py", "")
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    assert made.git("rev-parse", "HEAD") == repository.tip("main")


async def test_a_branch_without_a_worktree_is_taken_up_where_it_was(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    repository.git("config", TARGET, "main")
    repository.git("branch", BRANCH)
    before = repository.tip(BRANCH)
    repository.commit("later.py", "")
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    assert made.git("rev-parse", "HEAD") == before


@pytest.mark.parametrize("is_locked", [False, True])
async def test_a_worktree_that_was_half_checked_out_is_made_again(
    workspaces: RealWorkspaces, repository: Tree, is_locked: bool
) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    (repository.path / ".git" / "worktrees" / "ws-1" / "index").unlink()
    (made.path / "code.py").unlink()
    if is_locked:
        repository.git("worktree", "lock", "--reason", "initializing", str(made.path))
    await workspaces.prepare("ws-1", worktree_of(repository), None)
    assert made.read("code.py") == "one = 1\n"
    assert made.git("status", "--porcelain") == ""


@pytest.mark.parametrize("is_emptied", [False, True])
async def test_a_worktree_that_was_deleted_by_hand_comes_back_with_what_was_committed(
    workspaces: RealWorkspaces, repository: Tree, is_emptied: bool
) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    made.commit("code.py", "one = 2\n")
    shutil.rmtree(made.path)
    if is_emptied:
        made.path.mkdir()
    await workspaces.prepare("ws-1", worktree_of(repository), None)
    assert made.read("code.py") == "one = 2\n"
    assert repository.worktrees() == 2


async def test_somebody_elses_missing_worktree_is_not_forgotten(workspaces: RealWorkspaces, repository: Tree) -> None:
    away = repository.path.parent / "on-another-disk"
    repository.git("worktree", "add", "--detach", str(away))
    away.rename(away.with_name("unplugged"))
    path = await workspaces.prepare("ws-1", worktree_of(repository), None)
    shutil.rmtree(path)
    await workspaces.prepare("ws-1", worktree_of(repository), None)
    await workspaces.remove("ws-1", worktree_of(repository), path)
    assert str(away) in repository.git("worktree", "list")


async def test_a_repository_without_files_can_be_worked_on(workspaces: RealWorkspaces, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = Tree(tmp_path / "empty")
    empty.git("init", "--initial-branch=main")
    empty.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "nothing")
    path = await workspaces.prepare("ws-1", worktree_of(empty), None)
    assert await workspaces.prepare("ws-1", worktree_of(empty), None) == path


async def test_what_is_no_repository_is_named(workspaces: RealWorkspaces, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for name, why in (
        ("plain", "plain is no git repository"),
        ("missing", "missing is no folder"),
        ("a\0b", "is no folder"),
    ):
        with pytest.raises(WorkspaceError, match=why):
            await workspaces.prepare("ws-1", Workspace(kind=WorkspaceKind.WORKTREE, path=name), str(tmp_path))


async def test_a_repository_without_a_commit_is_named(workspaces: RealWorkspaces, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    Tree(tmp_path / "new").git("init")
    with pytest.raises(WorkspaceError, match=r"new has no commit yet: make one"):
        await workspaces.prepare("ws-1", worktree_of(Tree(tmp_path / "new")), None)


async def test_a_detached_head_needs_a_branch_to_be_named(workspaces: RealWorkspaces, repository: Tree) -> None:
    repository.git("checkout", "--detach")
    with pytest.raises(WorkspaceError, match=r"no branch is checked out in .*project: name one"):
        await workspaces.prepare("ws-1", worktree_of(repository), None)
    path = await workspaces.prepare("ws-1", worktree_of(repository, "main"), None)
    assert (await workspaces.plan_merge("ws-1", worktree_of(repository, "main"), path)).target == "main"


async def test_a_branch_that_is_not_there_is_named(workspaces: RealWorkspaces, repository: Tree) -> None:
    with pytest.raises(WorkspaceError, match=r"project has no branch release: make it"):
        await workspaces.prepare("ws-1", worktree_of(repository, "release"), None)
    assert not repository.has_branch(BRANCH)


@pytest.mark.parametrize(
    "hostile", ["-d", "--force", "a..b", "@{-1}", "main^{}", "main:x", "a b", "../x", "a\0b", "x.lock", "HEAD~1"]
)
async def test_a_hostile_branch_is_refused(workspaces: RealWorkspaces, repository: Tree, hostile: str) -> None:
    before = repository.git("for-each-ref"), repository.git("config", "--list")
    with pytest.raises(WorkspaceError):
        await workspaces.prepare("ws-1", worktree_of(repository, hostile), None)
    assert (repository.git("for-each-ref"), repository.git("config", "--list")) == before


@pytest.mark.parametrize("hostile", ["../x", "a/b", "-d", "a..b", "a.lock", "a."])
async def test_an_id_that_no_branch_can_have_is_refused(
    workspaces: RealWorkspaces, repository: Tree, hostile: str
) -> None:
    with pytest.raises(WorkspaceError, match="choose another"):
        await workspaces.prepare(hostile, worktree_of(repository), None)
    assert repository.worktrees() == 1


async def test_a_folder_that_is_taken_is_left_alone(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    taken = Tree(folders.workspaces / "ws-1")
    taken.write("precious", "mine")
    with pytest.raises(WorkspaceError, match=r"ws-1 holds something that is no worktree of .*: move it away"):
        await workspaces.prepare("ws-1", worktree_of(repository), None)
    assert taken.read("precious") == "mine"


async def test_a_worktree_of_another_repository_is_left_alone(
    workspaces: RealWorkspaces, repository: Tree, tmp_path: Path
) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(make_repository(tmp_path / "another")), None))
    made.write("precious", "mine")
    with pytest.raises(WorkspaceError, match="move it away"):
        await workspaces.prepare("ws-1", worktree_of(repository), None)
    assert made.read("precious") == "mine"


async def test_a_machine_without_git_is_told_so(
    workspaces: RealWorkspaces, repository: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkspaceError, match="git is not installed"):
        await workspaces.prepare("ws-1", worktree_of(repository), None)


async def test_removal_leaves_nothing_of_what_was_merged(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    made.write("code.py", "one = 2\n")
    await workspaces.plan_merge("ws-1", worktree_of(repository), str(made.path))
    await workspaces.merge("ws-1", worktree_of(repository), str(made.path))
    made.write("ignored-by-all", "left by a program that still ran")
    for _ in range(2):
        await workspaces.remove("ws-1", worktree_of(repository), str(made.path))
        assert repository.worktrees() == 1
        assert not repository.has_branch(BRANCH)
        assert "understudy" not in repository.git("config", "--list")
        assert list(folders.workspaces.iterdir()) == []


async def test_removal_keeps_a_branch_that_was_not_merged(workspaces: RealWorkspaces, repository: Tree) -> None:
    made = Tree(await workspaces.prepare("ws-1", worktree_of(repository), None))
    kept = made.commit("code.py", "one = 2\n")
    await workspaces.remove("ws-1", worktree_of(repository), str(made.path))
    assert repository.tip(BRANCH) == kept
    assert not made.path.exists()


async def test_removal_keeps_a_branch_that_the_user_has_gone_to(workspaces: RealWorkspaces, repository: Tree) -> None:
    path = await workspaces.prepare("ws-1", worktree_of(repository), None)
    repository.git("switch", "--ignore-other-worktrees", BRANCH)
    await workspaces.remove("ws-1", worktree_of(repository), path)
    assert repository.git("status", "--porcelain", "--branch") == f"## {BRANCH}"


async def test_removal_finds_no_worktree_and_cleans_up_the_rest(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    path = await workspaces.prepare("ws-1", worktree_of(repository), None)
    shutil.rmtree(path)
    await RealWorkspaces(folders).remove("ws-1", worktree_of(repository), path)
    assert repository.worktrees() == 1
    assert not repository.has_branch(BRANCH)


async def test_removal_of_what_cannot_be_found_does_no_harm(workspaces: RealWorkspaces, tmp_path: Path) -> None:
    workspace = Workspace(kind=WorkspaceKind.WORKTREE, path="project")
    await workspaces.remove("ws-1", workspace, str(tmp_path / "nowhere"))


async def test_a_command_that_has_begun_ends_when_its_caller_is_cancelled(repository: Tree) -> None:
    os.mkfifo(repository.path / "said")
    git = Git(repository.path, ("-c", "alias.listen=!cat said > heard"))
    listening = asyncio.create_task(git.run("listen"))
    said = await asyncio.to_thread((repository.path / "said").open, "w")
    listening.cancel()
    with said:
        said.write("all of it")
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert repository.read("heard") == "all of it"


def test_a_command_that_has_begun_ends_when_the_loop_does(repository: Tree) -> None:
    os.mkfifo(repository.path / "said")
    git = Git(repository.path, ("-c", "alias.listen=!cat said > heard"))
    left: list[asyncio.Task[object]] = []

    async def speak_at_the_end() -> None:
        with await asyncio.to_thread((repository.path / "said").open, "w") as said:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                said.write("all of it")

    async def main() -> None:
        left.extend((asyncio.create_task(git.run("listen")), asyncio.create_task(speak_at_the_end())))
        await begun.wait()

    begun = asyncio.Event()
    asyncio.run(main())
    assert repository.read("heard") == "all of it"
