"""A linter in a few lines: code must parse, have no tabs and no blanks at the end, and stay within a width."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

WIDTH_MAX = 120


def find_faults(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    try:
        ast.parse(text)
    except SyntaxError as error:
        yield f"{path}:{error.lineno}: {error.msg}"
    for number, line in enumerate(text.splitlines(), start=1):
        if "\t" in line or line != line.rstrip():
            yield f"{path}:{number}: a tab, or a blank at the end"
        if len(line) > WIDTH_MAX:
            yield f"{path}:{number}: {len(line)} characters"


if __name__ == "__main__":
    files = sorted(file for folder in sys.argv[1:] for file in Path(folder).rglob("*.py"))
    faults = [fault for file in files for fault in find_faults(file)]
    print(*faults, f"{len(files)} files, {len(faults)} faults", sep="\n")
    sys.exit(1 if faults else 0)
