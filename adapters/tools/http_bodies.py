"""What HTTP servers answer: read up to a limit, unpacked, and turned into text or JSON.

The limit is for what comes out of unpacking, and holds while it is unpacked: a small answer cannot become a huge one.
"""

import codecs
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from understudy.actors.errors import UnderstudyError
from understudy.adapters.tools.sizes import shown

if TYPE_CHECKING:
    import httpx

_PLAIN: Final = frozenset({"", "identity"})
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_DIGITS_MAX: Final = 16  # of a length that is shown
_EITHER_HEADER: Final = zlib.MAX_WBITS | 32  # of gzip or of zlib, whichever is there
# These are no character sets of answers, and some take very long to decode.
_NOT_OF_ANSWERS: Final = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})


class UnusableAnswer(UnderstudyError):
    """An answer that cannot be a result. The server has done what it was asked to: it is not asked again."""

    permanent = True


async def read_all(response: "httpx.Response", bytes_max: int) -> bytes:
    """The body. Raises `UnusableAnswer` where it is larger than that."""
    body = await read_head(response, bytes_max + 1)
    if len(body) > bytes_max:
        raise UnusableAnswer(
            f"response {_size(response, bytes_max)}: let a program or a function save it, and return where it is"
        )
    return body


async def read_head(response: "httpx.Response", bytes_max: int) -> bytes:
    """As much of the body as that, or all of it."""
    unpacking = _Unpacking(response.headers.get("content-encoding", ""))
    head = bytearray()
    async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_raw())) as chunks:
        async for chunk in chunks:
            head += unpacking.feed(chunk, bytes_max - len(head))
            if len(head) >= bytes_max:
                return bytes(head)
    unpacking.end()
    return bytes(head)


def decode(response: "httpx.Response", body: bytes) -> Any:
    """JSON where the content type says so, and else a text."""
    if not body:
        return None if _is_json(response) else ""
    if _is_json(response):
        try:
            return msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnusableAnswer(f"the response is not the JSON that its content type says: {error}") from None
    try:
        return body.decode(_charset(response))
    except (UnicodeError, LookupError):
        kind = response.headers.get("content-type", "without a content type")
        raise UnusableAnswer(
            f"the response is no text ({kind:.100}): let a program or a function save it, and return where it is"
        ) from None


def decode_loosely(response: "httpx.Response", head: bytes) -> str:
    """A text to show, whatever it is."""
    try:
        return head.decode(_charset(response), errors="replace")
    except (UnicodeError, LookupError):
        return head.decode(errors="replace")


class _Unpacking:
    """Undoes the content encoding, never further than there is room for."""

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        if encoding not in _PLAIN | _PACKED:
            raise UnusableAnswer(f"the response is packed as {encoding:.100}: only gzip is asked for")
        self._inflating = zlib.decompressobj(_EITHER_HEADER) if encoding in _PACKED else None
        self._has_begun = False

    def feed(self, chunk: bytes, bytes_max: int) -> bytes:
        if self._inflating is None:
            return chunk[:bytes_max]
        self._has_begun = True
        try:
            found = self._inflating.decompress(chunk, bytes_max)
        except zlib.error as error:
            raise UnusableAnswer(f"the response cannot be unpacked: {error}") from None
        if self._inflating.unused_data:
            raise UnusableAnswer("the response cannot be unpacked: there is more after its end")
        return found

    def end(self) -> None:
        if self._has_begun and self._inflating is not None and not self._inflating.eof:
            raise UnusableAnswer("the response cannot be unpacked: its end is missing")


def _size(response: "httpx.Response", bytes_max: int) -> str:
    limit = f"{bytes_max >> 20} MiB"
    told = response.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and len(told) < _DIGITS_MAX and int(told) > bytes_max:
        return f"{shown(int(told))} > {limit}"
    return f"> {limit}"


def _is_json(response: "httpx.Response") -> bool:
    kind: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _charset(response: "httpx.Response") -> str:
    try:
        name = codecs.lookup(response.charset_encoding or "utf-8").name
    except LookupError:
        return "utf-8"
    return "utf-8" if name in _NOT_OF_ANSWERS else name
