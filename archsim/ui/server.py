"""The page as a WSGI application, and the server that offers it to this computer alone.

The application reads queries and nothing else: no bodies, no files that a query names. A page of another site can neither read
its answers (hosts other than this computer are refused) nor run anything in them (the content policy admits one script).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from socketserver import ThreadingMixIn
from threading import Lock
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from archsim.base.errors import ArchsimError
from archsim.report.frame import asset
from archsim.report.markup import bound_styles
from archsim.ui.form import form
from archsim.ui.result import problem, result
from archsim.ui.state import DEFAULT, PageState, read_state

ADDRESS = "127.0.0.1"
PORT = 8050
PATIENCE = 20.0  # for a browser that says nothing [s]
HEADERS = [
    ("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
                                "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"), ("Cache-Control", "no-store"),
]  # fmt: skip
STATUS = {200: "200 OK", 400: "400 Bad Request", 403: "403 Forbidden", 404: "404 Not Found", 405: "405 Method Not Allowed",
          413: "413 Content Too Large", 500: "500 Internal Server Error"}  # fmt: skip
HTML, PLAIN = "text/html; charset=utf-8", "text/plain; charset=utf-8"
Answer = tuple[int, str, str]  # status, type, body
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class WhatIfApplication:
    """The page at `/`, what a change draws at `/result`, a script and a style. `port` is that of the addresses it answers to."""

    def __init__(self, port: int) -> None:
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")} | ({ADDRESS, "localhost"} if port == 80 else set())
        self.lock = Lock()  # one estimate at a time

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        status, kind, body = self.answer(environ)
        content = body.encode("utf-8", "replace")
        start_response(STATUS[status], [("Content-Type", kind), ("Content-Length", str(len(content))), *HEADERS])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]

    def answer(self, environ: dict[str, Any]) -> Answer:
        """Status, type and body for a request."""
        refused = self._refused(environ)
        if refused is not None:
            return refused
        path, query = environ.get("PATH_INFO", ""), environ.get("QUERY_STRING", "")
        if path == "/ui.js":
            return 200, "text/javascript; charset=utf-8", _asset("ui.js")
        if path == "/ui.css":
            return 200, "text/css; charset=utf-8", asset("page.css") + bound_styles() + _asset("ui.css")
        if path not in ("/", "/result"):
            return 404, PLAIN, "There is no such page; the only one is /\n"
        with self.lock:
            try:
                return _page(query) if path == "/" else _fragment(query)
            except Exception as error:  # the server stays up
                return 500, PLAIN, f"{type(error).__name__}: {error}\nThis is a defect of archsim; please report it.\n"

    def _refused(self, environ: dict[str, Any]) -> Answer | None:
        if environ.get("HTTP_HOST", "") not in self.hosts:
            return 403, PLAIN, f"This server answers to {' and '.join(sorted(self.hosts))} only\n"
        if environ.get("HTTP_SEC_FETCH_SITE") == "cross-site" and environ.get("PATH_INFO") != "/":
            return 403, PLAIN, "Another site asks; open the page itself\n"
        length = environ.get("CONTENT_LENGTH") or "0"
        if length != "0" or environ.get("HTTP_TRANSFER_ENCODING"):
            return 413, PLAIN, "No upload is taken: everything stands in the address\n"
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return 405, PLAIN, "Only GET is answered\n"
        return None


def _page(query: str) -> Answer:
    status, state, body = _evaluated(query)
    title = f"What if: {state.net} on {state.hw}"
    top = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f'<title>{title}</title>\n<link rel="icon" href="data:,">\n<link rel="stylesheet" href="/ui.css">\n</head>\n<body>\n'
        f'<main>\n<h1>What if</h1>\n<div class="ui">\n{form(state, status != 200)}\n'
        f'<div><p id="said" role="status" class="quiet"></p>\n<div id="result">\n{body}\n</div></div>\n</div>\n</main>\n'
    )
    return status, HTML, top + '<script src="/ui.js"></script>\n</body>\n</html>\n'


def _fragment(query: str) -> Answer:
    status, _, body = _evaluated(query)
    return status, HTML, body


def _evaluated(query: str) -> tuple[int, PageState, str]:
    """Status, state and what is drawn; a query that is none, or that cannot be estimated, gives its message."""
    state = read_state(DEFAULT)
    try:
        state = read_state(query)
        return 200, state, result(state)
    except ArchsimError as error:
        return 400, state, problem(str(error))


def _asset(name: str) -> str:
    return files("archsim.ui").joinpath(name).read_text(encoding="utf-8")


class _QuietHandler(WSGIRequestHandler):
    """Answers without a line on the terminal for each request; a connection that is silent is closed."""

    timeout = PATIENCE

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _PageServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def server(port: int) -> WSGIServer:
    """A server on this computer alone; port 0 takes a free one. Raises OSError where the port is taken."""
    made = make_server(ADDRESS, port, _placeholder, server_class=_PageServer, handler_class=_QuietHandler)
    made.set_app(WhatIfApplication(made.server_port))
    return made


def _placeholder(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Before the port is known."""
    start_response(STATUS[404], [])
    return []
