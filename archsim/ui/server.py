"""The pages as an application of starlette, and uvicorn, which offers them to this computer alone.

The application reads queries, and files that its own pages send; it opens no file that a query names. It answers to the browser
that has opened the printed address, which holds a key that is kept as a cookie: to no other user of this computer, and to no
page of another site, which can neither have work done, nor read an answer, nor send a file, nor run anything (the content
policy admits one script).
"""

from __future__ import annotations

from asyncio import Transport
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from socket import create_server, socket
from typing import Any
from urllib.parse import parse_qsl, urlencode

from anyio import CapacityLimiter, fail_after, to_thread
from markdown_it import MarkdownIt
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from archsim.base.errors import ArchsimError
from archsim.base.files import files_within
from archsim.device.catalog import canonical as canonical_device
from archsim.render.html import asset, marked, styles, templated
from archsim.trace.file import canonical
from archsim.ui.estimates import fault_of
from archsim.ui.form import form, in_words
from archsim.ui.shown import model_result, result
from archsim.ui.state import HELP, MODELS, NETWORKS, PageState, View, read_state
from archsim.ui.uploads import MOST_BYTES, Uploads

ADDRESS = "127.0.0.1"
PATIENCE = 20.0  # for the header of a request, for what is still sent of a refused file, and for the last answers at the end [s]
SENT = 300.0  # in which a file has to be sent [s]
MOST_PENDING = 2  # files that are being sent
MOST_LINKS = 100  # connections; the next one is told to come again
AROUND = 1 << 12  # of the bytes of a file that is sent: its name, and what marks its end
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
                               "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
}  # fmt: skip
PAGES: dict[str, tuple[View, Callable[[PageState], str]]] = {view.path: (view, drawn) for view, drawn in (
    (NETWORKS, result), (MODELS, model_result))}  # fmt: skip
PART = "/result"  # behind the path of a page: what a change draws anew


class WhatIfApplication(Starlette):
    """The pages, what a change draws of them, the files that they are sent, a script and a style. `port` is that of the addresses
    it answers to."""

    def __init__(self, port: int) -> None:
        self.key, self.cookie = token_urlsafe(32), f"archsim_{port}"
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")} | ({ADDRESS, "localhost"} if port == 80 else set())
        self.uploads = Uploads()
        self.working, self.sending = CapacityLimiter(1), CapacityLimiter(MOST_PENDING)
        pages = [Route(path.rstrip("/") + part or "/", self._page) for path in PAGES for part in ("", PART)]
        fixed = [Route(path, made) for path, made in (("/ui.js", _script), ("/ui.css", _style), (HELP, _help))]
        super().__init__(
            routes=[*pages, *fixed, Route("/upload", self._upload, methods=["POST"])],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=self._guarded)], lifespan=_deleting,
            exception_handlers=dict.fromkeys((ArchsimError, ClientDisconnect, OSError), _told),
        )  # fmt: skip
        self.router.redirect_slashes = False

    async def _guarded(self, request: Request, onward: RequestResponseEndpoint) -> Response:
        """The answer to a request that may be answered, under headers that keep other sites out."""
        try:
            why = self._refused(request)
            response = self._opened(request) or (PlainTextResponse(f"{why}\n", 403) if why else await onward(request))
        except Exception as error:  # the server stays up
            response = PlainTextResponse(f"This is a defect of archsim; please report it: {type(error).__name__}: {error}\n", 500)
        response.headers.update(HEADERS)
        return response

    def _opened(self, request: Request) -> Response | None:
        """The cookie, for the printed address, be it opened from a terminal in a page of another site."""
        words, path, host = request.query_params, request.scope["path"], request.headers.get("host")
        if request.method != "GET" or path not in PAGES or host not in self.hosts or not _equal(words.get("key"), self.key):
            return None
        rest = urlencode([(name, value) for name, value in words.multi_items() if name != "key"])
        response = HTMLResponse(_templated("opened", path=path, query=rest))
        response.set_cookie(self.cookie, self.key, httponly=True, samesite="strict")
        return response

    def _refused(self, request: Request) -> str:
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return f"This server answers to {' and '.join(sorted(self.hosts))} only"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "Another site asks; open the page itself"
        if not _equal(request.cookies.get(self.cookie), self.key):
            return "Open the address that `archsim ui` printed: it holds a key that others do not have"
        if request.method == "POST" and request.headers.get("origin") != f"http://{host}":
            return "Only the page itself sends files"
        return ""

    async def _page(self, request: Request) -> Response:
        path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
        asked = path.removesuffix(PART) or "/", not path.endswith(PART), query
        return await to_thread.run_sync(self._drawn, *asked, limiter=self.working)

    def _drawn(self, path: str, whole: bool, query: str) -> Response:
        (view, drawn), own, code, state = PAGES[path], self.uploads.files, 200, None
        with files_within(self.uploads.folder):
            try:
                state = read_state(query, view, own)
                body = drawn(state)
            except ArchsimError as error:
                field, rest = fault_of(query, view, own)
                state = state or read_state(rest, view, own)
                message = in_words(self.uploads.plain(str(error)), view)
                code, body = 400, _templated("problem", message=message, field=field)
            if whole:
                body = _templated("page", state=state, form=marked(form(state)), body=marked(body))
            return HTMLResponse(self.uploads.plain(body, escape), code)

    async def _upload(self, request: Request) -> Response:
        """Keep a file; the answer is what it adds to the address."""
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or len(length) > 15 or int(length) > MOST_BYTES + AROUND:
            raise HTTPException(413, f"A file has its length, and at most {MOST_BYTES >> 20} MiB: "
                                     "`archsim whatif --net FILE` reads larger ones")  # fmt: skip
        if not self.sending.available_tokens:
            raise HTTPException(400, "Other files are still being sent; drop it again when they are there")
        async with self.sending:
            with fail_after(SENT):
                sent = await request.form(max_files=1, max_fields=0)
            async with request.form():
                file = sent.get("file")
                if not isinstance(file, UploadFile):
                    raise HTTPException(400, "No file was sent")
                found = await to_thread.run_sync(self.uploads.take, file.filename or "", file.file, limiter=self.working)
        return PlainTextResponse(urlencode({"hw" if found.hw else "net": found.name}))


def _told(request: Request, error: Exception) -> Response:
    """What is the matter with a file, its sender or the disk."""
    late = f"the file was not sent within {SENT:.0f} s" if isinstance(error, TimeoutError) else ""
    return PlainTextResponse(f"{late or getattr(error, 'strerror', None) or error}\n", 408 if late else 400)


@asynccontextmanager
async def _deleting(app: Starlette) -> AsyncIterator[None]:
    """What was sent is deleted when the server ends."""
    yield
    assert isinstance(app, WhatIfApplication)
    app.uploads.close()


def _equal(one: str | None, other: str) -> bool:
    return compare_digest((one or "").encode("utf-8", "replace"), other.encode())


def _templated(name: str, **given: Any) -> str:
    return templated(f"{name}.html", "archsim.ui", **given)


def _script(request: Request) -> Response:
    return Response(asset("tables.js") + asset("tree.js") + asset("ui.js", "archsim.ui"), media_type="text/javascript")


def _style(request: Request) -> Response:
    return Response(styles() + asset("ui.css", "archsim.ui"), media_type="text/css")


def _help(request: Request) -> Response:
    """The page of the manual about these pages; it is Markdown."""
    page = MarkdownIt("commonmark", {"html": False}).render(asset("ui.md", "archsim.manual"))
    return HTMLResponse(_templated("page", state=None, body=marked(page)))


class _PatientProtocol(H11Protocol):
    """HTTP as uvicorn speaks it; a connection on which no whole header has come for a time is closed."""

    seen: Any = None  # the last request when the time began

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin the time."""
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        if self.cycle is self.seen and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
            self.seen = self.cycle
            self.loop.call_later(PATIENCE, self._look)


class PageServer(Server):
    """A server on this computer alone; port 0 takes a free one. Raises OSError where the port is taken."""

    def __init__(self, port: int) -> None:
        self.socket = create_server((ADDRESS, port))
        self.app = WhatIfApplication(self.socket.getsockname()[1])
        super().__init__(Config(
            self.app, http=_PatientProtocol, ws="none", lifespan="on", log_config=None, log_level="critical", access_log=False,
            proxy_headers=False, server_header=False, limit_concurrency=MOST_LINKS, timeout_graceful_shutdown=int(PATIENCE),
        ))  # fmt: skip

    def address(self, net: str | None = None, hw: str | None = None) -> str:
        """The address that opens a page in a browser, with a network or a language model, and a device: any name, or a file.

        Raises ArchsimError.
        """
        chosen = {field: self._own(name) if Path(name).is_file() else known(name)
                  for field, name, known in (("net", net, canonical), ("hw", hw, canonical_device)) if name}  # fmt: skip
        view = MODELS if chosen.get("net") in set(MODELS.nets()) - set(NETWORKS.nets()) else NETWORKS
        words = {**dict(parse_qsl(view.default)), **chosen} if chosen else {}
        read_state(urlencode(words), view, self.app.uploads.files)  # raises what the page would say
        return f"http://{ADDRESS}:{self.socket.getsockname()[1]}{view.path}?{urlencode({'key': self.app.key, **words})}"

    def _own(self, path: str) -> str:
        with open(path, "rb") as stream:
            return self.app.uploads.take(path, stream).name

    def run(self, sockets: list[socket] | None = None) -> None:
        """Serve until SIGINT, SIGTERM or `should_exit`."""
        super().run([self.socket])
