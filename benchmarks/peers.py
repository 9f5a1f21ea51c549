"""The peers of the engine, each in an environment of its own, which is made when it is first needed.

One that cannot be installed is named and left out; the others are measured.
"""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.figures import sample

VENVS = Path(__file__).with_name("data") / "venvs"
INSTALL_S_MAX = 300.0
PACKAGES = {
    "dbos": ("dbos==3.3.0", "sqlalchemy==2.1.8"),
    "flexiq": ("flexiq==2.1.0",),
    "huey": ("huey==3.5.4",),
}
ENVIRONMENT_OF = {"DBOS": "dbos", "DBOS with WAL": "dbos", "FlexiQ": "flexiq", "huey": "huey"}

Taker = partial[dict[str, float]]


def takers(console: Console, work: str) -> dict[str, Taker]:
    """What takes a sample of each peer that can be had, by its name."""
    interpreters = {name: _interpreter(console, name) for name in PACKAGES}
    return {
        peer: partial(sample, "benchmarks.peer_programs", work, peer, python=str(python))
        for peer, environment in ENVIRONMENT_OF.items()
        if (python := interpreters[environment]) is not None
    }


def _interpreter(console: Console, name: str) -> Path | None:
    """The interpreter of a peer's environment, at the versions above. None where it cannot be made."""
    folder = VENVS / name
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join(PACKAGES[name])
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    console.print(f"[dim]installing {' '.join(PACKAGES[name])} into {folder}[/dim]")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        for command in _commands(folder, python, PACKAGES[name]):
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSTALL_S_MAX)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        console.print(f"{name} cannot be installed, so it is left out: {said[-1] if said else error}")
        shutil.rmtree(folder, ignore_errors=True)
        return None
    stamp.write_text(wanted)
    return python


def _commands(folder: Path, python: Path, packages: tuple[str, ...]) -> list[list[str]]:
    uv = shutil.which("uv")
    if uv is not None:
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *packages],
        ]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    return [[sys.executable, "-m", "venv", str(folder)], [*pip, *packages]]
