"""Requests to the page, in this process."""

from __future__ import annotations

from io import BytesIO
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults

from archsim.ui.server import WhatIfApplication

HOST = "127.0.0.1:8050"
Seen = tuple[int, dict[str, str], str]  # status, headers, body


def get(path: str = "/", query: str | dict[str, str] = "", app: WhatIfApplication | None = None, **environ: str) -> Seen:
    """What the page answers to the browser that has opened the printed address."""
    app = app or WhatIfApplication(8050)
    query = query if isinstance(query, str) else urlencode(query)
    return asked(app, {"PATH_INFO": path, "QUERY_STRING": query, **environ})


def send(app: WhatIfApplication, name: str, content: bytes, **environ: str) -> Seen:
    """A file is dropped."""
    told = {"PATH_INFO": "/upload", "QUERY_STRING": urlencode({"name": name}), "CONTENT_LENGTH": str(len(content))}
    return asked(app, {"REQUEST_METHOD": "POST", **told, **environ}, content)


def asked(app: WhatIfApplication, told: dict[str, str], content: bytes = b"") -> Seen:
    """What is answered to the browser that has opened the printed address, unless `told` has another cookie."""
    own = {"HTTP_HOST": HOST, "HTTP_ORIGIN": f"http://{HOST}", "HTTP_COOKIE": f"other=1; {app.cookie}"}
    environ: dict[str, object] = {**own, **told, "wsgi.input": BytesIO(content)}
    setup_testing_defaults(environ)
    seen: list[tuple[str, list[tuple[str, str]]]] = []
    body = b"".join(app(environ, lambda status, headers: seen.append((status, headers))))
    return int(seen[0][0][:3]), dict(seen[0][1]), body.decode()
