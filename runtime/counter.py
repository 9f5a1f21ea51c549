"""Operators at a runtime that runs in another process: what they want is carried there, and the answer back.

The words are those of `Request` and `Done`, as JSON. What was refused there is raised here.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from understudy.actors.engine.requests import Conflict, Done, NotFound, Operation, Request
from understudy.actors.errors import UnderstudyError
from understudy.actors.lifecycle import InvalidTransition
from understudy.adapters.desk import Desk, hand_in
from understudy.adapters.folders import Folders

if TYPE_CHECKING:
    from understudy.runtime.runtime import Runtime


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a request: done, or why not."""

    done: Done | None = None
    kind: str | None = None
    why: str = ""


_REFUSALS: dict[str, type[UnderstudyError]] = {"NotFound": NotFound, "Conflict": Conflict}
_read_request = msgspec.json.Decoder(Request).decode
_read_answer = msgspec.json.Decoder(Answer).decode


def open_counter(runtime: "Runtime", database: Path) -> Desk:
    """Let operators in while it is used with `async with`."""

    async def answer(line: bytes) -> bytes:
        return msgspec.json.encode(await _carry_out(runtime, line))

    return Desk(Folders(database).root, answer)


async def ask(database: Path, request: Request) -> Done:
    """Have something done by the process that has a database open. Raises `DeskClosed` where it does not listen."""
    answer = _read_answer(await hand_in(Folders(database).root, msgspec.json.encode(request)))
    if answer.done is not None:
        return answer.done
    raise _REFUSALS.get(answer.kind or "", UnderstudyError)(answer.why)


async def _carry_out(runtime: "Runtime", line: bytes) -> Answer:
    try:
        request = _read_request(line)
        if request.operation is Operation.SUBMIT:
            raise Conflict("workstreams are not submitted here: start another `understudy run`")
        return Answer(await runtime.operate(request))
    except (NotFound, Conflict) as error:
        return Answer(kind=type(error).__name__, why=str(error))
    except InvalidTransition as error:
        return Answer(kind="Conflict", why=str(error))
    except (UnderstudyError, msgspec.MsgspecError) as error:
        return Answer(kind="Error", why=str(error))
