"""The examples that are files, run as a reader would run them: with the command, in a folder of their own."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.engine.world import HANG_S
from tests.meta.house import ROOT
from understudy.runtime.definition import load

BIN = Path(sys.executable).parent
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", ".state", "dist")


class Ran:
    """One run of the command, told as JSON."""

    def __init__(self, finished: "subprocess.CompletedProcess[str]") -> None:
        self.code = finished.returncode
        self.complaint = finished.stderr
        self._told: list[dict[str, Any]] = [json.loads(line) for line in finished.stdout.splitlines()]

    @property
    def end(self) -> dict[str, Any]:
        return self._told[-1]

    def states(self, entity: str, name: str) -> list[str]:
        """What a record has gone through, by the end of its id."""
        return [each["to_state"] for each in self._moves(entity, name)]

    def reasons(self, entity: str, name: str, state: str) -> list[str]:
        return [each["reason"] for each in self._moves(entity, name) if each["to_state"] == state]

    def lines(self, task: str) -> list[str]:
        return [each["line"] for each in self._told if each["type"] == "output" and each["task_id"].endswith(task)]

    def place(self, task: str, state: str) -> int:
        """The sequence of a move, to compare with others."""
        return next(int(each["sequence"]) for each in self._moves("task", task) if each["to_state"] == state)

    def _moves(self, entity: str, name: str) -> list[dict[str, Any]]:
        moves = [each for each in self._told if each["type"] == "transition" and each["entity"] == entity]
        return [each for each in moves if each["record_id"].endswith(name)]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=LEFT_BEHIND))


def run(file: Path, *options: str) -> Ran:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command: list[str | Path] = [BIN / "understudy", "run", file, "--json", "--db", file.parent / "state.db", *options]
    finished = subprocess.run(
        command, cwd=file.parent, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    return Ran(finished)


def git(repository: Path, *arguments: str) -> str:
    command: list[str | Path] = ["git", "-C", repository, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_two_agents_are_merged_and_the_flaky_one_waits_for_its_breaker(examples: Path) -> None:
    shop = examples / "agents" / ".state" / "shop"
    shop.mkdir(parents=True)
    (shop / "of-an-earlier-run").touch()
    ran = run(examples / "agents.yaml")
    assert (ran.code, ran.end["state"]) == (0, "completed"), ran.complaint
    assert ran.states("breaker", "coder") == ["closed", "open", "half_open", "closed"]
    assert ran.states("task", "/discount").count("running") == 4  # three refusals, and the probe
    assert ran.states("task", "/guide").count("running") == 1
    started = [ran.place(f"/{task}", "running") for task in ("discount", "tests")]
    assert max(started) < min(ran.place(f"/{task}", "completed") for task in ("discount", "tests"))  # beside each other
    assert len(git(shop, "log", "--merges", "--format=%s", "main").splitlines()) == 2
    assert git(shop, "ls-files").split() == [
        ".gitignore", "README.md", "prices.py", "test_discount.py", "test_total.py",
    ]  # fmt: skip
    assert (git(shop, "status", "--porcelain"), git(shop, "branch", "--format=%(refname:short)")) == ("", "main\n")
    assert ran.lines("/test")[-1] == "OK"


def test_the_build_packages_what_was_linted_and_tested(examples: Path) -> None:
    ran = run(examples / "build.yaml")
    assert (ran.code, ran.end["state"]) == (0, "completed"), ran.complaint
    before = [ran.place(f"/{task}", "completed") for task in ("lint", "test")]
    assert max(before) < ran.place("/package", "running")
    artefact, text = examples / "project" / "dist" / "words.pyz", examples / "text"
    assert ran.lines("/package") == [str(artefact.stat().st_size)]
    text.write_text("to be or not to be")
    said = subprocess.run([sys.executable, artefact, text], capture_output=True, text=True, check=True).stdout
    assert said.split()[:4] == ["2", "to", "2", "be"]


def test_a_build_whose_code_is_bad_packages_nothing(examples: Path) -> None:
    counting = examples / "project" / "source" / "words" / "counting.py"
    counting.write_text(counting.read_text() + "\n\tx = 1\n")
    ran = run(examples / "build.yaml")
    assert (ran.code, ran.end["state"]) == (1, "failed")
    assert ran.states("task", "/package")[-1] == "skipped"
    assert not (examples / "project" / "dist").exists()


def test_the_scraper_gives_a_server_the_time_that_it_asks_for(examples: Path) -> None:
    ran = run(examples / "scrape.yaml", "--param", f"port={free_port()}")
    assert (ran.code, ran.end["state"]) == (0, "completed"), ran.complaint
    waits = [reason for page in range(6) for reason in ran.reasons("task", f"/page.{page}", "retrying")]
    assert len(waits) == 3
    assert all(reason.startswith("in 2 s, after: 503 Service Unavailable") for reason in waits)
    assert ran.lines("/summary") == ["2100 words on 6 pages"]
    assert json.loads(ran.lines("/server")[-1]) == {"served": 6, "refused": 3}


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*/*.yaml")), ids=lambda path: path.name)
def test_the_files_that_examples_run_are_sound(file: Path) -> None:
    load(file)
