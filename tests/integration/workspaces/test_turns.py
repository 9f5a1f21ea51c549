"""Workstreams that share a repository: they work at once, and merge one after the other."""

import asyncio

import anyio
import anyio.lowlevel
import pytest

from tests.integration.workspaces.repositories import Tree, worktree_of
from understudy.actors.ports.workspaces import MergePlan, WorkspaceError
from understudy.adapters.folders import Folders
from understudy.adapters.workspaces.merging import land, try_merge
from understudy.adapters.workspaces.places import RealWorkspaces
from understudy.adapters.workspaces.repository import Repository

HANG_S = 60
IDS = tuple(f"ws-{number}" for number in range(8))


async def make_work(workspaces: RealWorkspaces, repository: Tree, workstream_id: str, branch: str | None = None) -> str:
    path = await workspaces.prepare(workstream_id, worktree_of(repository, branch), None)
    Tree(path).write(f"{workstream_id}.py", workstream_id)
    return path


async def start_plan(
    workspaces: RealWorkspaces, repository: Tree, workstream_id: str, path: str
) -> "asyncio.Task[MergePlan]":
    """It has put everything into its branch, and needs only its turn."""
    before = repository.tip(f"understudy/{workstream_id}")
    planning = asyncio.create_task(workspaces.plan_merge(workstream_id, worktree_of(repository), path))
    with anyio.fail_after(HANG_S):
        while repository.tip(f"understudy/{workstream_id}") == before:
            await anyio.lowlevel.checkpoint()
    return planning


async def merge_another(workspaces: RealWorkspaces, repository: Tree) -> None:
    path = await make_work(workspaces, repository, "another")
    with anyio.fail_after(HANG_S):
        await workspaces.plan_merge("another", worktree_of(repository), path)
        await workspaces.merge("another", worktree_of(repository), path)
    assert repository.read("another.py") == "another"


async def test_eight_workstreams_at_once_are_all_merged(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)

    async def live(workstream_id: str) -> str:
        path = await make_work(workspaces, repository, workstream_id)
        plan = await workspaces.plan_merge(workstream_id, workspace, path)
        assert plan.files == (f"{workstream_id}.py",)
        commit = await workspaces.merge(workstream_id, workspace, path)
        await workspaces.remove(workstream_id, workspace, path)
        return commit

    with anyio.fail_after(HANG_S):
        commits = await asyncio.gather(*map(live, IDS))
    assert repository.files("main") == sorted(["README", "code.py", *(f"{each}.py" for each in IDS)])
    assert set(repository.git("log", "--first-parent", "--format=%H", "-8").splitlines()) == set(commits)
    assert repository.git("status", "--porcelain") == ""
    assert repository.worktrees() == 1
    assert repository.git("branch", "--list", "understudy/*") == ""


async def test_two_processes_that_merge_at_once_lose_nothing(folders: Folders, repository: Tree) -> None:
    repository.git("branch", "release")
    workspace = worktree_of(repository, "release")
    processes = {each: RealWorkspaces(folders) for each in IDS[:2]}
    paths = {each: await make_work(processes[each], repository, each, "release") for each in processes}
    for each, workspaces in processes.items():
        await workspaces.plan_merge(each, workspace, paths[each])
    await asyncio.gather(*(processes[each].merge(each, workspace, paths[each]) for each in processes))
    assert repository.files("release") == ["README", "code.py", "ws-0.py", "ws-1.py"]


async def test_nobody_plans_between_the_plan_and_the_merge_of_another(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    workspace = worktree_of(repository)
    first, second = [await make_work(workspaces, repository, each) for each in IDS[:2]]
    Tree(first).write("code.py", "one = 2\n")
    Tree(second).write("code.py", "one = 3\n")
    await workspaces.plan_merge("ws-0", workspace, first)
    waiting = await start_plan(workspaces, repository, "ws-1", second)
    await workspaces.merge("ws-0", workspace, first)
    with anyio.fail_after(HANG_S):
        assert (await waiting).conflicts == ("code.py",)


@pytest.mark.parametrize("target", ["main", "release"], ids=["checked out", "not checked out"])
async def test_a_target_is_only_moved_from_where_it_was_seen(folders: Folders, repository: Tree, target: str) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.git("switch", "--create", "work")
    work = repository.commit("work.py", "")
    repository.git("switch", "main")
    here = Repository(repository.path / ".git")
    attempt = await try_merge(here, work, before, "a merge", folders.workspaces / ".scratch")
    meanwhile = repository.commit("meanwhile.py", "")
    repository.git("branch", "release")
    assert attempt.commit is not None
    assert await land(here, target, before, attempt.commit) is False
    assert repository.tip(target) == meanwhile


async def test_whoever_plans_twice_does_not_wait_for_itself(workspaces: RealWorkspaces, repository: Tree) -> None:
    workspace = worktree_of(repository)
    path = await make_work(workspaces, repository, "ws-0")
    with anyio.fail_after(HANG_S):
        for commits in (1, 2):
            Tree(path).write("counted", str(commits))
            assert (await workspaces.plan_merge("ws-0", workspace, path)).commits == commits
        await workspaces.merge("ws-0", workspace, path)
    assert repository.read("counted") == "2"


async def test_a_plan_that_is_given_up_lets_others_merge(workspaces: RealWorkspaces, repository: Tree) -> None:
    path = await make_work(workspaces, repository, "ws-0")
    await workspaces.plan_merge("ws-0", worktree_of(repository), path)
    workspaces.let_go("ws-0")
    workspaces.let_go("ws-0")
    await merge_another(workspaces, repository)


async def test_a_plan_that_is_given_up_while_it_waits_keeps_nobody(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    first, second = [await make_work(workspaces, repository, each) for each in IDS[:2]]
    await workspaces.plan_merge("ws-0", worktree_of(repository), first)
    waiting = await start_plan(workspaces, repository, "ws-1", second)
    workspaces.let_go("ws-1")
    workspaces.let_go("ws-0")
    with anyio.fail_after(HANG_S):
        await waiting
    await merge_another(workspaces, repository)


async def test_a_plan_that_is_cancelled_while_it_waits_keeps_nobody(
    workspaces: RealWorkspaces, repository: Tree
) -> None:
    first, second = [await make_work(workspaces, repository, each) for each in IDS[:2]]
    await workspaces.plan_merge("ws-0", worktree_of(repository), first)
    waiting = await start_plan(workspaces, repository, "ws-1", second)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    workspaces.let_go("ws-0")
    await merge_another(workspaces, repository)


async def test_a_plan_that_is_cancelled_while_it_is_tried_leaves_nothing(
    workspaces: RealWorkspaces, folders: Folders, repository: Tree
) -> None:
    path = await make_work(workspaces, repository, "ws-0")
    trying = asyncio.create_task(workspaces.plan_merge("ws-0", worktree_of(repository), path))
    with anyio.fail_after(HANG_S):
        while not (folders.workspaces / ".ws-0.merge").exists():
            await anyio.lowlevel.checkpoint()
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    assert [each.name for each in folders.workspaces.iterdir()] == ["ws-0"]
    assert repository.worktrees() == 2
    await merge_another(workspaces, repository)


async def test_a_merge_that_fails_lets_others_merge(workspaces: RealWorkspaces, repository: Tree) -> None:
    path = await make_work(workspaces, repository, "ws-0")
    repository.write("ws-0.py", "by the user")
    await workspaces.plan_merge("ws-0", worktree_of(repository), path)
    with pytest.raises(WorkspaceError, match="main could not be moved"):
        await workspaces.merge("ws-0", worktree_of(repository), path)
    await merge_another(workspaces, repository)


async def test_a_plan_with_conflicts_lets_others_merge(workspaces: RealWorkspaces, repository: Tree) -> None:
    path = await make_work(workspaces, repository, "ws-0")
    repository.commit("ws-0.py", "by the user")
    assert (await workspaces.plan_merge("ws-0", worktree_of(repository), path)).conflicts == ("ws-0.py",)
    await merge_another(workspaces, repository)


async def test_a_plan_that_fails_lets_others_merge(workspaces: RealWorkspaces, repository: Tree) -> None:
    path = await make_work(workspaces, repository, "ws-0")
    await workspaces.plan_merge("ws-0", worktree_of(repository), path)
    Tree(path).git("checkout", "--detach")
    with pytest.raises(WorkspaceError, match="is not on understudy/ws-0"):
        await workspaces.plan_merge("ws-0", worktree_of(repository), path)
    await merge_another(workspaces, repository)
