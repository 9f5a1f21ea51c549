"""What a call of an HTTP API gives, against a real server: results, failures, limits and secrets."""

import asyncio
import email.utils
import gzip
import logging
import socket
import urllib.parse
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.integration.tools.servers import Received, answer, make_certificate, serving
from tests.integration.tools.unasked import Unasked
from understudy.actors.definition import HttpRequest
from understudy.actors.ports.workplace import OUTPUT_BYTES_MAX, Order, Report
from understudy.adapters.tools.on_loop import LoopWorkplace

HANG_S = 60  # no claim about speed: what has not happened by then will not happen
SECRET = "s3cr\"et'v/al ue"
FAR_S = 4_000_000_000  # since 1970


@pytest.fixture
async def workplace() -> AsyncIterator[LoopWorkplace]:
    made = LoopWorkplace(Unasked())
    yield made
    await made.close()


def order(request: HttpRequest, secrets: tuple[str, ...] = ()) -> Order:
    return Order(
        task_id="flow/a", workstream_id="flow", key="a", generation=1, attempt=2, worker_id="w-1", inputs={},
        timeout_s=60.0, deadline_at=FAR_S * 1_000_000, request=request, secrets=secrets,
    )  # fmt: skip


async def call(workplace: LoopWorkplace, url: str, secrets: tuple[str, ...] = (), **request: Any) -> Report:
    with anyio.fail_after(HANG_S):
        return await workplace.run(order(HttpRequest(url=url, **request), secrets))


async def answered(workplace: LoopWorkplace, given: bytes, **request: Any) -> Report:
    """How a call ends that gets this answer."""
    async with serving({"/x": given}) as server:
        return await call(workplace, server.url("/x"), **request)


async def test_json_is_decoded_where_the_content_type_says_so(workplace: LoopWorkplace) -> None:
    report = await answered(workplace, answer(body=b'{"a": [1, 2.5]}', kind="application/json; charset=utf-8"))
    assert report.error is None
    assert report.output["status"] == 200
    assert report.output["body"] == {"a": [1, 2.5]}
    assert report.output["headers"]["content-type"] == "application/json; charset=utf-8"
    assert report.output_bytes == len(msgspec.json.encode(report.output))
    assert report.exit_code is None


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("grüße".encode(), "text/plain", "grüße"),
        ("grüße".encode("latin-1"), "text/plain; charset=iso-8859-1", "grüße"),
        (b"[1]", "text/plain", "[1]"),
        (b"[1]", None, "[1]"),
        (b"[1]", "application/problem+json", [1]),
        (b"", "application/json", None),
        (b"", "text/plain", ""),
        (b"plain", "text/plain; charset=punycode", "plain"),
        (b"plain", "text/plain; charset=nonsense", "plain"),
    ],
)
async def test_any_other_body_is_a_text(workplace: LoopWorkplace, body: bytes, kind: str | None, expected: Any) -> None:
    report = await answered(workplace, answer(body=body, kind=kind))
    assert (report.error, report.output["body"]) == (None, expected)


async def test_method_headers_and_body_are_sent_as_they_are(workplace: LoopWorkplace) -> None:
    async with serving({"/x": answer()}) as server:
        await call(workplace, server.url("/x?a=b%20c"), method="PUT", headers={"X-Mine": "1"}, body="grüße")
        await call(workplace, server.url("/x"), method="POST", json={"a": [None, "ü"]})
    put, post = server.received
    assert (put.method, put.target, put.headers["x-mine"], put.body) == ("PUT", "/x?a=b%20c", "1", "grüße".encode())
    assert (post.headers["content-type"], msgspec.json.decode(post.body)) == ("application/json", {"a": [None, "ü"]})


async def test_what_changes_something_carries_the_attempts_token(workplace: LoopWorkplace) -> None:
    async with serving({"/x": answer()}) as server:
        for method in ("GET", "HEAD", "OPTIONS", "POST", "DELETE"):
            await call(workplace, server.url("/x"), method=method)
        await call(workplace, server.url("/x"), method="POST", headers={"idempotency-key": "mine"})
    sent = [each.headers.get("idempotency-key") for each in server.received]
    assert sent == [None, None, None, "flow/a/1/2", "flow/a/1/2", "mine"]


async def test_a_connection_is_used_again_and_no_cookie_is_kept(workplace: LoopWorkplace) -> None:
    async with serving({"/x": answer(headers=("Set-Cookie: session=mine; Path=/",))}) as server:
        reports = [await call(workplace, server.url("/x")) for _ in range(3)]
    assert {each.connection for each in server.received} == {1}
    assert not any("cookie" in each.headers for each in server.received)
    assert not any("set-cookie" in each.output["headers"] for each in reports)


async def test_calls_run_beside_each_other(workplace: LoopWorkplace) -> None:
    all_there = asyncio.Barrier(5)

    async def wait_for_others(_: Received, writer: asyncio.StreamWriter) -> None:
        await all_there.wait()
        writer.write(answer())

    async with serving({"/x": wait_for_others}) as server:
        reports = await asyncio.gather(*(call(workplace, server.url("/x")) for _ in range(5)))
    assert [each.error for each in reports] == [None] * 5


async def test_only_the_expected_statuses_are_a_success(workplace: LoopWorkplace) -> None:
    assert (await answered(workplace, answer("404 Not Found"), expected_statuses=(404,))).output["status"] == 404
    refused = await answered(workplace, answer("200 OK"), expected_statuses=(201,))
    assert (refused.permanent, refused.kinds) == (True, ("HttpError", "http.200", "http.2xx"))


@pytest.mark.parametrize(
    ("status", "is_permanent"),
    [
        *((status, False) for status in (408, 425, 429, 500, 502, 503, 504, 507, 599)),
        *((status, True) for status in (400, 401, 403, 404, 409, 410, 422, 501, 505, 300, 304)),
    ],
)
async def test_a_status_says_whether_to_try_again(workplace: LoopWorkplace, status: int, is_permanent: bool) -> None:
    body = b"" if status == 304 else b"\n\n  it is late \nmore"
    report = await answered(workplace, answer(f"{status} Because", body))
    assert report.permanent is is_permanent
    assert report.kinds == ("HttpError", f"http.{status}", f"http.{status // 100}xx")
    assert report.output is None


async def test_a_failure_says_what_was_asked_and_what_was_answered(workplace: LoopWorkplace) -> None:
    given = answer("503 Service Unavailable", b"\n  it is late \nmore" + b"." * 10_000)
    async with serving({"/a/b": given}) as server:
        report = await call(workplace, server.url("/a/b?key=private").replace("//", "//user:password@"))
    assert report.error == f"503 Service Unavailable from GET {server.url('/a/b')}: it is late"
    assert report.text.startswith("\n  it is late \nmore...")
    assert len(report.text) == 4_000


async def test_a_status_without_a_reason_gets_the_usual_one(workplace: LoopWorkplace) -> None:
    report = await answered(workplace, b"HTTP/1.1 502\r\nContent-Length: 0\r\n\r\n")
    assert str(report.error).startswith("502 Bad Gateway from GET")


@pytest.mark.parametrize(
    ("status", "wish", "expected"),
    [
        ("503 Later", "7", 7.0),
        ("429 Later", "1.5", 1.5),
        ("429 Later", "Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("503 Later", "soon", None),
        ("503 Later", "-1", None),
        ("503 Later", "9" * 40, None),
        ("503 Later", "", None),
        ("500 Broken", "7", None),
    ],
)
async def test_retry_after_is_taken_where_it_makes_sense(
    workplace: LoopWorkplace, status: str, wish: str, expected: float | None
) -> None:
    report = await answered(workplace, answer(status, headers=(f"Retry-After: {wish}",)))
    assert report.retry_after_s == expected


async def test_retry_after_may_be_a_date(workplace: LoopWorkplace) -> None:
    date = email.utils.formatdate(FAR_S, usegmt=True)
    report = await answered(workplace, answer("503 Later", headers=(f"Retry-After: {date}",)))
    assert report.retry_after_s is not None
    assert 0 < report.retry_after_s < FAR_S


async def test_a_redirect_is_followed_only_where_that_is_asked_for(workplace: LoopWorkplace) -> None:
    there = answer("307 Temporary Redirect", b"x" * 100, headers=("Location: /there?key=private",))
    async with serving({"/here": there, "/there": answer(body=b"found")}) as server:
        refused = await call(workplace, server.url("/here"))
        followed = await call(workplace, server.url("/here"), method="POST", body="kept", follow_redirects=True)
    assert refused.permanent
    assert f"it leads to {server.url('/there')}, set follow_redirects to go there" in str(refused.error)
    assert followed.output["body"] == "found"
    assert (server.received[-1].method, server.received[-1].body) == ("POST", b"kept")


async def test_a_circle_of_redirects_is_left(workplace: LoopWorkplace) -> None:
    report = await answered(workplace, answer("302 Found", headers=("Location: /x",)), follow_redirects=True)
    assert report.permanent
    assert "redirected more than 20 times" in str(report.error)


async def test_a_redirect_out_of_the_web_is_refused(workplace: LoopWorkplace) -> None:
    given = answer("302 Found", headers=("Location: file:///etc/passwd",))
    report = await answered(workplace, given, follow_redirects=True)
    assert report.permanent
    assert report.output is None


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "127.0.0.1/x",
        "",
        "http://",
        "http:///x",
        "http://[::1",
        "http://h:p/",
    ],
)
async def test_a_url_that_is_not_of_the_web_is_refused_for_good(workplace: LoopWorkplace, url: str) -> None:
    report = await call(workplace, url)
    assert report.permanent
    assert str(report.error).startswith("BadRequest: the ")


@pytest.mark.parametrize("headers", [{"X-A": "a\r\nX-B: b"}, {"X A": "a"}, {"": "a"}, {"X-A\n": "a"}, {"X-A": "ü"}])
async def test_a_header_that_is_none_is_refused_for_good(workplace: LoopWorkplace, headers: dict[str, str]) -> None:
    async with serving({"/x": answer()}) as server:
        report = await call(workplace, server.url("/x"), headers=headers)
    assert (report.permanent, server.received) == (True, [])


async def test_a_size_that_is_told_is_in_the_refusal(workplace: LoopWorkplace) -> None:
    report = await answered(workplace, answer(body=b"x" * 3_000_000))
    assert report.permanent
    assert "response 3.0 MB > 1 MiB: let a program" in str(report.error)


async def test_a_body_without_end_is_read_up_to_the_limit(workplace: LoopWorkplace) -> None:
    async def never_end(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()

    async with serving({"/x": never_end}) as server:
        report = await call(workplace, server.url("/x"))
    assert report.permanent
    assert "response > 1 MiB: let a program" in str(report.error)


async def test_a_failure_without_end_is_still_that_failure(workplace: LoopWorkplace) -> None:
    async def never_end(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 Broken\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()

    async with serving({"/x": never_end}) as server:
        report = await call(workplace, server.url("/x"))
    assert str(report.error).startswith("500 Broken from GET")


async def test_a_body_of_just_the_limit_is_taken_by_what_reads_it(workplace: LoopWorkplace) -> None:
    number = b"1" + b"0" * (OUTPUT_BYTES_MAX - 3)
    report = await answered(workplace, answer(body=b" " * (OUTPUT_BYTES_MAX - 1) + b"1", kind="application/json"))
    assert report.output["body"] == 1
    beyond = await answered(workplace, answer(body=number))
    assert (beyond.permanent, "Unstorable" in beyond.kinds) == (True, True)  # with its headers it is larger


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_packed_body_is_unpacked(workplace: LoopWorkplace, encoding: str) -> None:
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    given = answer(body=pack(b"hello " * 1_000), headers=(f"Content-Encoding: {encoding}",))
    assert (await answered(workplace, given)).output["body"] == "hello " * 1_000


async def test_a_small_answer_cannot_become_a_huge_one(workplace: LoopWorkplace) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000, 6)
    report = await answered(workplace, answer(body=bomb, headers=("Content-Encoding: gzip",)))
    assert len(bomb) < OUTPUT_BYTES_MAX
    assert report.permanent
    assert "response > 1 MiB" in str(report.error)


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("gzip", b"not gzip", "cannot be unpacked"),
        ("gzip", gzip.compress(b"hello" * 100)[:-10], "its end is missing"),
        ("gzip", gzip.compress(b"hello") + b"more", "more after its end"),
        ("br", b"x", "packed as br"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"x")), "packed as gzip, gzip"),
    ],
)
async def test_what_cannot_be_unpacked_is_refused(
    workplace: LoopWorkplace, encoding: str, body: bytes, why: str
) -> None:
    report = await answered(workplace, answer(body=body, headers=(f"Content-Encoding: {encoding}",)))
    assert report.permanent
    assert why in str(report.error)
    failing = await answered(workplace, answer("500 Broken", body, headers=(f"Content-Encoding: {encoding}",)))
    assert str(failing.error).startswith("500 Broken")


async def test_what_is_no_text_is_refused_with_its_content_type(workplace: LoopWorkplace) -> None:
    report = await answered(workplace, answer(body=b"\x89PNG\xff\xfe", kind="image/png"))
    assert report.permanent
    assert "the response is no text (image/png)" in str(report.error)


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b"NaN", b"[1" + b"0" * 400 + b"]"])
async def test_json_that_is_none_is_refused(workplace: LoopWorkplace, body: bytes) -> None:
    report = await answered(workplace, answer(body=body, kind="application/json"))
    assert report.permanent


async def test_a_head_has_no_body_whatever_its_length_says(workplace: LoopWorkplace) -> None:
    given = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\nContent-Encoding: gzip\r\n\r\n"
    report = await answered(workplace, given, method="HEAD")
    assert (report.error, report.output["body"]) == (None, "")


async def test_a_certificate_that_nobody_trusts_is_refused_for_good(workplace: LoopWorkplace, tmp_path: Path) -> None:
    async with serving({"/x": answer()}, make_certificate(tmp_path)) as server:
        report = await call(workplace, server.url("/x"))
    assert (report.permanent, server.received) == (True, [])
    assert "CERTIFICATE_VERIFY_FAILED" in str(report.error)


async def test_a_certificate_that_the_environment_trusts_is_taken(
    workplace: LoopWorkplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with serving({"/x": answer(body=b"safe")}, certificate) as server:
        report = await call(workplace, server.url("/x"))
    assert (report.error, report.output["body"]) == (None, "safe")


async def test_where_nobody_listens_another_attempt_may_help(workplace: LoopWorkplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    report = await call(workplace, f"http://127.0.0.1:{port}/x")
    assert not report.permanent
    assert {"ConnectError", "httpx.ConnectError"} <= set(report.kinds)
    assert f"(GET http://127.0.0.1:{port}/x)" in str(report.error)


@pytest.mark.parametrize("given", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", b"nonsense\r\n\r\n"])
async def test_where_an_answer_breaks_off_another_attempt_may_help(workplace: LoopWorkplace, given: bytes) -> None:
    async def break_off(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(given)
        raise ConnectionAbortedError

    async with serving({"/x": break_off}) as server:
        report = await call(workplace, server.url("/x"))
    assert (report.permanent, report.output) == (False, None)
    assert report.error is not None


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_cancelled_call_is_dropped_at_once(workplace: LoopWorkplace, has_begun: bool) -> None:
    asked, dropped = anyio.Event(), anyio.Event()

    async def be_slow(got: Received, writer: asyncio.StreamWriter) -> None:
        if has_begun:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        asked.set()
        await got.wait_until_left()
        dropped.set()

    async with serving({"/x": be_slow}) as server:
        running = asyncio.ensure_future(call(workplace, server.url("/x")))
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with anyio.fail_after(HANG_S):
            await dropped.wait()


async def test_a_killed_workplace_leaves_no_connection_open() -> None:
    async with serving({"/x": answer()}) as server:
        workplace = LoopWorkplace(Unasked())
        await call(workplace, server.url("/x"))
        workplace.kill()
        with anyio.fail_after(HANG_S):
            await server.wait_until_all_left()


async def echo(got: Received, writer: asyncio.StreamWriter) -> None:
    """Answers with all that it was sent."""
    said = [got.headers["x-key"], got.target, got.body.decode()]
    headers = (f"X-Echo: {got.headers['x-key']}",)
    if got.method == "PUT":
        writer.write(answer("200 OK", msgspec.json.encode(said), "application/json", headers))
    else:
        writer.write(answer("400 Bad Request", " ".join(said).encode(), headers=headers))


async def test_secrets_are_in_nothing_that_is_given_out(
    workplace: LoopWorkplace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOKEN_OF_TESTS", SECRET)
    quoted = urllib.parse.quote(SECRET, safe="")
    reports: list[Report] = []
    async with serving({f"/{quoted}": echo}) as server:
        for method in ("PUT", "POST"):
            url = server.url(f"/{quoted}?key={quoted}").replace("//", f"//user:{quoted}@", 1)
            request = HttpRequest(url=url, method=method, headers={"X-Key": SECRET}, json={"key": SECRET})
            reports.append(await workplace.run(order(request, ("TOKEN_OF_TESTS",))))
    assert [each.headers["x-key"] for each in server.received] == [SECRET, SECRET]
    assert [each.output and each.output["body"][0] for each in reports] == ["***", None]
    assert str(reports[1].error).startswith(f"400 Bad Request from POST {server.url('/***')}: *** /***?key=*** ")
    told = msgspec.json.encode(reports).decode() + caplog.text
    for form in ("s3cr", "al ue", "al%20ue"):
        assert form not in told


async def test_a_secret_in_an_illegal_place_is_not_told(
    workplace: LoopWorkplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TESTS", "s3cret\nvalue")
    for request in ({"headers": {"X-Key": "s3cret\nvalue"}}, {"headers": {"s3cret\nvalue": "x"}}):
        report = await call(workplace, "http://127.0.0.1/", ("TOKEN_OF_TESTS",), **request)
        assert "s3cret" not in msgspec.json.encode(report).decode()
    report = await call(workplace, "http://s3cret\nvalue/", ("TOKEN_OF_TESTS",))
    assert "s3cret" not in msgspec.json.encode(report).decode()


async def test_a_secret_that_is_cut_in_two_is_not_told(
    workplace: LoopWorkplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "begin" + "s3cret-value" * 40
    monkeypatch.setenv("TOKEN_OF_TESTS", secret)
    report = await answered(workplace, answer("500 Broken", secret.encode() * 200), secrets=("TOKEN_OF_TESTS",))
    assert "***" in report.text
    assert "s3cret" not in report.text


async def test_a_secret_header_is_not_sent_to_whom_a_redirect_leads(
    workplace: LoopWorkplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TESTS", "s3cret-value")
    headers = {"X-Key": "Key s3cret-value", "X-Other": "1"}
    async with serving({"/y": answer()}) as other:
        there = answer("302 Found", headers=(f"Location: {other.url('/y')}",))
        async with serving({"/x": there, "/z": answer("302 Found", headers=("Location: /x",))}) as server:
            await call(workplace, server.url("/z"), ("TOKEN_OF_TESTS",), headers=headers, follow_redirects=True)
    assert [each.headers.get("x-key") for each in server.received] == ["Key s3cret-value"] * 2
    assert (other.received[0].headers.get("x-key"), other.received[0].headers["x-other"]) == (None, "1")
