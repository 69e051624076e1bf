"""Requests to the page, in this process, and a server of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import urlencode

from archsim.ui.server import PageServer, WhatIfApplication

HOST = "127.0.0.1:8050"
MARK = "between-two-parts"
Seen = tuple[int, dict[str, str], str]  # status, headers, body


def get(
    path: str = "/", query: str | dict[str, str] = "", app: WhatIfApplication | None = None, method: str = "GET",
    content: bytes = b"", **headers: str,
) -> Seen:  # fmt: skip
    """What the page answers to the browser that has opened the printed address, unless `headers` has another cookie."""
    app = app or WhatIfApplication(8050)
    query = query if isinstance(query, str) else urlencode(query)
    told = {"host": HOST, "origin": f"http://{HOST}", "cookie": f"other=1; {app.cookie}={app.key}", **headers}
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode("latin-1", "replace"), "root_path": "",
             "headers": [(name.replace("_", "-").encode(), value.encode("latin-1", "replace")) for name, value in told.items()]}
    return asyncio.run(_answered(app, scope, content))


async def _answered(app: WhatIfApplication, scope: dict[str, Any], content: bytes) -> Seen:
    sent: list[dict[str, Any]] = []
    given = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not given:
            await asyncio.Event().wait()
        return given.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(one.get("body", b"") for one in sent[1:]).decode()


def send(app: WhatIfApplication, name: str, content: bytes, **headers: str) -> Seen:
    """A file is dropped."""
    body = form_of(name, content)
    told = {"content_type": f"multipart/form-data; boundary={MARK}", "content_length": str(len(body))}
    return get("/upload", "", app, "POST", body, **{**told, **headers})


def form_of(name: str, content: bytes) -> bytes:
    """A file as a browser sends it."""
    head = f'--{MARK}\r\nContent-Disposition: form-data; name="file"; filename="{name.replace(chr(34), "%22")}"\r\n\r\n'
    return head.encode() + content + f"\r\n--{MARK}--\r\n".encode()


@contextmanager
def served() -> Iterator[PageServer]:
    """A server of the page that runs."""
    made = PageServer(0)
    running = Thread(target=made.run, daemon=True)
    running.start()
    while not made.started:
        sleep(0.01)
    try:
        yield made
    finally:
        made.should_exit = True
        running.join()
