"""The pages as a WSGI application, and the server that offers them to this computer alone.

The application reads queries, and files that its own pages send; it opens no file that a query names. It answers to the browser
that has opened the printed address, which holds a key that is kept as a cookie: to no other user of this computer, and to no
page of another site, which can neither have work done, nor read an answer, nor send a file, nor run anything (the content
policy admits one script).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from importlib.resources import files
from secrets import compare_digest, token_urlsafe
from socket import SHUT_RD, SHUT_WR
from socketserver import ThreadingMixIn
from threading import Lock, Timer
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlencode
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from archsim.base.errors import ArchsimError
from archsim.base.files import files_within
from archsim.report.frame import asset
from archsim.report.markup import bound_styles, text
from archsim.ui.form import form
from archsim.ui.generation import model_result
from archsim.ui.result import problem, result
from archsim.ui.state import MODELS, NETWORKS, PageState, View, read_state
from archsim.ui.uploads import TooLarge, Uploads

ADDRESS = "127.0.0.1"
PORT = 8050
PATIENCE = 20.0  # for the header of a request, and for a browser that says nothing meanwhile [s]
DRAINED = 10.0  # for one that still sends what is refused [s]
HEADERS = [
    ("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
                                "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"), ("Cache-Control", "no-store"),
]  # fmt: skip
OPENED = '<!DOCTYPE html>\n<html lang="en"><meta http-equiv="refresh" content="0;url=/"><title>archsim</title></html>\n'
HTML, PLAIN = "text/html; charset=utf-8", "text/plain; charset=utf-8"
Answer = tuple[int, str, str]  # status, type, body
StartResponse = Callable[[str, list[tuple[str, str]]], object]


DRAWN: dict[str, Callable[[PageState], str]] = {NETWORKS.path: result, MODELS.path: model_result}
PAGES: dict[str, tuple[View, bool]] = {  # path -> the view, and whether the answer is a whole page or what a change draws anew
    path: (view, whole) for view in (NETWORKS, MODELS)
    for path, whole in ((view.path, True), (f"{view.path.rstrip('/')}/result", False))
}  # fmt: skip
UPLOAD = "/upload"


class WhatIfApplication:
    """The pages, what a change draws of them, the files that they are sent, a script and a style. `port` is that of the addresses
    it answers to."""

    def __init__(self, port: int) -> None:
        self.key = token_urlsafe(32)
        self.cookie = f"archsim_{port}={self.key}"
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")} | ({ADDRESS, "localhost"} if port == 80 else set())
        self.lock = Lock()  # one estimate at a time
        self.uploads = Uploads()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        opened = self._is_opened(environ)
        status, kind, body = (200, HTML, OPENED) if opened else self.answer(environ)
        content = body.encode("utf-8", "replace")
        kept = [("Set-Cookie", f"{self.cookie}; Path=/; HttpOnly; SameSite=Strict")] if opened else []
        start_response(_line(status), [("Content-Type", kind), ("Content-Length", str(len(content))), *HEADERS, *kept])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]

    def answer(self, environ: dict[str, Any]) -> Answer:
        """Status, type and body for a request."""
        path, query = environ.get("PATH_INFO", ""), environ.get("QUERY_STRING", "")
        refused = self._refused(environ, path)
        if refused is not None:
            return refused
        if path == "/ui.js":
            return 200, "text/javascript; charset=utf-8", "".join((asset("tables.js"), asset("tree.js"), _asset("ui.js")))
        if path == "/ui.css":
            return 200, "text/css; charset=utf-8", asset("page.css") + bound_styles() + _asset("ui.css")
        if path not in (*PAGES, UPLOAD):
            return 404, PLAIN, f"There is no such page; those that are: {', '.join(view.path for view in (NETWORKS, MODELS))}\n"
        try:
            if path == UPLOAD:
                return self._upload(environ, query)
            with self.lock, files_within(self.uploads.folder):
                return self._page(path, query)
        except Exception as error:  # the server stays up
            return 500, PLAIN, f"{type(error).__name__}: {error}\nThis is a defect of archsim; please report it.\n"

    def _is_opened(self, environ: dict[str, Any]) -> bool:
        """Whether the printed address is asked for, be it from a terminal in a page of another site."""
        asked = (environ["REQUEST_METHOD"], environ.get("PATH_INFO"), environ.get("HTTP_HOST") in self.hosts)
        return asked == ("GET", NETWORKS.path, True) and _equal(environ.get("QUERY_STRING", ""), f"key={self.key}")

    def _refused(self, environ: dict[str, Any], path: str) -> Answer | None:
        host, method = environ.get("HTTP_HOST", ""), environ["REQUEST_METHOD"]
        if host not in self.hosts:
            return 403, PLAIN, f"This server answers to {' and '.join(sorted(self.hosts))} only\n"
        if environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
            return 403, PLAIN, "Another site asks; open the page itself\n"
        if not any(_equal(part.strip(), self.cookie) for part in environ.get("HTTP_COOKIE", "").split(";")):
            return 403, PLAIN, "Open the address that `archsim ui` printed: it holds a key that others do not have\n"
        if path == UPLOAD and method == "POST":
            own = environ.get("HTTP_ORIGIN") == f"http://{host}"
            return None if own else (403, PLAIN, "Only the page itself sends files\n")
        if method not in ("GET", "HEAD") or path == UPLOAD:
            return 405, PLAIN, "Only GET is answered; files are sent by the page\n"
        if (environ.get("CONTENT_LENGTH") or "0") != "0" or environ.get("HTTP_TRANSFER_ENCODING"):
            return 413, PLAIN, "Nothing is taken with this request: everything stands in the address\n"
        return None

    def _upload(self, environ: dict[str, Any], query: str) -> Answer:
        """Keep a file; the answer is what it adds to the address."""
        length = environ.get("CONTENT_LENGTH") or "0"
        if environ.get("HTTP_TRANSFER_ENCODING") or not re.fullmatch(r"[0-9]{1,15}", length):
            return 413, PLAIN, "A file is taken with its length only\n"
        title = parse_qs(query, errors="replace").get("name", ["file"])[0]
        try:
            found = self.uploads.take(title, int(length), environ["wsgi.input"], self.lock)
        except TooLarge as error:
            return 413, PLAIN, f"{error}\n"
        except ArchsimError as error:
            return 400, PLAIN, f"{error}\n"
        except OSError as error:  # the browser has gone or is silent, or the disk is full
            return 400, PLAIN, f"{title}: was not taken ({error.strerror or error})\n"
        return 200, PLAIN, urlencode({"hw" if found.hw else "net": found.name})

    def _page(self, path: str, query: str) -> Answer:
        view, whole = PAGES[path]
        files_of_user = self.uploads.files
        state = read_state(view.default, view)
        try:
            state = read_state(query, view, files_of_user)
            status, body = 200, DRAWN[view.path](state)
        except ArchsimError as error:
            status, body = 400, problem(self.uploads.plain(str(error)))
        return status, HTML, self.uploads.plain(_whole(state, body, status != 200) if whole else body, text)


def _line(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


def _equal(one: str, other: str) -> bool:
    return compare_digest(one.encode("utf-8", "replace"), other.encode())


def _whole(state: PageState, body: str, wrong: bool) -> str:
    title = f"What if: {state.title(state.net)} on {state.title(state.hw)}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f'<title>{text(title)}</title>\n<link rel="icon" href="data:,">\n<link rel="stylesheet" href="/ui.css">\n</head>\n'
        "<body>\n"
        f'<main>\n<h1>What if</h1>\n<div class="ui">\n{form(state, wrong)}\n'
        f'<div><p id="said" role="status" class="quiet"></p>\n<div id="result">\n{body}\n</div></div>\n</div>\n</main>\n'
        '<script src="/ui.js"></script>\n</body>\n</html>\n'
    )


def _asset(name: str) -> str:
    return files("archsim.ui").joinpath(name).read_text(encoding="utf-8")


class _QuietHandler(WSGIRequestHandler):
    """Answers without a line on the terminal for each request; a connection that is silent, or trickles a header, is closed."""

    timeout = PATIENCE

    def setup(self) -> None:
        """Begin the time for the header."""
        super().setup()
        self.late = Timer(PATIENCE, self._give_up)
        self.late.daemon = True
        self.late.start()

    def get_environ(self) -> dict[str, Any]:
        """The header is whole."""
        self.late.cancel()
        return super().get_environ()

    def finish(self) -> None:
        """The connection ends."""
        self.late.cancel()
        super().finish()

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(SHUT_RD)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _PageServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; what is still sent of a refused file is read first, for else the browser never sees the answer."""
        until = monotonic() + DRAINED
        with suppress(OSError):
            request.shutdown(SHUT_WR)
            request.settimeout(1.0)
            while monotonic() < until and request.recv(1 << 20):
                pass
        self.close_request(request)

    def server_close(self) -> None:
        """End, and delete what was sent."""
        super().server_close()
        application = self.get_app()
        if isinstance(application, WhatIfApplication):
            application.uploads.close()


def address_of(made: WSGIServer) -> str:
    """The address that opens the pages of a server in a browser."""
    application = made.get_app()
    assert isinstance(application, WhatIfApplication)
    return f"http://{ADDRESS}:{made.server_port}/?key={application.key}"


def server(port: int) -> WSGIServer:
    """A server on this computer alone; port 0 takes a free one. Raises OSError where the port is taken."""
    made = make_server(ADDRESS, port, _placeholder, server_class=_PageServer, handler_class=_QuietHandler)
    made.set_app(WhatIfApplication(made.server_port))
    return made


def _placeholder(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Before the port is known."""
    start_response(_line(404), [])
    return []
