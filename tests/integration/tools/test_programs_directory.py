"""Where programs run: in their place, and where that is closed nowhere else."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.tools.program_place import ProgramPlace, running_programs
from understudy.actors.ports.workspaces import Place

TRAVERSALS = [
    "..", "../", "../..", "../outside", "./../outside", "inner/../../outside", "inner/../..", "inner/./../../outside",
    "/", "/etc", "/tmp", "//etc", "/./etc", "/proc/self/root", "/proc/self/cwd/..", "../workspace-twin",
    "link", "link/", "link/deeper", "link/../outside", "./link", "inner/link", "inner/../link", "chain", "loop",
    "..\\outside", "%2e%2e/outside", "..%2foutside", "....//outside", "~", "~root", "$HOME", "file:///etc", "\0", "inner\0/..",
    "..\n", "\u2024\u2024/outside", "x" * 300, "missing", "file",
]  # fmt: skip


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ProgramPlace]:
    async with running_programs(tmp_path) as made:
        yield made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with links that lead out of it."""
    found = tmp_path / "workspace"
    for name in ("workspace/inner", "outside/deeper", "workspace-twin"):
        (tmp_path / name).mkdir(parents=True)
    (found / "file").write_text("")
    (found / "link").symlink_to(tmp_path / "outside")
    (found / "inner" / "link").symlink_to("../../outside")
    (found / "chain").symlink_to("link")
    (found / "loop").symlink_to("loop")
    (found / "within").symlink_to("inner")
    return found


@pytest.mark.parametrize("payload", TRAVERSALS, ids=ascii)
async def test_no_directory_leads_out_of_a_closed_place(place: ProgramPlace, workspace: Path, payload: str) -> None:
    report = await place.script("pwd; touch canary", cwd=payload, place=Place(str(workspace), is_closed=True))
    assert report.permanent
    assert report.error
    assert list(workspace.parent.rglob("canary")) == []


async def test_the_refusal_names_the_directory_and_the_workspace(place: ProgramPlace, workspace: Path) -> None:
    closed = Place(str(workspace), is_closed=True)
    refused = await place.run("pwd", cwd="link", place=closed)
    assert refused.error == f"'link' leads out of the workspace {workspace}: name a directory in it"
    missing = await place.run("pwd", cwd="missing", place=closed)
    assert missing.error == f"there is no directory {workspace}/missing to run 'pwd' in"


@pytest.mark.parametrize(
    ("cwd", "found"), [(None, ""), (".", ""), ("inner", "inner"), ("inner/..", ""), ("within", "inner")]
)
async def test_a_program_runs_in_its_place_or_below(
    place: ProgramPlace, workspace: Path, cwd: str | None, found: str
) -> None:
    report = await place.run("pwd", "-P", cwd=cwd, place=Place(str(workspace), is_closed=True))
    assert report.output == str(workspace / found)


async def test_a_closed_place_may_itself_be_reached_through_a_link(place: ProgramPlace, workspace: Path) -> None:
    other = workspace.parent / "other"
    other.symlink_to(workspace)
    assert (await place.run("pwd", "-P", cwd="inner", place=Place(str(other), is_closed=True))).error is None


async def test_an_open_place_may_be_left(place: ProgramPlace, workspace: Path) -> None:
    for cwd, found in (
        ("../outside", "outside"),
        (str(workspace.parent / "outside"), "outside"),
        ("inner", "workspace/inner"),
    ):
        report = await place.run("pwd", "-P", cwd=cwd, place=Place(str(workspace)))
        assert report.output == str(workspace.parent / found)


async def test_without_a_place_it_is_the_current_directory(
    place: ProgramPlace, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    assert (await place.run("pwd", "-P")).output == os.path.realpath(workspace)
    assert (await place.run("pwd", "-P", cwd="inner")).output == os.path.realpath(workspace / "inner")


async def test_a_program_named_by_a_relative_path_is_looked_for_where_it_runs(
    place: ProgramPlace, workspace: Path
) -> None:
    (workspace / "tool").write_text("#!/bin/sh\necho mine\n")
    (workspace / "tool").chmod(0o700)
    assert (await place.run("./tool", place=Place(str(workspace)))).output == "mine"
