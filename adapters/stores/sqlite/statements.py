"""The statements of the store, read from queries.sql and by their names, and the numbered migrations."""

import re
from importlib.resources import files
from typing import Final

_FOLDER = files("understudy.adapters.stores.sqlite")
_NAMED = re.compile(r"^-- name: (\w+)\n((?:--[^\n]*\n)*)(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)

STATEMENTS: Final[dict[str, str]] = {
    name: text.strip() for name, _, text in _NAMED.findall(_FOLDER.joinpath("queries.sql").read_text())
}


def migrations() -> list[tuple[int, str]]:
    """Every migration with its number, in order."""
    found = [path for path in _FOLDER.joinpath("migrations").iterdir() if path.name.endswith(".sql")]
    return sorted((int(path.name.split("_")[0]), path.read_text()) for path in found)


SCHEMA_VERSION: Final = migrations()[-1][0]
