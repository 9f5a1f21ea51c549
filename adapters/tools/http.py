"""Calls of HTTP APIs: one request for each attempt, over connections that are kept.

Certificates are always verified. No more of an answer is read, or unpacked, than a result may hold. Calls know nothing
of each other: no cookie is kept.
"""

import asyncio
import logging
import re
import ssl
from contextlib import aclosing
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from understudy.actors.definition import HttpRequest
from understudy.actors.errors import MisuseError, UnderstudyError
from understudy.actors.ports.workplace import OUTPUT_BYTES_MAX, Report
from understudy.adapters.tools.attempts import failed
from understudy.adapters.tools.context import TaskContext
from understudy.adapters.tools.failures import TEXT_MAX, cut
from understudy.adapters.tools.http_bodies import UnusableAnswer, decode, decode_loosely, read_all, read_head
from understudy.adapters.tools.storing import to_stored

if TYPE_CHECKING:
    import httpx

REDIRECTS_MAX: Final = 20
LINE_MAX: Final = 200  # characters of an answer that an error shows
HEAD_BYTES_MAX: Final = 2**16  # of an answer that is no success
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LATER: Final = frozenset({408, 425, 429})  # the client's errors that pass
_NEVER: Final = frozenset({501, 505})  # the server's errors that do not
_WITH_RETRY_AFTER: Final = frozenset({429, 503})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~\w-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[^\0\r\n]*")
_SECONDS: Final = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)

_LOGGERS: Final = ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_is_calling: Final[ContextVar[bool]] = ContextVar("understudy_http", default=False)


class BadRequest(UnderstudyError):
    """A request that cannot be sent."""

    permanent = True


class HttpCaller:
    """Makes the calls of one workplace."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    async def attempt(self, context: TaskContext) -> Report:
        request = context.order.request
        if request is None:
            raise MisuseError(f"the order {context.order.token} is no call of an HTTP API: give it a request")
        token = _is_calling.set(True)
        try:
            client = self._client or await self._open()
            response = await _send(client, request, context)
            async with aclosing(response):
                return await _report(response, request, context)
        except Exception as error:
            return _not_answered(error, request, context)
        finally:
            _is_calling.reset(token)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def kill(self) -> None:
        """Close the connections without waiting for it."""
        if self._client is not None:
            self._closing = asyncio.get_running_loop().create_task(self.close())

    async def _open(self) -> "httpx.AsyncClient":
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(_make_client)  # it reads many files
            return self._client


def _make_client() -> "httpx.AsyncClient":
    from http.cookiejar import CookieJar, DefaultCookiePolicy  # noqa: PLC0415

    import httpx  # noqa: PLC0415 - it takes long to import, and most workplaces never call an API

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_may_be_logged)
    return httpx.AsyncClient(
        headers={"user-agent": "understudy", "accept-encoding": "gzip"},
        timeout=None,  # noqa: S113 - the attempt has one
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),  # the worker's slots are the limit
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def _may_be_logged(_record: logging.LogRecord) -> bool:
    """Not what these libraries log of our calls: whole addresses and headers, with the secrets in them."""
    return not _is_calling.get()


async def _send(client: "httpx.AsyncClient", request: HttpRequest, context: TaskContext) -> "httpx.Response":
    """The answer, with its body still to be read. Redirects are followed here, where their bodies are not read."""
    asked = _build(client, request, context.order.token)
    for _ in range(REDIRECTS_MAX + 1):
        response = await client.send(asked, stream=True)
        if not request.follow_redirects or response.next_request is None:
            return response
        await response.aclose()
        asked = _redirected(asked, response.next_request, context)
    raise BadRequest(f"redirected more than {REDIRECTS_MAX} times: ask for the last address itself")


def _build(client: "httpx.AsyncClient", request: HttpRequest, token: str) -> "httpx.Request":
    import httpx  # noqa: PLC0415

    for name, value in request.headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise BadRequest(f"the header {name!r} cannot be sent: it must be one line")
    try:
        url = httpx.URL(request.url)
        if url.scheme not in ("http", "https") or not url.host:
            raise BadRequest("the URL must begin with http:// or https:// and name a host")
        asked = client.build_request(
            request.method, url, headers=request.headers, json=request.json, content=request.body
        )
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise BadRequest(f"the request cannot be sent: {error}") from error
    if request.method not in _SAFE_METHODS:
        asked.headers.setdefault("Idempotency-Key", token)
    return asked


def _redirected(before: "httpx.Request", after: "httpx.Request", context: TaskContext) -> "httpx.Request":
    """The next request. A header with a secret goes to nobody but the one whom it was given for."""
    origins = {(each.url.scheme, each.url.host, each.url.port) for each in (before, after)}
    if context.secrets is not None and len(origins) > 1:
        for name, value in before.headers.items():
            if context.secrets.hide(value) != value:
                after.headers.pop(name, None)
    return after


async def _report(response: "httpx.Response", request: HttpRequest, context: TaskContext) -> Report:
    status, expected = response.status_code, request.expected_statuses
    if status not in expected if expected else not response.is_success:
        return await _refused(response, request, context)
    headers = {name: value for name, value in response.headers.items() if name != "set-cookie"}
    body = decode(response, await read_all(response, OUTPUT_BYTES_MAX))
    output: dict[str, Any] = {"status": status, "headers": headers, "body": body}
    return Report(*to_stored(context.secrets.hide_in(output) if context.secrets else output))


async def _refused(response: "httpx.Response", request: HttpRequest, context: TaskContext) -> Report:
    status = response.status_code
    text = _hide(await _said(response, context), context)[:TEXT_MAX]
    reason = _hide(response.reason_phrase, context)[:LINE_MAX] or _phrase(status)
    what = f"{status} {reason} from {_shown(request, context)}"
    if response.next_request is not None:
        there = _shown_url(str(response.next_request.url), context)
        what = f"{what}: it leads to {there}, set follow_redirects to go there"
    elif line := next((each.strip() for each in text.splitlines() if each.strip()), None):
        what = f"{what}: {line[:LINE_MAX]}"
    return Report(
        error=cut(what),
        kinds=("HttpError", f"http.{status}", f"http.{status // 100}xx"),
        text=text,
        retry_after_s=_retry_after(response) if status in _WITH_RETRY_AFTER else None,
        permanent=status not in _LATER and (status < HTTPStatus.INTERNAL_SERVER_ERROR or status in _NEVER),
    )


async def _said(response: "httpx.Response", context: TaskContext) -> str:
    """The head of the body. One that cannot be read does not hide the status."""
    import httpx  # noqa: PLC0415

    try:
        head = await read_head(response, HEAD_BYTES_MAX)
    except (httpx.HTTPError, UnusableAnswer):
        return ""
    if context.secrets is not None and len(head) == HEAD_BYTES_MAX:
        head = head[: context.secrets.place_to_cut(head)]
    return decode_loosely(response, head)


def _not_answered(error: Exception, request: HttpRequest, context: TaskContext) -> Report:
    told = failed(context, error)
    return msgspec.structs.replace(
        told,
        error=cut(f"{told.error} ({_shown(request, context)})"),
        permanent=told.permanent or _is_permanent(error),
    )


def _is_permanent(error: BaseException) -> bool:
    """Whether it is a certificate that is not trusted, or an address that is not of the web."""
    import httpx  # noqa: PLC0415

    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError | httpx.UnsupportedProtocol):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _retry_after(response: "httpx.Response") -> float | None:
    """Seconds, or a date. What is neither is ignored."""
    import email.utils  # noqa: PLC0415

    wish = response.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(wish):
        return float(wish)
    try:
        at = email.utils.parsedate_to_datetime(wish)
    except (ValueError, TypeError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _shown(request: HttpRequest, context: TaskContext) -> str:
    return f"{request.method} {_shown_url(request.url, context)}"


def _shown_url(url: str, context: TaskContext) -> str:
    """Without what may be private in it: who asks, and what for."""
    try:
        parts = urlsplit(_hide(url, context))
    except ValueError:
        return "a URL that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _hide(text: str, context: TaskContext) -> str:
    return context.secrets.hide(text) if context.secrets else text


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(no reason given)"
