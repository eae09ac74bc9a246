"""An embedding endpoint on this machine that answers like OpenAI's, or misbehaves in one of the ways that such have.

A fault comes before the server has done anything ("did not happen"), or after it has made the vectors ("happened, but
was not reported"); `embedded` lists the texts whose vectors it made, `asked` every request that it read.
"""

import json
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.house import WORDS

Body = dict[str, Any]  # Any: JSON
Fault = Callable[["Handler", Body], None]


@dataclass
class Endpoint:
    """The server as a test sees and sets it: the first faults, in order, and then the lasting one."""

    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    always: Fault | None = None
    asked: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    embedded: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def vectors(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of some texts, longer than a unit, as some models make them."""
        self.embedded += texts
        return [[3.0 * float(number) for number in row] for row in WORDS.embed(texts)]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    endpoint: Endpoint

    def do_POST(self) -> None:
        """Read the request, then do what the test has set."""
        body: Body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.asked.append(body)
        self.endpoint.headers.append(dict(self.headers))
        fault = self.endpoint.faults.pop(0) if self.endpoint.faults else self.endpoint.always
        (fault or good)(self, body)

    def give(self, content: bytes, status: int = 200, media: str = "application/json", **headers: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in {"Content-Type": media, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def give_rows(self, rows: list[Any]) -> None:
        """Send an answer whose rows are as given; NaN and infinity are written as Python writes them."""
        self.give(json.dumps({"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def good(handler: Handler, body: Body) -> None:
    """Answer as one should, the rows in another order than the texts."""
    rows = handler.endpoint.vectors(body["input"])
    data = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
    handler.give(json.dumps({"object": "list", "data": data[::-1], "model": body["model"]}).encode())


def status(code: int, **headers: str) -> Fault:
    """Answer with an error's status, and quote key and text as some servers do."""
    return lambda handler, body: handler.give(
        json.dumps({"error": f"{handler.headers['Authorization']} {body['input']}"}).encode(), code, **headers
    )


def page(handler: Handler, body: Body) -> None:
    """Answer with a web page, as a captive portal does."""
    handler.give(f"<html>{body['input']}</html>".encode(), media="text/html")


def before(handler: Handler, body: Body) -> None:
    """Close the connection without a word: nothing was done."""
    handler.connection.shutdown(socket.SHUT_RDWR)


def amid(handler: Handler, body: Body) -> None:
    """Make the vectors, and break off in the middle of the answer."""
    content = json.dumps({"data": handler.endpoint.vectors(body["input"])}).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)


def hang(handler: Handler, body: Body) -> None:
    """Do nothing at all, for as long as the test runs."""
    handler.endpoint.stop.wait(30)


def hang_after(handler: Handler, body: Body) -> None:
    """Make the vectors, and never say so."""
    handler.endpoint.vectors(body["input"])
    hang(handler, body)


def trickle(handler: Handler, body: Body) -> None:
    """Send a space now and then, which no time-out of a single read notices."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.endpoint.stop.wait(0.05):
        handler.wfile.write(b" ")


def endless(handler: Handler, body: Body) -> None:
    """Send spaces without end."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.endpoint.stop.is_set():
        handler.wfile.write(b" " * 65_536)


def rows(change: Callable[[list[list[float]]], list[Any]]) -> Fault:
    """Make the vectors, and answer with what `change` makes of them."""
    return lambda handler, body: handler.give_rows(change(handler.endpoint.vectors(body["input"])))


def first_number(number: float | None) -> Fault:
    """Put a number in the place of the first row's first."""
    return rows(lambda found: [[number, *found[0][1:]], *found[1:]])


fewer = rows(lambda found: found[:-1])
more = rows(lambda found: [*found, found[0]])
shorter = rows(lambda found: [row[:-1] for row in found])
ragged = rows(lambda found: [found[0][:-1], *found[1:]])
empty_rows = rows(lambda found: [[] for _ in found])
nan, infinite, null, huge = first_number(math.nan), first_number(-math.inf), first_number(None), first_number(1e300)
zero = rows(lambda found: [[0.0] * len(found[0]), *found[1:]])
words = rows(lambda found: [["1.0"] * len(row) for row in found])


def document(value: object) -> Fault:
    """Answer with some JSON that is no answer."""
    return lambda handler, body: handler.give(json.dumps(value).encode())


def raw(content: bytes) -> Fault:
    """Answer with these bytes, said to be JSON."""
    return lambda handler, body: handler.give(content)


def twice(handler: Handler, body: Body) -> None:
    """Give every row the first text's index."""
    data = [{"index": 0, "embedding": row} for row in handler.endpoint.vectors(body["input"])]
    handler.give(json.dumps({"data": data}).encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # Any: as the base class has it
        """A client that has left is no news here."""


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """Run an endpoint of its own while the block runs, over TLS where there is a context for it."""
    endpoint = Endpoint()
    handler = type("Bound", (Handler,), {"endpoint": endpoint})
    server = _Server(("127.0.0.1", 0), handler)
    endpoint.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}/v1"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()
