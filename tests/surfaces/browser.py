"""A real browser, driven by the W3C WebDriver protocol: just the few of its commands that tests need."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
NO_BROWSER = None if DRIVER and BROWSER else "no browser is installed (Debian: chromium, chromium-driver)"
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # what the protocol calls an element's id
_PATIENCE_S = 30.0


class Browser:
    """One session of a browser."""

    def __init__(self, driver: str, made: Path) -> None:
        self._session = driver + "/session"
        options = {"binary": BROWSER, "args": [*_FLAGS, f"--user-data-dir={made}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        self._session += "/" + self._call("POST", "", wanted)["sessionId"]

    def open(self, path: Path) -> None:
        """Show a file."""
        self._call("POST", "/url", {"url": path.as_uri()})

    def script(self, text: str, *arguments: Any) -> Any:  # Any: JSON
        """Run a script in the page, and return what it returns."""
        return self._call("POST", "/execute/sync", {"script": text, "args": arguments})

    def write(self, selector: str, text: str) -> None:
        """Type a text into a field."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT]
        self._call("POST", f"/element/{found}/clear", {})
        self._call("POST", f"/element/{found}/value", {"text": text})

    def wait(self, condition: str) -> Any:  # Any: JSON
        """Wait until an expression is true in the page, and return what it is."""
        until = time.monotonic() + _PATIENCE_S
        while not (found := self.script(f"return {condition}")):
            if time.monotonic() > until:
                raise AssertionError(f"never came true in the page: {condition}")
            time.sleep(0.05)
        return found

    def close(self) -> None:
        """End the session."""
        with suppress(OSError):
            self._call("DELETE", "", None)

    def _call(self, method: str, path: str, body: object) -> Any:  # Any: JSON
        raw = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._session + path, raw, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            return json.load(answer)["value"]


@contextmanager
def browser(made: Path) -> Iterator[Browser]:
    """Run a browser for as long as the block runs; it keeps its files in `made`."""
    assert DRIVER is not None
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            opened = Browser(f"http://127.0.0.1:{port}", made)
            try:
                yield opened
            finally:
                opened.close()
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
