"""Whether a file is there. In a closed place no path leads out of it, by dots or by links, and nothing is told of what
is outside.
"""

import os
from pathlib import Path

from understudy.actors.definition.problems import did_you_mean


def find_fault_of_file(path: str, directory: Path, is_closed: bool) -> str | None:
    """What is wrong, if something is. A folder is as good as a file."""
    if not path:
        return "the path is empty"
    if "\0" in path:
        return f"{path!r} holds a NUL character, which no path can"
    whole = directory / path
    if is_closed and not Path(os.path.realpath(whole)).is_relative_to(os.path.realpath(directory)):
        return f"{path} leads out of the workspace"
    try:
        whole.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _missing(path, whole)
    except OSError as error:
        return f"{path} cannot be looked at: {error.strerror}"
    return None


def _missing(path: str, whole: Path) -> str:
    try:
        beside = [each.name for each in whole.parent.iterdir()]
    except OSError:
        return f"{path} is not there: neither is its folder {Path(path).parent}"
    if whole.name in beside:
        return f"{path} is a link to what is not there"
    hint = did_you_mean(whole.name, beside)
    return f"{path} is not there ({hint})" if hint else f"{path} is not there"
