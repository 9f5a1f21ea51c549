import shutil
from pathlib import Path

import pytest

from tests.integration.workspaces.repositories import Tree, make_repository
from understudy.adapters.folders import Folders
from understudy.adapters.workspaces.places import RealWorkspaces


@pytest.fixture(autouse=True)
def own_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own settings."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "state" / "understudy.db")


@pytest.fixture
def workspaces(folders: Folders) -> RealWorkspaces:
    return RealWorkspaces(folders)


@pytest.fixture
def repository(tmp_path: Path) -> Tree:
    return make_repository(tmp_path / "project")
