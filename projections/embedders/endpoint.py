"""One request to somebody else's server, and one answer: bounded in time and in size, and never believed.

The key goes to the configured host and nowhere else: a redirect is refused, not followed. Neither the key, nor a
text, nor a word of what the server answered is ever part of an error, because servers quote both.
"""

import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from email.utils import mktime_tz, parsedate_tz
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from ledger.clock import system_clock
from ledger.errors import CorrigendaError, failure, refuse

ANSWER_BYTES_MAX = 64 * 2**20
CONNECT_S = 5.0
CHUNK_BYTES = 2**16
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}")


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where requests go: `url` up to and with the path, and what gives the key, if one is needed.

    `key` is asked at every request, and is not part of what is printed.
    """

    url: str
    key: Callable[[], str] | None = None
    bytes_max: int = ANSWER_BYTES_MAX
    connect_s: float = CONNECT_S

    @property
    def parts(self) -> SplitResult:
        """Return the URL's parts."""
        return urlsplit(self.url)

    @property
    def host(self) -> str:
        """Return host and port, as errors may name them."""
        return self.parts.netloc


class Failed(Exception):
    """A request that failed and may be tried again; `after_s` is what the server asked to wait, if it did."""

    def __init__(self, error: CorrigendaError, after_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.after_s = after_s


def endpoint(base_url: str, path: str, key: Callable[[], str] | None) -> Endpoint:
    """Return the endpoint at `path` under a base URL. VALIDATION_FAILED if it is not http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(base_url.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and base_url.isprintable()
    except ValueError:
        usable, parts = False, SplitResult("", "", "", "", "")
    if not usable or parts.query or parts.fragment or "@" in parts.netloc or " " in base_url.strip():
        refuse(
            "VALIDATION_FAILED",
            "CORRIGENDA_EMBEDDER_BASE_URL should be http:// or https://, a host and perhaps a path, such as "
            "https://api.openai.com/v1, without a user, a query or a fragment; something else was given. "
            "A key belongs into CORRIGENDA_EMBEDDER_API_KEY.",
            field="embedder_base_url",
        )
    return Endpoint(url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}", key=key)


def post(there: Endpoint, body: bytes, *, deadline: float) -> object:
    """Return the JSON that answers `body`. `deadline` is on the monotonic clock.

    Raises Failed for what may be different the next time, EMBEDDER_UNAVAILABLE for what will not.
    """
    connection = _connection(there, deadline)
    try:
        connection.connect()
        with _cut_at(deadline, connection.sock):
            connection.request("POST", there.parts.path, body, _headers(there))
            with connection.getresponse() as response:
                return _answer(there, response, deadline)
    except ssl.SSLCertVerificationError as error:
        raise _lasting(there, "whose certificate cannot be verified was found", "tls") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _broken(there, error, late=time.monotonic() >= deadline) from error
    finally:
        connection.close()


def _connection(there: Endpoint, deadline: float) -> http.client.HTTPConnection:
    timeout = max(0.001, min(there.connect_s, deadline - time.monotonic()))
    parts = there.parts
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout, context=context)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)


def _headers(there: Endpoint) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "corrigenda"}
    return headers | ({"Authorization": f"Bearer {there.key()}"} if there.key else {})


@contextmanager
def _cut_at(deadline: float, sock: socket.socket) -> Generator[None, None, None]:
    """End the conversation on a socket at `deadline`, whatever it is in the middle of.

    A socket's time-out bounds each read, not their sum: a server that sends a byte a second never runs into it.
    """
    left = max(0.001, deadline - time.monotonic())
    sock.settimeout(left)
    watch = threading.Timer(left, _cut, [sock])
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _answer(there: Endpoint, response: http.client.HTTPResponse, deadline: float) -> object:
    _check_status(there, response)
    content = _read(there, response)
    if time.monotonic() >= deadline:  # the connection was cut, which looks like an end
        raise TimeoutError
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        media = response.headers.get_content_type()
        media = media if _MEDIA_TYPE.fullmatch(media) else "something else"
        raise _lasting(there, f"that answers no JSON, but {media}, was found", "not_json", media_type=media) from error


def _read(there: Endpoint, response: http.client.HTTPResponse) -> bytes:
    content = bytearray()
    while chunk := response.read1(CHUNK_BYTES):
        content += chunk
        if len(content) > there.bytes_max:
            _refuse(there, f"that answers more than {there.bytes_max} bytes was found", "too_large")
    if response.length:  # what it announced and did not send
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(content)


def _check_status(there: Endpoint, response: http.client.HTTPResponse) -> None:
    status = response.status
    if status == 200:
        return
    if status in RETRIED:
        after_s = _retry_after_s(response.headers.get("Retry-After"))
        error = _unavailable(there, f"that answers with status {status} was found", "status", status=status)
        raise Failed(error, after_s)
    if 300 <= status < 400:
        _refuse(there, "that redirects elsewhere was found, and neither texts nor key are sent on", "redirected")
    if status in (401, 403):
        _refuse(there, f"that refuses the key (status {status}) was found", "unauthorised", status=status)
    if status == 404:
        _refuse(there, "that knows no such model or address (status 404) was found", "not_found", status=status)
    _refuse(there, f"that rejects the request with status {status} was found", "rejected", status=status)


def _retry_after_s(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, in either of its forms; what is neither says nothing."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value.strip()):
        return float(value)
    moment = parsedate_tz(value)
    try:
        return None if moment is None else max(0.0, mktime_tz(moment) - system_clock().timestamp())
    except (ValueError, OverflowError):
        return None


def _broken(there: Endpoint, error: Exception, *, late: bool) -> Failed:
    if late or isinstance(error, TimeoutError):
        return Failed(_unavailable(there, "that does not answer in time was found", "timeout"))
    if isinstance(error, ConnectionRefusedError | socket.gaierror):
        return Failed(_unavailable(there, "that cannot be reached was found", "unreachable"))
    return Failed(_unavailable(there, "that breaks off in its answer was found", "broken_off"))


def _refuse(there: Endpoint, found: str, reason: str, **details: Any) -> NoReturn:  # Any: as in failure
    raise _lasting(there, found, reason, **details)


def _lasting(there: Endpoint, found: str, reason: str, **details: Any) -> CorrigendaError:  # Any: as in failure
    """Return the error for what stays as it is until somebody changes it."""
    return _unavailable(there, found, reason, retriable=False, **details)


def _unavailable(there: Endpoint, found: str, reason: str, **details: Any) -> CorrigendaError:  # Any: as in failure
    return failure(
        "EMBEDDER_UNAVAILABLE",
        f"An embedder was expected at {there.host}; one {found}. Nothing of the answer was used, and what was "
        "remembered waits until it can be embedded. Check that server, and CORRIGENDA_EMBEDDER, _BASE_URL, _API_KEY.",
        reason=reason,
        host=there.host,
        **details,
    )
