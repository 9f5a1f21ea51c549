"""Merges: everything that was done comes back, nothing of the user's is lost, and a conflict changes nothing."""

import shutil
from pathlib import Path

import pytest

from tests.integration.workspaces.repositories import Tree, make_repository, worktree_of
from understudy.actors.definition import Workspace, WorkspaceKind
from understudy.actors.ports.workspaces import MergePlan, WorkspaceError
from understudy.adapters.folders import Folders
from understudy.adapters.workspaces.places import RealWorkspaces

BRANCH = "understudy/ws-1"


async def prepare(workspaces: RealWorkspaces, workspace: Workspace, workstream_id: str = "ws-1") -> Tree:
    return Tree(await workspaces.prepare(workstream_id, workspace, None))


async def test_committed_work_is_planned_and_merged(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.commit("code.py", "one = 2\n")
    work = made.commit("new/ä b.py", "new")
    before, state = repository.tip("main"), repository.state()
    plan = await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert plan == MergePlan(branch=BRANCH, target="main", commits=2, files=("code.py", "new/ä b.py"))
    assert repository.state() == state
    commit = await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.git("rev-parse", "HEAD") == repository.tip("main") == commit
    assert repository.git("log", "-1", "--format=%P %s") == f"{before} {work} Merge workstream ws-1"
    assert repository.read("code.py") == "one = 2\n"
    assert repository.git("status", "--porcelain") == ""
    assert repository.worktrees() == 2


async def test_what_an_agent_did_not_commit_is_committed_and_merged(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    repository.commit(".gitignore", "ignored\n")
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    made.write("ignored", "not wanted")
    (made.path / "README").unlink()
    (made.path / "code.py").chmod(0o755)
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).files == ("README", "code.py", "new.py")
    await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.files("main") == [".gitignore", "code.py", "new.py"]
    assert repository.git("log", "-1", "--format=%an <%ae> %s", BRANCH) == "A User <user@example.org> understudy: ws-1"


async def test_commits_are_understudys_where_the_user_has_no_name(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    repository.git("config", "--remove-section", "user")
    made.write("new.py", "new")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    await workspaces.merge("ws-1", workspace, str(made.path))
    for branch in ("main", BRANCH):
        names = repository.git("log", "-1", "--format=%an <%ae> %cn <%ce>", branch)
        assert names == " ".join(["understudy <understudy@localhost>"] * 2)


async def test_a_workstream_that_changed_nothing_merges_nothing(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    before = repository.commit("later.py", "")
    plan = await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert plan == MergePlan(branch=BRANCH, target="main")
    assert await workspaces.merge("ws-1", workspace, str(made.path)) == before
    assert repository.tip("main") == before


async def test_a_plan_names_at_most_a_hundred_files(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    for number in range(120):
        made.write(f"{number}.txt", "")
    plan = await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert (plan.commits, len(plan.files)) == (1, 100)


async def test_the_users_own_changes_survive_a_merge(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    repository.write("README", "being edited\n")
    repository.write("staged.py", "staged")
    repository.git("add", "staged.py")
    repository.write("untracked.py", "untracked")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.git("status", "--porcelain").splitlines() == ["M README", "A  staged.py", "?? untracked.py"]
    assert repository.read("code.py") == "one = 2\n"
    assert repository.read("README") == "being edited\n"


@pytest.mark.parametrize("name", ["code.py", "new.py"], ids=["edited", "untracked"])
async def test_a_merge_over_the_users_own_changes_is_refused_until_they_are_away(
    workspaces: RealWorkspaces, repository: Tree, name: str
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write(name, "by the agent")
    repository.write(name, "by the user")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    state = repository.state()
    with pytest.raises(
        WorkspaceError, match=rf"(?s)main could not be moved.*{name}.*Put right .*project, and merge again"
    ):
        await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.state() == state
    assert repository.read(name) == "by the user"
    (repository.path / name).unlink()
    repository.git("checkout", "--", ".")
    await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.read(name) == "by the agent"


async def test_a_target_that_nobody_has_checked_out_is_moved_by_itself(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    repository.git("branch", "release")
    workspace = worktree_of(repository, "release")
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    state = repository.state()
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).target == "release"
    assert await workspaces.merge("ws-1", workspace, str(made.path)) == repository.tip("release")
    assert repository.shown("release", "code.py") == "one = 2"
    assert repository.state() == state


async def test_a_target_that_is_checked_out_elsewhere_takes_its_files_along(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    elsewhere = Tree(repository.path.parent / "elsewhere")
    repository.git("worktree", "add", "-b", "release", str(elsewhere.path))
    workspace = worktree_of(elsewhere)
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).target == "release"
    await workspaces.merge("ws-1", workspace, str(made.path))
    assert elsewhere.read("code.py") == "one = 2\n"
    assert elsewhere.git("status", "--porcelain") == ""
    assert repository.read("code.py") == "one = 1\n"


async def test_a_bare_repository_is_merged_into(workspaces: RealWorkspaces, repository: Tree, tmp_path: Path) -> None:
    repository.git("clone", "--bare", ".", str(tmp_path / "bare.git"))
    bare = Tree(tmp_path / "bare.git")
    workspace = worktree_of(bare)
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert await workspaces.merge("ws-1", workspace, str(made.path)) == bare.tip("main")
    assert bare.shown("main", "code.py") == "one = 2"
    await workspaces.remove("ws-1", workspace, str(made.path))
    assert not bare.has_branch(BRANCH)


async def test_a_conflict_is_planned_with_its_files_and_changes_nothing(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    made.write("new.py", "new")
    repository.commit("code.py", "one = 3\n")
    state = repository.state()
    plan = await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert plan == MergePlan(
        branch=BRANCH, target="main", commits=1, files=("code.py", "new.py"), conflicts=("code.py",)
    )
    assert repository.state() == state
    assert repository.worktrees() == 2
    assert [each.name for each in folders.workspaces.iterdir()] == ["ws-1"]
    assert made.read("code.py") == "one = 2\n"
    assert made.git("status", "--porcelain") == ""


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_conflict_that_was_resolved_by_hand_is_merged(
    workspaces: RealWorkspaces, repository: Tree, is_committed: bool
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    repository.commit("code.py", "one = 3\n")
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).conflicts
    assert not made.says_yes("merge", "main")
    with pytest.raises(WorkspaceError, match=r"ws-1 is not finished: resolve and git add code\.py"):
        await workspaces.plan_merge("ws-1", workspace, str(made.path))
    made.write("code.py", "one = 5\n")
    made.git("add", "--all")
    if is_committed:
        made.git("commit", "--no-edit")
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).conflicts == ()
    await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.read("code.py") == "one = 5\n"


async def test_a_merge_that_was_resolved_to_what_the_branch_had_is_still_concluded(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.commit("code.py", "one = 2\n")
    repository.commit("code.py", "one = 3\n")
    made.says_yes("merge", "main")
    made.git("checkout", "--ours", "code.py")
    made.git("add", "--all")
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).conflicts == ()
    await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.read("code.py") == "one = 2\n"


async def test_work_on_another_branch_is_not_passed_over(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.git("switch", "--create", "feature")
    made.write("code.py", "one = 2\n")
    with pytest.raises(WorkspaceError, match=f"is not on {BRANCH}: bring its work there"):
        await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert made.git("status", "--porcelain") == "M code.py"


async def test_a_plan_without_its_worktree_does_not_commit_what_lies_around_it(repository: Tree) -> None:
    workspaces = RealWorkspaces(Folders(repository.path / "understudy.db"))
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    shutil.rmtree(made.path)
    made.path.mkdir()
    state = repository.state()
    with pytest.raises(WorkspaceError, match="no worktree is left at"):
        await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert repository.state() == state


async def test_a_target_that_moved_after_the_plan_is_merged_into_as_it_is_now(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    meanwhile = repository.commit("code.py", "one = 3\n")
    assert await workspaces.merge("ws-1", workspace, str(made.path)) == repository.tip("main")
    assert repository.git("rev-parse", "HEAD^1") == meanwhile
    assert (repository.read("new.py"), repository.read("code.py")) == ("new", "one = 3\n")


async def test_a_target_that_moved_into_a_conflict_is_left_there(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("code.py", "one = 2\n")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    repository.commit("code.py", "one = 3\n")
    state = repository.state()
    with pytest.raises(WorkspaceError, match=r"main has changed since .* both have changed code\.py: merge main into"):
        await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.state() == state


async def test_a_target_that_is_gone_is_named(workspaces: RealWorkspaces, repository: Tree) -> None:
    repository.git("branch", "release")
    workspace = worktree_of(repository, "release")
    made = await prepare(workspaces, workspace)
    repository.git("branch", "-D", "release")
    with pytest.raises(WorkspaceError, match="has no branch release any more"):
        await workspaces.plan_merge("ws-1", workspace, str(made.path))


async def test_what_an_agent_began_anew_is_not_merged(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.git("checkout", "--orphan", "fresh")
    made.git("commit", "-m", "from nothing")
    made.git("branch", "-M", BRANCH)
    with pytest.raises(WorkspaceError, match="refusing to merge unrelated histories"):
        await workspaces.plan_merge("ws-1", workspace, str(made.path))
    assert repository.worktrees() == 2


async def test_after_a_crash_a_plan_is_merged_all_the_same(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    await RealWorkspaces(folders).merge("ws-1", workspace, str(made.path))
    assert repository.read("new.py") == "new"


async def test_a_merge_that_was_done_is_answered_with_its_commit(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    commit = await workspaces.merge("ws-1", workspace, str(made.path))
    repository.commit("later.py", "")
    later = repository.tip("main")
    assert await RealWorkspaces(folders).merge("ws-1", workspace, str(made.path)) == commit
    shutil.rmtree(made.path)
    assert await RealWorkspaces(folders).merge("ws-1", workspace, str(made.path)) == commit
    assert repository.tip("main") == later


async def test_what_a_crash_left_of_a_try_is_in_nobodys_way(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    repository.git("worktree", "add", "--detach", str(folders.workspaces / ".ws-1.merge"))
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).commits == 1
    repository.git("worktree", "add", "--detach", str(folders.workspaces / ".ws-1.merge"))
    await workspaces.remove("ws-1", workspace, str(made.path))
    assert repository.worktrees() == 1
    assert list(folders.workspaces.iterdir()) == []


async def test_no_hook_of_the_repository_is_run(workspaces: RealWorkspaces, repository: Tree) -> None:
    ran = repository.path.parent / "ran"
    hooks = (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-merge-commit",
        "reference-transaction",
    )
    for name in hooks:
        hook = repository.path / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {ran}\nexit 1\n")
        hook.chmod(0o755)
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    await workspaces.plan_merge("ws-1", workspace, str(made.path))
    await workspaces.merge("ws-1", workspace, str(made.path))
    await workspaces.remove("ws-1", workspace, str(made.path))
    assert not ran.exists()


async def test_an_environment_that_a_hook_has_left_does_not_confuse_it(
    workspaces: RealWorkspaces, repository: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = make_repository(tmp_path / "another")
    state = another.state()
    with monkeypatch.context() as hook:
        hook.setenv("GIT_DIR", str(another.path / ".git"))
        hook.setenv("GIT_WORK_TREE", str(another.path))
        hook.setenv("GIT_INDEX_FILE", str(another.path / ".git" / "index"))
        hook.setenv("GIT_PREFIX", "deep/")
        workspace = worktree_of(repository)
        made = await prepare(workspaces, workspace)
        made.write("new.py", "new")
        await workspaces.plan_merge("ws-1", workspace, str(made.path))
        await workspaces.merge("ws-1", workspace, str(made.path))
    assert repository.read("new.py") == "new"
    assert another.state() == state


async def test_a_definition_without_a_full_path_is_merged_after_a_crash(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    workspace = Workspace(kind=WorkspaceKind.WORKTREE, path="project")
    made = Tree(await workspaces.prepare("ws-1", workspace, str(repository.path.parent)))
    made.write("new.py", "new")
    after = RealWorkspaces(folders)
    await after.plan_merge("ws-1", workspace, str(made.path))
    await after.merge("ws-1", workspace, str(made.path))
    await RealWorkspaces(folders).remove("ws-1", workspace, str(made.path))
    assert repository.read("new.py") == "new"
    assert not repository.has_branch(BRANCH)


async def test_settings_of_a_careful_user_do_not_keep_it_from_working(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    for name, value in {
        "safe.bareRepository": "explicit",
        "commit.gpgSign": "true",
        "merge.ff": "only",
        "merge.autoStash": "true",
        "diff.relative": "true",
        "user.useConfigOnly": "true",
        "core.quotePath": "true",
        "rerere.enabled": "true",
    }.items():
        repository.git("config", "--global", name, value)
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("ä.py", "new")
    repository.write("README", "being edited\n")
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).files == ("ä.py",)
    await workspaces.merge("ws-1", workspace, str(made.path))
    await workspaces.remove("ws-1", workspace, str(made.path))
    assert repository.read("ä.py") == "new"
    assert repository.git("status", "--porcelain") == "M README"


async def test_work_beside_a_database_within_the_repository_is_kept_apart(repository: Tree) -> None:
    workspaces = RealWorkspaces(Folders(repository.path / "understudy.db"))
    workspace = worktree_of(repository)
    made = await prepare(workspaces, workspace)
    made.write("new.py", "new")
    assert (await workspaces.plan_merge("ws-1", workspace, str(made.path))).files == ("new.py",)
    await workspaces.merge("ws-1", workspace, str(made.path))
    await workspaces.remove("ws-1", workspace, str(made.path))
    assert repository.files("main") == ["README", "code.py", "new.py"]
    assert repository.git("status", "--porcelain") == ""
