"""What is installed is what is on disk, and it runs in an environment that has nothing else."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.meta.house import FLOORS, ROOT, sources


def run(*command: str | Path) -> str:
    finished = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".")
    [path] = folder.glob("understudy-*.whl")
    return path


def test_the_package_list_is_what_is_on_disk() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = {path.parent.relative_to(ROOT) for path in sources(*FLOORS)}
    assert sorted(project["tool"]["setuptools"]["packages"]) == sorted(
        ".".join(("understudy", *folder.parts)) for folder in folders
    )


def test_the_wheel_holds_every_file_of_the_house(wheel: Path) -> None:
    on_disk = {
        f"understudy/{path.relative_to(ROOT)}"
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("understudy-")}
    assert packed == on_disk


def test_the_wheel_installs_into_an_empty_environment_and_its_command_runs(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    constraints = ROOT / ".ci" / "constraints.txt"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, wheel)
    assert run(tmp_path / "venv" / "bin" / "understudy", "--version").startswith("understudy ")
    where = run(python, "-c", "import understudy.actors.kernel as k; print(k.__file__)")
    assert str(tmp_path) in where
