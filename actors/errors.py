"""The root of every error that understudy raises, sorted by who is at fault.

A message says what happened, to which record or actor, and what to do next.
"""


class UnderstudyError(Exception):
    """Every error of this project."""


class MisuseError(UnderstudyError):
    """The caller asked for something that the interface forbids."""


class InternalError(UnderstudyError):
    """An invariant of understudy itself does not hold: a bug to report."""
