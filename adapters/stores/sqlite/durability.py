"""How sure a commit is."""

from enum import StrEnum


class Durability(StrEnum):
    """What survives a loss of power: everything, or all but the last moments."""

    FULL = "full"
    NORMAL = "normal"
