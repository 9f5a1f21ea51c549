"""The first steps: a file to start from, and a shell that completes ids."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.databases import failed_workstream, make
from tests.integration.cli.shell import Shell
from tests.integration.cli.test_commands import COMMAND
from understudy.runtime import load


def test_the_first_file_is_sound(tmp_path: Path) -> None:
    file, shell = tmp_path / "mine.yaml", Shell(tmp_path / "none.db")
    assert shell("init", str(file)).out == f"{file} is written; run it with: understudy run {file}\n"
    assert shell("validate", str(file)).out == f"{file}: sound, 3 tasks\n"
    definition = load(file)
    assert definition.tools["say"].retry.max_attempts == 3
    assert definition.tasks[0].checks


def test_a_file_that_is_there_is_written_over_only_when_forced(tmp_path: Path) -> None:
    file, shell = tmp_path / "mine.yaml", Shell(tmp_path / "none.db")
    file.write_text("mine")
    said = shell("init", str(file))
    assert (said.code, file.read_text()) == (2, "mine")
    assert "say --force to write over it" in said.err
    assert shell("init", str(file), "--force").code == 0
    assert file.read_text() != "mine"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("beginning") / "state.db", failed_workstream(), "failed")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("show fa", ["failed"]),
        ("reset failed/", ["failed/build", "failed/fix"]),
        ("explain failed/f", ["failed/fix"]),
        ("show x", []),
    ],
)
def test_the_shell_completes_ids_from_the_database(database: Path, typed: str, offered: list[str]) -> None:
    assert complete(typed, UNDERSTUDY_DB=str(database)) == offered


def test_the_shell_completes_from_the_database_that_is_named(database: Path) -> None:
    assert complete(f"show --db {database} fa") == ["failed"]


def test_completion_is_silent_where_there_is_no_database(tmp_path: Path) -> None:
    assert complete("show fa", UNDERSTUDY_DB=str(tmp_path / "none.db")) == []


def complete(typed: str, **environment: str) -> list[str]:
    """As bash asks for it."""
    line = f"understudy {typed}"
    variables = {
        **os.environ, **environment,
        "_UNDERSTUDY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1),
    }  # fmt: skip
    finished = subprocess.run([COMMAND], env=variables, capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    return finished.stdout.split()
