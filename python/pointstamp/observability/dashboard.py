"""The live page: a small web server of this process, for people and for Prometheus.

It serves one page that fetches nothing from elsewhere, the state as JSON, the reasons why the dataflows wait
as a text, and metrics. On the loopback interface it answers requests with its own host name (a request of
another site in the same browser has another name); on any other interface, only requests with the token of
its address.

Connections are bounded in number, and each of them in time and in bytes as a whole, however slowly it sends.
"""

from __future__ import annotations

import errno
import hmac
import json
import logging
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from pointstamp.config import written_address
from pointstamp.errors import ConfigError
from pointstamp.observability.metrics import prometheus
from pointstamp.runtime.bootstrap.gate import PAUSE, Gate
from pointstamp.runtime.threads import Helper, join

if TYPE_CHECKING:
    from types import TracebackType

    from pointstamp.runtime.bootstrap.gate import PendingConnection

__all__ = ["Answers", "Page", "announce", "as_json", "document", "live_answers"]

Answers = dict[str, Callable[[dict[str, str]], tuple[str, str]]]
"""By path, the answer: a function of the query that returns a kind of content and a text."""

PAGE = Path(__file__).with_name("page")
"""Its parts: markup, style, and the script in the order of `SCRIPTS`. They are sent as one file."""

SCRIPTS = ("base.js", "layout.js", "page.js")

PATIENCE = 10.0
"""Seconds that a browser has to send its request, once it has connected, and then to take each part of the
answer.
"""

REQUEST = 1 << 16
"""Bytes of a request, at most."""

ANSWERED = 64
"""Requests that are answered at once; further ones are refused."""

LEAVING = 1.0
"""Seconds that connections which are open have to end, when the page does."""

COOKIE = "pointstamp-token"

LOG = logging.getLogger("pointstamp.page")

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server
    server_version = "pointstamp"
    sys_version = ""
    timeout = PATIENCE
    disable_nagle_algorithm = True  # headers and body are two writes, the second of which would wait 40 ms

    def setup(self) -> None:
        super().setup()
        self.rfile = _Bounded(self.rfile)  # type: ignore[assignment]

    def do_GET(self) -> None:
        if not self.server.admitted(self.request):
            _send(self, 503, "text/plain", "Too many requests are being answered: try again.\n")
        else:
            self.server.answer(self)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class _Bounded:
    """Lines of a request, of so many bytes in all."""

    def __init__(self, lines: Any) -> None:
        self._lines = lines
        self._left = REQUEST

    def readline(self, size: int) -> bytes:
        line: bytes = self._lines.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise ConnectionError(f"a request of more than {REQUEST} bytes")
        return line

    def close(self) -> None:
        self._lines.close()

    @property
    def closed(self) -> bool:
        closed: bool = self._lines.closed
        return closed


class _Server(ThreadingHTTPServer):
    """A server that leaves no connection and no thread behind: browsers open some that they never use."""

    daemon_threads = True
    request_queue_size = 128
    answer: Callable[[BaseHTTPRequestHandler], None]

    def __init__(self, host: str, port: int) -> None:
        self._open: dict[Any, threading.Thread] = {}
        self._gate = Gate("the page", LOG)
        self._pending: dict[Any, PendingConnection] = {}
        self._answered = 0
        self._lock = threading.Lock()
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def get_request(self) -> tuple[Any, Any]:
        """Takes a connection, once there is room for one."""
        if not self._gate.make_room():
            raise OSError("the page is closed")
        try:
            request, address = super().get_request()
            try:
                self._pending[request] = self._gate.enter(request, str(address[0]))
            except OSError:
                request.close()
                raise
        except OSError:
            time.sleep(PAUSE)  # too many files are open: the connection still waits
            raise
        return request, address

    def service_actions(self) -> None:
        """Ends connections that have taken too long, whatever they send meanwhile."""
        super().service_actions()
        self._gate.send_away_older(PATIENCE)

    def admitted(self, request: Any) -> bool:
        """Notes that a connection has sent its request; returns whether it is answered."""
        self._pending[request].proved = True
        with self._lock:
            self._answered += 1
            return self._answered <= ANSWERED

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self._open[request] = threading.current_thread()
        super().process_request_thread(request, client_address)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open[request] = threading.current_thread()  # until its own thread has begun
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.pop(request, None)
        peer = self._pending.pop(request, None)
        if peer is not None:
            if peer.proved:
                with self._lock:
                    self._answered -= 1
            self._gate.leave(peer)  # not logged: browsers make connections that they never use
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A request that makes no sense is nothing for the program's standard error."""
        LOG.debug("a request was not answered", exc_info=True)

    def server_close(self) -> None:
        super().server_close()
        self._gate.close()
        until = time.monotonic() + LEAVING
        for request, thread in list(self._open.items()):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)  # which ends a read and a write that wait
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))


class Page:
    """The page, for as long as the block runs.

    Args:
        host: The interface to listen on.
        port: The port; 0 takes a free one.
        answers: By path, the answer: a function of the query that returns a kind of content and a text.
        argument: The program's argument for the port, for errors.

    Raises:
        ConfigError: If it cannot listen there.
    """

    def __init__(self, host: str, port: int, answers: Answers, argument: str = "dashboard=") -> None:
        self.token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        try:
            self._server = _Server(host, port)
        except OSError as error:  # of the port, or of the interface
            raise ConfigError(argument + _refused(host, port, error)) from None
        self._server.answer = lambda request: self.answer(request, answers)
        at = self._server.server_address[1]
        self.address = f"http://{written_address(host, at)}/"
        self.url = self.address if self.token is None else f"{self.address}?token={self.token}"
        self._thread = Helper(
            lambda: self._server.serve_forever(poll_interval=0.1), "pointstamp-page", daemon=True
        )

    def answer(
        self,
        request: BaseHTTPRequestHandler,
        answers: Answers,
    ) -> None:
        """Answers a request, if it may be answered."""
        try:
            where = urlsplit(request.path)
        except ValueError:
            return _send(request, 400, "text/plain", "This is no address.\n")
        query = {name: values[0] for name, values in parse_qs(where.query).items()}
        if not self._may(request, query):
            return _send(request, 403, "text/plain", "This page needs the token that its program printed.\n")
        if where.path == "/":
            nonce = secrets.token_urlsafe(12)
            return _send(request, 200, "text/html", document(nonce), nonce=nonce, cookie=self.token)
        found = answers.get(where.path)
        if found is None:
            return _send(request, 404, "text/plain", "There is no such page.\n")
        try:
            kind, text = found(query)
        except Exception as error:
            return _send(request, 503, "text/plain", f"{error}\n")
        return _send(request, 200, kind, text)

    def _may(self, request: BaseHTTPRequestHandler, query: dict[str, str]) -> bool:
        if self.token is None:
            # A name that leads to this host but is none of its own is another site's, in the user's browser.
            name = request.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
            return name in LOOPBACK
        cookies = request.headers.get("Cookie", "").split("; ")
        brought = [cookie[len(COOKIE) + 1 :] for cookie in cookies if cookie.startswith(f"{COOKIE}=")]
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        for token in (*brought, bearer, query.get("token", "")):
            if hmac.compare_digest(token.encode(), self.token.encode()):
                return True
        return False

    def __enter__(self) -> Page:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._thread.ends(0.0):  # else nobody serves, or ever will, where `start` was interrupted
            self._server.shutdown()
            join([self._thread], 0.1)
        self._server.server_close()


def document(nonce: str) -> str:
    """Returns the page as one file, whose style and script are permitted by a random nonce."""
    parts = {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir()}
    text = parts["page.html"].replace("NONCE", nonce).replace("STYLE\n", parts["page.css"])
    return text.replace("SCRIPT\n", '"use strict";\n' + "\n".join(parts[name] for name in SCRIPTS))


def _refused(host: str, port: int, error: OSError) -> str:
    """Why the page cannot be where the program wants it."""
    given = repr(written_address(host, port)) if host != LOOPBACK[0] else str(port)
    if error.errno == errno.EADDRINUSE:
        return f"{given}: the port is in use, perhaps by another run; 0 takes a free one"
    if error.errno == errno.EACCES:
        return f"{given}: this program may not have the port; take one above 1023, or 0 for a free one"
    return f"{given}: {host} is no address of this machine to listen on ({error.strerror or error})"


def _send(
    request: BaseHTTPRequestHandler,
    status: int,
    kind: str,
    text: str,
    *,
    nonce: str | None = None,
    cookie: str | None = None,
) -> None:
    body = text.encode()
    try:
        request.send_response(status)
        request.send_header("Content-Type", f"{kind}; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Cache-Control", "no-store")
        request.send_header("X-Content-Type-Options", "nosniff")
        request.send_header("Referrer-Policy", "no-referrer")
        script = "" if nonce is None else f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        policy = f"default-src 'none'; {script}connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
        request.send_header("Content-Security-Policy", policy)
        if cookie is not None:
            request.send_header("Set-Cookie", f"{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/")
        request.end_headers()
        request.wfile.write(body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the browser has closed the connection


def as_json(value: Any) -> tuple[str, str]:
    """An answer of JSON."""
    return "application/json", json.dumps(value)


def live_answers(state: Callable[[], dict[str, Any]], explanation: Callable[[], str]) -> Answers:
    """The answers of the page of a computation that runs.

    Args:
        state: Returns the state of its dataflows, workers and processes.
        explanation: Returns the reasons why its dataflows wait.
    """
    return {
        "/about": lambda query: as_json({"moments": 0}),
        "/state": lambda query: as_json(state()),
        "/explain": lambda query: ("text/plain", explanation()),
        "/metrics": lambda query: ("text/plain; version=0.0.4", prometheus(state())),
    }


def announce(url: str) -> None:
    """Says where the page is."""
    if sys.stderr is not None:
        sys.stderr.write(f"pointstamp: the live page is at {url}\n")
        sys.stderr.flush()
