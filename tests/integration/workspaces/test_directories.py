"""Directories: one for each workstream, and what was made there stays."""

import stat
from pathlib import Path

import pytest

from understudy.actors.definition import Workspace, WorkspaceKind
from understudy.actors.errors import MisuseError
from understudy.actors.ports.workspaces import WorkspaceError
from understudy.adapters.folders import Folders
from understudy.adapters.workspaces.places import RealWorkspaces

DIRECTORY = Workspace(kind=WorkspaceKind.DIRECTORY)


async def test_a_directory_is_made_beside_the_database_and_only_its_owner_may_read_it(
    workspaces: RealWorkspaces, folders: Folders
) -> None:
    path = Path(await workspaces.prepare("ws-1", DIRECTORY, None))
    assert path == folders.workspaces / "ws-1"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, folders.workspaces, folders.root)] == [0o700] * 3


async def test_a_directory_is_made_where_the_definition_says(workspaces: RealWorkspaces, tmp_path: Path) -> None:
    workspace = Workspace(kind=WorkspaceKind.DIRECTORY, path="out/here")
    assert await workspaces.prepare("ws-1", workspace, str(tmp_path)) == str(tmp_path / "out" / "here" / "ws-1")
    assert (tmp_path / "out" / "here" / "ws-1").is_dir()


async def test_a_relative_place_is_found_from_the_current_directory(
    workspaces: RealWorkspaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = Workspace(kind=WorkspaceKind.DIRECTORY, path="out")
    assert await workspaces.prepare("ws-1", workspace, None) == str(tmp_path / "out" / "ws-1")


async def test_a_directory_is_found_again_and_its_removal_leaves_the_result(workspaces: RealWorkspaces) -> None:
    path = await workspaces.prepare("ws-1", DIRECTORY, None)
    (Path(path) / "result").write_text("done")
    assert await workspaces.prepare("ws-1", DIRECTORY, None) == path
    await workspaces.remove("ws-1", DIRECTORY, path)
    assert (Path(path) / "result").read_text() == "done"


async def test_a_file_in_the_way_is_named(workspaces: RealWorkspaces, tmp_path: Path) -> None:
    (tmp_path / "ws-1").write_text("in the way")
    workspace = Workspace(kind=WorkspaceKind.DIRECTORY, path=".")
    with pytest.raises(WorkspaceError, match=r"workstream ws-1: .*File exists.*ws-1"):
        await workspaces.prepare("ws-1", workspace, str(tmp_path))


@pytest.mark.parametrize(
    "hostile", ["..", "../out", "a/b", "/etc", "", ".hidden", "-rf", "a\n", "a\0b", "ä", "a" * 129]
)
async def test_an_id_that_leads_elsewhere_is_refused(
    workspaces: RealWorkspaces, folders: Folders, hostile: str
) -> None:
    with pytest.raises(WorkspaceError, match="is no id that a workspace can be named for"):
        await workspaces.prepare(hostile, DIRECTORY, None)
    assert not folders.root.exists()


async def test_a_place_that_no_system_knows_is_refused(workspaces: RealWorkspaces) -> None:
    workspace = Workspace(kind=WorkspaceKind.DIRECTORY, path="a\0b")
    with pytest.raises(WorkspaceError, match="null"):
        await workspaces.prepare("ws-1", workspace, None)


@pytest.mark.parametrize("kind", [WorkspaceKind.DIRECTORY, WorkspaceKind.NONE])
async def test_only_a_worktree_is_merged(workspaces: RealWorkspaces, kind: WorkspaceKind) -> None:
    with pytest.raises(MisuseError, match=f"ws-1 has no worktree, but {kind}"):
        await workspaces.plan_merge("ws-1", Workspace(kind=kind), "somewhere")
    with pytest.raises(MisuseError, match=f"ws-1 has no worktree, but {kind}"):
        await workspaces.merge("ws-1", Workspace(kind=kind), "somewhere")


async def test_nobody_is_given_a_workspace_who_wants_none(workspaces: RealWorkspaces) -> None:
    with pytest.raises(MisuseError, match="ws-1 has no worktree, but none"):
        await workspaces.prepare("ws-1", Workspace(), None)
