"""What the README, the docs and the examples show is run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.house import ROOT
from understudy.runtime.definition import load

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text()), start=1)
]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("block", SHOWN)
def test_shown_code_runs(block: str, tmp_path: Path) -> None:
    script = tmp_path / "shown.py"
    script.write_text(block)
    finished = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    said = re.findall(r"# prints: (.*)", block)
    assert finished.stdout.splitlines() == said


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    finished = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout


def test_the_readme_shows_code() -> None:
    assert BLOCK.findall((ROOT / "README.md").read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_example_is_a_sound_definition(example: Path) -> None:
    load(example)
