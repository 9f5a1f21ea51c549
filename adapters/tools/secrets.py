"""Secrets are shown nowhere: their values, from the environment, are hidden in all that an attempt gives out.

A value is looked up when an attempt starts and kept no longer than it. Every secret of the workstream is hidden in
what an attempt gives out, used or not. What is shorter than four characters is not hidden: it would hide half the text.
"""

import os
import urllib.parse
from typing import Any, Final, cast

import msgspec

HIDDEN: Final = "***"
LENGTH_MIN: Final = 4
LINE_LENGTH_MIN: Final = 8  # of a secret's lines, which may be such as BEGIN
_PLAIN: Final = (type(None), bool, int, float)


class Secrets:
    """The secrets of one attempt."""

    def __init__(self, names: tuple[str, ...]) -> None:
        values = [os.environ.get(name) for name in names]
        shown = {form for value in values if value and len(value) >= LENGTH_MIN for form in _forms(value)}
        # The longer ones first: one secret may be a part of another.
        self._shown = sorted(shown, key=len, reverse=True)
        self._written = [each.encode(errors="surrogateescape") for each in self._shown]
        self.bytes_max = max(map(len, self._written), default=0)  # of what is hidden

    def hide(self, text: str) -> str:
        for each in self._shown:
            text = text.replace(each, HIDDEN)
        return text

    def hide_bytes(self, data: bytes) -> bytes:
        for each in self._written:
            data = data.replace(each, HIDDEN.encode())
        return data

    def place_to_cut(self, data: bytes | bytearray) -> int:
        """The last place where data that goes on may be cut in two, and no secret be cut with it. May be 0."""
        place = max(0, len(data) - max(0, self.bytes_max - 1))  # one that has only begun is behind it
        before = -1
        while place != before:
            before = place
            for each in self._written:
                found = data.find(each, max(0, place - len(each) + 1), place + len(each) - 1)
                place = place if found < 0 else min(place, found)
        return place

    def hide_in(self, value: Any) -> Any:
        """A value without secrets, however deep. What is not JSON becomes its text, where that holds one."""
        if not self._shown or isinstance(value, _PLAIN):
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self.hide_in(key): self.hide_in(each) for key, each in cast("Any", value).items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(each) for each in cast("Any", value)]
        text = repr(value)
        return value if self.hide(text) == text else self.hide(text)


def _forms(value: str) -> set[str]:
    """How a value may be written, and how each of its lines may be."""
    lines = [each.strip() for each in value.splitlines()]
    long_enough = [each for each in lines if len(each) >= LINE_LENGTH_MIN]
    return {form for each in (value, *long_enough) for form in _forms_of_one(each)}


def _forms_of_one(value: str) -> set[str]:
    """As it is, in the repr of a text with either quotes, in JSON, and in an address."""
    return {
        value,
        repr(value)[1:-1],
        repr(f'"{value}')[2:-1],
        msgspec.json.encode(value.encode(errors="replace").decode()).decode()[1:-1],
        urllib.parse.quote(os.fsencode(value), safe=""),
    }
