"""A real HTTP server for the tests: it answers with the bytes that it was given, and keeps what it was sent."""

import asyncio
import itertools
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

Answer = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


class Received:
    """One request, as it came."""

    body = b""

    def __init__(self, head: str, connection: int, reader: asyncio.StreamReader) -> None:
        first, *lines = head.split("\r\n")
        self.method, self.target, _ = first.split(" ")
        pairs = (line.split(": ", 1) for line in lines if line)
        self.headers = {name.lower(): value for name, value in pairs}
        self.connection = connection
        self._reader = reader

    async def wait_until_left(self) -> None:
        """Until the caller has closed the connection."""
        with suppress(ConnectionError):
            while await self._reader.read(1):
                pass


class Server:
    def __init__(self, answers: dict[str, bytes | Answer]) -> None:
        self._answers = answers
        self._numbers = itertools.count(1)
        self._connections: set[asyncio.Task[None]] = set()
        self.received: list[Received] = []
        self.port = 0
        self.scheme = "http"

    def url(self, path: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # Cancelled only by `close`; asyncio on 3.11 would log it.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self._answer_all(reader, writer, next(self._numbers))
        finally:
            self._connections.discard(task)
            writer.close()

    async def wait_until_all_left(self) -> None:
        while self._connections:
            await asyncio.wait(self._connections)

    async def close(self) -> None:
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            got = Received(head, number, reader)
            got.body = await reader.readexactly(int(got.headers.get("content-length", "0")))
            self.received.append(got)
            given = self._answers[got.target.partition("?")[0]]
            if isinstance(given, bytes):
                writer.write(given)
            else:
                await given(got, writer)
            await writer.drain()


def answer(
    status: str = "200 OK", body: bytes = b"", kind: str | None = "text/plain", headers: tuple[str, ...] = ()
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if kind is not None:
        lines.append(f"Content-Type: {kind}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def serving(answers: dict[str, bytes | Answer], certificate: Path | None = None) -> AsyncIterator[Server]:
    server = Server(answers)
    secure: ssl.SSLContext | None = None
    if certificate is not None:
        secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secure.load_cert_chain(certificate)
        server.scheme = "https"
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=secure)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.close()
        await listening.wait_closed()


def make_certificate(folder: Path) -> Path:
    """One that nobody has signed but itself, with its key in the same file."""
    path = folder / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", folder / "only.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + (folder / "only.pem").read_bytes())
    return path
