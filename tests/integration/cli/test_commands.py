"""The command as users run it: what it prints, where, and how it exits."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

COMMAND = Path(sys.executable).with_name("understudy")
SOUND = "id: a\ntasks:\n  - {id: one, call: 'm:f'}\n  - {id: two, call: 'm:f', after: [one]}\n"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.yaml"
    path.write_text(SOUND)
    return path


@pytest.fixture
def unsound(tmp_path: Path) -> Path:
    path = tmp_path / "unsound.yaml"
    path.write_text(SOUND.replace("after: [one]", "aftr: [one]"))
    return path


@pytest.mark.parametrize("entity", ["task", "workstream", "worker", "breaker"])
def test_lifecycle_as_json_has_states_and_transitions(entity: str) -> None:
    shown = json.loads(run("lifecycle", entity, "--format", "json").stdout)
    assert shown["entity"] == entity
    for transition in shown["transitions"]:
        assert {"from", "to", "trigger"} <= set(transition)
        assert transition["to"] in shown["states"]


def test_lifecycle_in_a_documents_words() -> None:
    assert "StepsInProcess --> EvaluatingResults" in run("lifecycle", "--as", "tasker", "--format", "mermaid").stdout
    refused = run("lifecycle", "worker", "--as", "pipeline")
    assert refused.returncode == 2
    assert refused.stderr == "understudy: pipeline does not know a worker; it knows workstream, task, breaker\n"


def test_lifecycle_table_names_every_trigger() -> None:
    shown = run("lifecycle").stdout
    assert "retry_delay_elapsed" in shown
    assert "health_check_recovered" in shown


def test_validate_says_what_is_sound(sound: Path) -> None:
    finished = run("validate", sound)
    assert (finished.returncode, finished.stdout) == (0, f"{sound}: sound, 2 tasks\n")


def test_validate_shows_a_problem_as_a_compiler_does(sound: Path, unsound: Path) -> None:
    finished = run("validate", sound, unsound)
    assert finished.returncode == 5
    assert finished.stderr == (
        f"{unsound}:4:28: $.tasks[1].aftr: unknown field 'aftr'\n"
        "      - {id: two, call: 'm:f', aftr: [one]}\n"
        "                               ^\n"
        "    did you mean 'after'?\n"
        "1 problem\n"
    )


def test_validate_as_json_lists_problems(unsound: Path) -> None:
    finished = run("validate", "--json", unsound)
    assert finished.returncode == 5
    [problem] = json.loads(finished.stdout)
    assert (problem["path"], problem["line"], problem["suggestion"]) == ("$.tasks[1].aftr", 4, "did you mean 'after'?")


def test_schema_knows_every_field_that_a_sound_file_uses(sound: Path) -> None:
    schema = json.loads(run("schema").stdout)
    data = msgspec.yaml.decode(sound.read_text())
    assert set(data) <= set(schema["$defs"]["Workstream"]["properties"])
    for task in data["tasks"]:
        assert set(task) <= set(schema["$defs"]["Task"]["properties"])


def test_the_published_schema_is_the_one_that_the_command_prints() -> None:
    published = Path(__file__).parents[3] / "docs" / "workstream.schema.json"
    assert run("schema").stdout == published.read_text()


@pytest.mark.parametrize(
    ("form", "part"), [("text", "   1  two  m:f  after one"), ("mermaid", "t0 --> t1"), ("dot", '"one" -> "two"')]
)
def test_graph_is_drawn(sound: Path, form: str, part: str) -> None:
    assert part in run("graph", sound, "--format", form).stdout


def test_graph_of_an_unsound_file_is_refused(unsound: Path) -> None:
    finished = run("graph", unsound)
    assert finished.returncode == 5
    assert "did you mean 'after'?" in finished.stderr


@pytest.mark.parametrize("text", ["", "{", "tasks: [\n", "tasks:\n  - 1\n  - {id: a, call: 'm:f', zzz: 1}\n"])
@pytest.mark.parametrize("ending", ["yaml", "json", "toml"])
def test_validate_never_ends_in_a_traceback(tmp_path: Path, text: str, ending: str) -> None:
    path = tmp_path / f"odd.{ending}"
    path.write_text(text)
    finished = run("validate", path)
    assert finished.returncode == 5
    assert "Traceback" not in finished.stderr
