"""The command in this process: what it printed, and how it exited. Quicker than a process for each question."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from understudy.runtime.cli.application import application


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Types commands about one database."""

    def __init__(self, database: Path) -> None:
        self.database = database

    def __call__(self, *words: str, typed: str | None = None) -> Said:
        environment = {"UNDERSTUDY_DB": str(self.database), "COLUMNS": "160", "NO_COLOR": "1"}
        result = CliRunner(env=environment).invoke(application, list(words), input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    def state(self, target: str) -> str:
        shown = self("show", target, "--json").data
        return str(shown["task" if "/" in target else "workstream"]["state"])
