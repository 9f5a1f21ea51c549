"""A server of six pages that is out of breath: every second page it gives only to who comes back after two seconds.

It ends when it is asked for /stop, and says what it has counted.
"""

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

PAGES = [f"page-{number}" for number in range(1, 7)]
BUSY = frozenset(PAGES[::2])
WAIT_S = 2


class Counts:
    def __init__(self) -> None:
        self.served = 0
        self.refused = 0
        self.seen: set[str] = set()
        self.lock = Lock()

    def admit(self, page: str) -> bool:
        """Not at the first time that a busy page is asked for."""
        with self.lock:
            is_refused = page in BUSY - self.seen
            self.seen.add(page)
            self.refused += is_refused
            self.served += not is_refused
            return not is_refused


COUNTS = Counts()


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.strip("/")
        if name == "stop":
            self.answer(HTTPStatus.OK, "stopping")
            Thread(target=self.server.shutdown).start()  # it waits for this very call to end
        elif name == "pages":
            self.answer(HTTPStatus.OK, PAGES)
        elif name not in PAGES:
            self.answer(HTTPStatus.NOT_FOUND, f"there is no {name}")
        elif COUNTS.admit(name):
            self.answer(HTTPStatus.OK, {"name": name, "words": 100 * (PAGES.index(name) + 1)})
        else:
            self.answer(HTTPStatus.SERVICE_UNAVAILABLE, "out of breath", retry_after=WAIT_S)

    def answer(self, status: HTTPStatus, body: Any, retry_after: int | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Pages) as server:
        server.serve_forever()
    print(json.dumps({"served": COUNTS.served, "refused": COUNTS.refused}))
