"""Whether a file is there, and that no path leads out of a closed place."""

from pathlib import Path

import pytest

from tests.integration.checks.checked import fault, subject
from understudy.actors.definition import Check

OUTSIDE = "outside"
PAYLOADS = [
    "../outside/secret", "../../outside/secret", "./../outside/secret", "sub/../../outside/secret",
    "sub/../sub/../../outside/secret", "../place/../outside/secret", "..", "../", "../.", "sub/../..", "/", "//", "/etc/passwd",
    "//etc/passwd", "/etc/../etc/passwd", "sub//..//..//outside//secret", "../place-twin/secret", "../place-twin",
    "/proc/self/environ", "/proc/self/cwd/../outside/secret", "/dev/null", "../" * 50 + "etc/passwd",
    "link/secret", "link", "link/../outside/secret", "sub/link/secret", "chain/secret", "file-link", "to-root/etc/passwd",
    "missing/../../outside/secret", "link/missing", "../outside/missing", "{absolute}/secret", "{absolute}/missing",
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    outside = tmp_path / OUTSIDE
    outside.mkdir()
    (outside / "secret").write_text("")
    twin = tmp_path / "place-twin"
    twin.mkdir()
    (twin / "secret").write_text("")
    made = tmp_path / "place"
    (made / "sub").mkdir(parents=True)
    (made / "sub" / "app.py").write_text("")
    for name, target in {
        "link": outside, "sub/link": outside, "chain": Path("link"), "file-link": outside / "secret", "to-root": Path("/"),
        "inner": Path("sub"), "broken": Path("nowhere"), "circle": Path("circle"),
    }.items():  # fmt: skip
        (made / name).symlink_to(target)
    return made


@pytest.mark.parametrize("path", ["sub/app.py", "./sub/app.py", "sub/../sub/app.py", "sub", ".", "inner/app.py"])
async def test_what_is_there_passes(place: Path, path: str) -> None:
    assert await fault(Check(file_exists=path), subject(place)) is None


async def test_a_whole_path_into_the_place_passes(place: Path) -> None:
    assert await fault(Check(file_exists=str(place / "sub" / "app.py")), subject(place)) is None


async def test_a_place_may_itself_be_reached_by_a_link(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other-name").symlink_to(place)
    assert await fault(Check(file_exists="sub/app.py"), subject(tmp_path / "other-name")) is None


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_no_path_leads_out_of_a_closed_place(place: Path, payload: str) -> None:
    path = payload.format(absolute=place.parent / OUTSIDE)
    assert await fault(Check(file_exists=path), subject(place)) == f"{path} leads out of the workspace"


@pytest.mark.parametrize("path", ["../outside/secret", "link/secret", "/etc"])
async def test_an_open_place_may_be_left(place: Path, path: str) -> None:
    assert await fault(Check(file_exists=path), subject(place, is_closed=False)) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("sub/ap.py", "sub/ap.py is not there (did you mean 'app.py'?)"),
        ("sub/0", "sub/0 is not there"),
        ("no/app.py", "no/app.py is not there: neither is its folder no"),
        ("sub/app.py/more", "sub/app.py/more is not there: neither is its folder sub/app.py"),
        ("broken", "broken is a link to what is not there"),
        ("circle", "circle cannot be looked at: Too many levels of symbolic links"),
        ("..%2foutside%2fsecret", "..%2foutside%2fsecret is not there"),
        ("..\\outside\\secret", "..\\outside\\secret is not there"),
        ("~/x", "~/x is not there: neither is its folder ~"),
        ("$HOME", "$HOME is not there"),
        ("", "the path is empty"),
        ("a\0b", "'a\\x00b' holds a NUL character, which no path can"),
        ("x" * 300, f"{'x' * 300} cannot be looked at: File name too long"),
        ("a\udc80b", "a\\udc80b is not there"),
    ],
)
async def test_what_is_missing_is_told_with_a_hint(place: Path, path: str, expected: str) -> None:
    assert await fault(Check(file_exists=path), subject(place)) == expected


async def test_without_a_place_paths_start_where_the_process_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert await fault(Check(file_exists="sub/app.py"), subject()) is None
