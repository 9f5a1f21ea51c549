"""The words between a worker process and its parent: frames of JSON behind their length, in both directions.

Every word is a typed struct. Nothing that is read can run.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from understudy.actors.definition import Task, Workstream
from understudy.actors.errors import UnderstudyError
from understudy.actors.ports.workplace import Order, Report

FRAME_BYTES_MAX: Final = 256 * 2**20  # longer than any result or order: what claims to be longer is not ours
LENGTH_BYTES: Final = 4


class Start(msgspec.Struct, frozen=True, tag="start"):
    """To the child: what it needs to know before anything else."""

    sys_path: list[str]
    threads: int
    beat_s: float


class Run(msgspec.Struct, frozen=True, tag="run"):
    number: int
    order: Order


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    number: int


class Answer(msgspec.Struct, frozen=True, tag="answer", omit_defaults=True):
    """To something that the child has asked for."""

    ask: int
    value: Any = None
    error: str | None = None


class End(msgspec.Struct, frozen=True, tag="end"):
    """To the child: nothing more will come."""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """From the child: it is ready."""


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """From the child: it is alive."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    number: int
    report: Report


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    number: int
    share: float | None
    note: str | None


class Spawn(msgspec.Struct, frozen=True, tag="spawn"):
    ask: int
    number: int
    definition: Workstream
    count: int


class ResultOf(msgspec.Struct, frozen=True, tag="result_of"):
    ask: int
    number: int
    workstream_id: str


class Add(msgspec.Struct, frozen=True, tag="add"):
    ask: int
    number: int
    tasks: tuple[Task, ...]


Ask: TypeAlias = Spawn | ResultOf | Add
ToChild: TypeAlias = Start | Run | Cancel | Answer | End
FromChild: TypeAlias = Hello | Beat | Done | Progress | Ask

_encode: Final = msgspec.json.Encoder().encode
to_child: Final[msgspec.json.Decoder[ToChild]] = msgspec.json.Decoder(ToChild)
from_child: Final[msgspec.json.Decoder[FromChild]] = msgspec.json.Decoder(FromChild)


class BadFrame(UnderstudyError):
    """What came is not ours."""


def frame(word: ToChild | FromChild) -> bytes:
    data = _encode(word)
    return len(data).to_bytes(LENGTH_BYTES) + data


class Frames:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Every frame that is whole now. Raises `BadFrame`."""
        self._rest += data
        at = 0
        while len(self._rest) - at >= LENGTH_BYTES:
            length = int.from_bytes(self._rest[at : at + LENGTH_BYTES])
            if length > FRAME_BYTES_MAX:
                raise BadFrame(f"a frame of {length:,} bytes is longer than any of ours")
            if len(self._rest) - at - LENGTH_BYTES < length:
                break
            at += LENGTH_BYTES + length
            yield bytes(self._rest[at - length : at])
        del self._rest[:at]
