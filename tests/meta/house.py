"""What the meta tests know of the repository, and the rules they hold it to. Each rule answers with its offences."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = ("actors", "adapters", "runtime")
TOP_LEVEL = {
    *FLOORS, "tests", "examples", "benchmarks", "docs", "typings", ".ci",
    "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore",
}  # fmt: skip
PUBLIC = {  # for those who embed, or named in a text: nothing in the house imports them
    "understudy.adapters.sinks.transition_log",
    "understudy.adapters.stores.memory",
    "understudy.adapters.tools.child",  # what a worker process starts, by name
    "understudy.adapters.tools.gathering",  # what a map calls, by name
    "understudy.runtime.nesting",  # what a task in a file calls, by name
    "understudy.runtime.tuning",
}
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}
FILE_LINES_MAX, TEST_FILE_LINES_MAX, FUNCTION_LINES_MAX = 350, 500, 50
OPENING_LINES_MAX = 8


def sources(*folders: str, root: Path = ROOT) -> Iterator[Path]:
    for folder in folders or (*FLOORS, "tests", "examples", "benchmarks"):
        found = sorted((root / folder).rglob("*.py"))
        yield from (path for path in found if "data" not in path.relative_to(root).parts)  # what benchmarks leave


def too_long(path: Path) -> Iterator[str]:
    text = path.read_text()
    lines = text.count("\n")
    most = TEST_FILE_LINES_MAX if "tests" in path.parts else FILE_LINES_MAX
    if lines > most:
        yield f"{path} has {lines} lines, at most {most} are allowed"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno} {node.name} has {length} lines, at most {FUNCTION_LINES_MAX} are allowed"


def badly_named(path: Path) -> Iterator[str]:
    if path.stem.strip("_").lower() in BANNED_NAMES:
        yield f"{path} is named for nothing: say what it owns"


def badly_opened(path: Path) -> Iterator[str]:
    opening = ast.get_docstring(ast.parse(path.read_text()))
    if not opening:
        yield f"{path} does not say what it owns"
    elif opening.count("\n") + 1 > OPENING_LINES_MAX:
        yield f"{path} opens with more than {OPENING_LINES_MAX} lines"


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, and for `from a import b` both a and a.b, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def imported_twice(path: Path) -> Iterator[str]:
    for line, name in imports(path):
        if name.split(".")[0] in FLOORS:
            yield f"{path}:{line} imports {name}: say understudy.{name}, or every class is loaded twice"


def unsafe_to_decode(path: Path) -> Iterator[str]:
    for line, name in imports(path):
        if name.split(".")[0] in {"pickle", "marshal", "dill", "shelve", "cloudpickle"}:
            yield f"{path}:{line} imports {name}, which runs what it reads"


def foreign_to_actors(path: Path) -> Iterator[str]:
    for line, name in imports(path):
        first = name.split(".")[0]
        if first not in sys.stdlib_module_names and first != "msgspec" and not name.startswith("understudy.actors"):
            yield f"{path}:{line} imports {name}: actors know the standard library and msgspec"


def dead(entry_points: set[str], root: Path = ROOT) -> Iterator[str]:
    """Modules of the house that no other module of the house imports and no entry point names."""
    modules = {_module(path, root): path for path in sources(*FLOORS, root=root)}
    used = set(entry_points)
    for name, path in modules.items():
        used |= {imported for _, imported in imports(path) if imported != name}
    for name, path in modules.items():
        if path.name != "__init__.py" and name not in used:
            yield f"{path} is imported by nobody"


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(("understudy", *parts)).removesuffix(".__init__")
