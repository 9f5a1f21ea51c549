"""Style as a test: sizes, names, openings, dead files, and who imports what. Each rule is shown to bite."""

import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.meta import house

Rule = Callable[[Path], Iterator[str]]


def offences(rule: Rule, *folders: str) -> list[str]:
    return [offence for path in house.sources(*folders) for offence in rule(path)]


def entry_points() -> set[str]:
    project = tomllib.loads((house.ROOT / "pyproject.toml").read_text())
    return {target.split(":")[0] for target in project["project"]["scripts"].values()}


@pytest.mark.parametrize(
    "rule", [house.too_long, house.badly_named, house.imported_twice], ids=lambda rule: rule.__name__
)
def test_every_file_keeps_the_rule(rule: Rule) -> None:
    assert offences(rule) == []


def test_every_module_of_the_house_says_what_it_owns() -> None:
    assert offences(house.badly_opened, *house.FLOORS) == []


def test_nothing_in_the_house_can_unpickle() -> None:
    assert offences(house.unsafe_to_decode, *house.FLOORS) == []


def test_actors_import_nothing_but_the_standard_library_and_msgspec() -> None:
    assert offences(house.foreign_to_actors, "actors") == []


def test_no_module_is_dead() -> None:
    assert list(house.dead(entry_points() | house.PUBLIC)) == []


def test_the_top_level_holds_what_the_layout_names() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=house.ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.split("/")[0] for name in listed.splitlines()} - house.TOP_LEVEL == set()


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        (house.too_long, "long.py", "x = 1\n" * 351),
        (house.too_long, "function.py", "def f():\n" + "    x = 1\n" * 50),
        (house.badly_named, "utils.py", ""),
        (house.badly_opened, "silent.py", "x = 1\n"),
        (house.badly_opened, "chatty.py", '"""' + "a\n" * 9 + '"""\n'),
        (house.imported_twice, "plain.py", "import runtime\n"),
        (house.imported_twice, "partly.py", "from actors.kernel import Actor\n"),
        (house.unsafe_to_decode, "unsafe.py", "import pickle\n"),
        (house.foreign_to_actors, "foreign.py", "import anyio\n"),
        (house.foreign_to_actors, "upwards.py", "from understudy.runtime import cli\n"),
    ],
)
def test_rule_finds_its_offence(tmp_path: Path, rule: Rule, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert len(list(rule(path))) >= 1


def test_dead_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "alive.py").write_text("")
    (tmp_path / "actors" / "dead.py").write_text("from understudy.actors import alive\n")
    assert [offence.split("/")[-1] for offence in house.dead(set(), tmp_path)] == ["dead.py is imported by nobody"]
