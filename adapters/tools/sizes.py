"""How sizes are told to people."""

from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def too_large(size: int, bytes_max: int) -> str:
    return f"result {shown(size)} > {limit(bytes_max)}: return a file"


def left_out(size: int) -> str:
    """The line that stands where a text was shortened."""
    return f"[... {shown(size)} left out ...]"


def shown(size: float) -> str:
    unit = 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}"


def limit(size: int) -> str:
    return f"{size >> 20} MiB" if size % 2**20 == 0 else f"{size:,} B"
