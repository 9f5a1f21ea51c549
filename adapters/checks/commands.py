"""Checks that run a program: a command, and imports in a fresh Python or Node.js.

No shell, no secrets in the environment, and nothing that goes on running when the check is over. Imports leave no trace
in the place.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from understudy.actors.ports.checks import Subject
from understudy.adapters.tools.running import describe_end, run_to_end
from understudy.adapters.tools.secrets import Secrets

GRACE_S: Final = 2.0  # between TERM and KILL
TAIL_BYTES: Final = 2**15
LINES_SHOWN: Final = 20
SHOWN_MAX: Final = 2_000  # characters
_PYTHON: Final = "import importlib, sys; sys.path.insert(0, ''); importlib.import_module(sys.argv[1])"
# A package may lie in a folder above, where Node.js finds it, or be a link. A path stays within a closed place.
_NODE: Final = """
import { existsSync, realpathSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
const [, name, isClosed] = process.argv;
const root = realpathSync(".") + sep;
function leadsOut(url) {
    const isPath = /^\\.{0,2}\\//.test(name) || URL.canParse(name);
    if (!url.startsWith("file:") || (!isPath && url.includes("/node_modules/"))) return false;
    const path = fileURLToPath(url);
    return !path.startsWith(root) || (existsSync(path) && !realpathSync(path).startsWith(root));
}
try {
    if (isClosed && leadsOut(import.meta.resolve(name))) throw `${name} leads out of the workspace`;
    await import(name);
    process.exit(0);
} catch (error) {
    console.error(String(error));
    process.exit(1);
}
"""


class Tail:
    """The last of what a program has written."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kept = bytearray()
        self._is_cut = False

    def hear(self, chunk: bytes, _is_stderr: bool) -> None:
        self._kept += chunk
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]
            self._is_cut = True

    def hear_errors(self, chunk: bytes, is_stderr: bool) -> None:
        if is_stderr:
            self.hear(chunk, is_stderr)

    def lines(self, most: int = LINES_SHOWN) -> str:
        text = self._secrets.hide(self._kept.decode(errors="replace"))
        if self._is_cut:
            text = text[self._secrets.bytes_max :]  # there may be half a secret
        return "\n".join(text.rstrip().splitlines()[-most:])[-SHOWN_MAX:]


async def find_fault_of_command(argv: tuple[str, ...], subject: Subject, tail: Tail) -> str | None:
    code = await run_to_end(
        argv, directory=directory_of(subject), env=_environment(subject), grace_s=GRACE_S, heard=tail.hear
    )
    return None if code == 0 else _with_output(describe_end(code), tail.lines())


async def find_fault_of_python_import(name: str, subject: Subject, tail: Tail) -> str | None:
    directory = directory_of(subject)
    env = _environment(subject) | {"PYTHONDONTWRITEBYTECODE": "1"}
    argv = [_python_in(directory), "-c", _PYTHON, name]
    code = await run_to_end(argv, directory=directory, env=env, grace_s=GRACE_S, heard=tail.hear_errors)
    return None if code == 0 else tail.lines(1) or describe_end(code)


async def find_fault_of_js_import(name: str, subject: Subject, tail: Tail) -> str | None:
    node = shutil.which("node")
    if node is None:
        return "Node.js is not on PATH: install it"
    is_closed = subject.place is not None and subject.place.is_closed
    argv = [node, "--input-type=module", "-e", _NODE, "--", name, *(["closed"] if is_closed else [])]
    env, directory = _environment(subject), directory_of(subject)
    code = await run_to_end(argv, directory=directory, env=env, grace_s=GRACE_S, heard=tail.hear_errors)
    return None if code == 0 else tail.lines() or describe_end(code)


def directory_of(subject: Subject) -> Path:
    return Path.cwd() if subject.place is None else Path(subject.place.directory)


def _environment(subject: Subject) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in subject.secrets}
    return own | {"UNDERSTUDY_WORKSPACE": str(directory_of(subject))}


def _python_in(directory: Path) -> str:
    """The Python of the place, where it has one."""
    for name in (".venv", "venv"):
        path = directory / name / "bin" / "python"
        if os.access(path, os.X_OK):
            return str(path)
    return sys.executable


def _with_output(what: str, lines: str) -> str:
    return f"{what}:\n{lines}" if lines else what
