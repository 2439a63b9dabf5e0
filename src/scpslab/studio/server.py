"""Serves the pages of a run to browsers of one person, on this machine.

A page is made when it is asked for; only a lab that runs takes acts, by POST. So the standard library's server is
enough. Who asks has to know the token in the address; a name of another host in Host or Origin is refused, which keeps
out pages of others that have their name point here (DNS rebinding). An act has to say its Origin, and to be JSON, which
no form of another page can send.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit

from scpslab.core.errors import CapabilityError, ScpslabError
from scpslab.core.strict_json import loads
from scpslab.studio.live import Live
from scpslab.studio.page import Page, RunPages

LOCAL = "127.0.0.1"
TOKEN_BYTES = 16
MOST_BYTES = 1 << 14
NOT_OURS = "found another host's name; expected localhost or an address of this machine."
NO_PAGE = "found no such page; expected the address that scpslab studio has printed."
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Studio(ThreadingHTTPServer):
    """A listening server of the pages of a run, or of a lab that runs. `address`: what a browser opens."""

    daemon_threads = True

    def __init__(self, pages: RunPages | Live, listen: str = LOCAL, port: int = 0) -> None:
        self.pages, self.token = pages, secrets.token_urlsafe(TOKEN_BYTES)
        # One page at a time: they are made of the same files, and take memory.
        self.making = Lock()
        if ":" in listen:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((listen, port), Answer)
        except OSError as error:
            expected = "expected to listen there. Choose another with --listen or --port."
            raise CapabilityError(f"{listen}, port {port}: found {error.strerror}; {expected}") from error
        host = f"[{listen}]" if ":" in listen else listen
        self.address = f"http://{host}:{self.server_port}/{self.token}/"

    def is_known(self, host: str) -> bool:
        """Whether a browser may call this machine so: localhost, an address, or the name of the machine."""
        with suppress(ValueError):
            name = urlsplit(f"//{host}").hostname or ""
            return name in ("localhost", socket.gethostname().lower()) or bool(ipaddress.ip_address(name))
        return False

    def page(self, path: str) -> Callable[[], Page] | None:
        """What makes the page of a path behind the token; None where there is none."""
        pages = self.pages
        if isinstance(pages, Live):
            return pages.page if path == "" else None
        if path == "":
            self.pages = pages.again()
            return self.pages.first
        kind, *chosen = map(unquote, path.split("/"))
        if len(chosen) != {"cell": 1, "compare": 2}.get(kind) or not all(one in pages.cells for one in chosen):
            return None
        return lambda: pages.page(chosen, shown=range(len(chosen)), back="../" * len(chosen))

    def told(self, path: str, query: str) -> Mapping[str, object] | None:
        """What a page asks for again and again; None where there is no such thing."""
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        if isinstance(self.pages, Live):
            after = int(asked.get("after", "0")) if path == "live" else 0
            return self.pages.state(after, asked.get("version", "")) if path == "live" else None
        return {"cells": len(self.pages.again().cells)} if path == "cells" else None

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

    def handle(self) -> None:
        """Answers; that a browser has gone away is nothing to tell."""
        with suppress(OSError):
            super().handle()

    def do_GET(self) -> None:
        """Sends a page, or what it asks for, or says why not."""
        path, query = self._path(), self.path.partition("?")[2]
        if path is None:
            return
        try:
            with self.server.making:
                told, make = self.server.told(path, query), self.server.page(path)
                text = json.dumps(told) if told else make().html if make else ""
        except (ScpslabError, OSError, ValueError) as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
            return
        if text:
            self._send(HTTPStatus.OK, text, "application/json" if told else "text/html")
        else:
            self._send(HTTPStatus.NOT_FOUND, NO_PAGE)

    def do_POST(self) -> None:
        """Does an act in a lab that runs, or says why not."""
        path, live, length = self._path(), self.server.pages, self.headers.get("Content-Length", "")
        if path is None:
            return
        if path != "live" or not isinstance(live, Live):
            self._send(HTTPStatus.NOT_FOUND, NO_PAGE)
            return
        is_json = self.headers.get("Content-Type") == "application/json"
        is_short = len(length) < 10 and length.isdecimal() and int(length) <= MOST_BYTES
        if not (self.headers.get("Origin") and is_json and is_short):
            self._send(HTTPStatus.FORBIDDEN, "found no act of the page's own; expected its Origin, and short JSON.")
            return
        try:
            said = loads(self.rfile.read(int(length)))
            done = live.act(said if isinstance(said, dict) else {})
        except (ScpslabError, OSError, ValueError) as error:
            self._send(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._send(HTTPStatus.OK, json.dumps(done), "application/json")

    def _path(self) -> str | None:
        """The path behind the token; None where the answer is sent already."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not self.server.is_known(host) or (origin is not None and origin.partition("//")[2] != host):
            self._send(HTTPStatus.FORBIDDEN, NOT_OURS)
            return None
        _, token, path = [*self.path.partition("?")[0].split("/", 2), "", ""][:3]
        if hmac.compare_digest(token.encode(), self.server.token.encode()):
            return path
        self._send(HTTPStatus.NOT_FOUND, NO_PAGE)
        return None

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
