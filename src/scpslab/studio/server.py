"""Serves the pages of a run to browsers of one person, on this machine.

A page is made when it is asked for and is answered to GET alone; there is nothing to change, upload or subscribe to. So
the standard library's server is enough. Who asks has to know the token in the address; a name of another host in Host
or Origin is refused, which keeps out pages of others that have their name point here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

from scpslab.core.errors import CapabilityError, ScpslabError
from scpslab.studio.page import Page
from scpslab.studio.run import RunPages

LOCAL = "127.0.0.1"
TOKEN_BYTES = 16
CELL = re.compile(r"cell/(\d{1,6})")
COMPARED = re.compile(r"compare/(\d{1,6})/(\d{1,6})")
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Studio(ThreadingHTTPServer):
    """A listening server of a run's pages. `address`: what a browser opens."""

    daemon_threads = True

    def __init__(self, pages: RunPages, listen: str = LOCAL, port: int = 0) -> None:
        self.pages, self.token = pages, secrets.token_urlsafe(TOKEN_BYTES)
        # One page at a time: they are made of the same files, and take memory.
        self.making = Lock()
        if ":" in listen:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((listen, port), Answer)
        except OSError as error:
            raise CapabilityError(
                f"{listen}, port {port}: found {error.strerror}; expected to listen there. "
                "Choose another with --listen or --port."
            ) from error
        host = f"[{listen}]" if ":" in listen else listen
        self.address = f"http://{host}:{self.server_port}/{self.token}/"

    def is_known(self, host: str) -> bool:
        """Whether a browser may call this machine so: localhost, an address, or the name of the machine."""
        name = urlsplit(f"//{host}").hostname or ""
        if name in ("localhost", socket.gethostname().lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def page(self, path: str) -> Callable[[], Page] | None:
        """What makes the page of a path behind the token; None where there is none."""
        cells = self.pages.run.cells
        if path == "":
            if len(cells) == 1:
                return lambda: self.pages.cells(cells, shown=(0,))
            return lambda: self.pages.table([f"cell/{number}" for number in range(len(cells))])
        for pattern, back in ((CELL, "../"), (COMPARED, "../../")):
            found = pattern.fullmatch(path)
            numbers = [int(number) for number in found.groups()] if found else []
            if numbers and all(number < len(cells) for number in numbers):
                chosen = [cells[number] for number in numbers]
                return lambda: self.pages.cells(chosen, shown=range(len(chosen)), back=back)
        return None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answers while the block runs."""
        thread = Thread(target=self.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()


class Answer(BaseHTTPRequestHandler):
    """The answer to one request."""

    server: Studio
    server_version, sys_version = "scpslab", ""
    timeout = 60

    def do_GET(self) -> None:
        """Sends a page, or says why not."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        is_foreign = origin is not None and urlsplit(origin).netloc != host
        if not self.server.is_known(host) or is_foreign:
            self._send(
                HTTPStatus.FORBIDDEN, "found another host's name; expected localhost or an address of this machine."
            )
            return
        _, token, path = [*urlsplit(self.path).path.split("/", 2), "", ""][:3]
        make = self.server.page(path) if hmac.compare_digest(token.encode(), self.server.token.encode()) else None
        if make is None:
            self._send(
                HTTPStatus.NOT_FOUND, "found no such page; expected the address that scpslab studio has printed."
            )
            return
        try:
            with self.server.making:
                text = make().html
        except ScpslabError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
            return
        self._send(HTTPStatus.OK, text, "text/html")

    def do_HEAD(self) -> None:
        """Sends what GET would, without the page."""
        self.do_GET()

    def _send(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
        """Nothing: the command prints the address and no more."""
