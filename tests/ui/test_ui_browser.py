"""The what-if page in a browser: a slider redraws the result, the address follows, nothing fails. Needs chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from archsim.ui.server import WhatIfApplication, server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Moves the slider of the SMs ten times as the arrow keys would, each time when the last result has come, and writes what it saw.
DRIVE = """
window.failed = [];
["error", "unhandledrejection", "securitypolicyviolation"].forEach(function (kind) {
  window.addEventListener(kind, function (event) { failed.push(kind + " " + (event.message || event.violatedDirective)); });
});
var box = document.getElementById("k-sm.count"), slider = box.parentNode.querySelector("input[type=range]");
var moves = 0, seen = [];
new MutationObserver(function () {
  if (result.getAttribute("aria-busy") !== "false") { return; }
  seen.push(result.querySelector(".big").textContent);
  if (moves < 10) { move(); } else { tell(); }
}).observe(result, { attributes: true });
function move() {
  moves += 1;
  slider.value = 500 + 20 * moves;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}
function tell() {
  var told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify({ failed: failed, seen: seen, address: location.search, value: box.value,
    width: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
    unnamed: Array.from(form.querySelectorAll("input:not([type=hidden]), select")).filter(function (one) {
      return !one.labels.length && !one.getAttribute("aria-label"); }).length });
  document.body.appendChild(told);
}
move();
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")]


class DrivenApplication(WhatIfApplication):
    """The page with a second script of its own server, which the content policy admits."""

    def answer(self, environ: dict[str, Any]) -> tuple[int, str, str]:
        if environ["PATH_INFO"] == "/drive.js":
            return 200, "text/javascript", DRIVE
        status, kind, body = super().answer(environ)
        return status, kind, body.replace("</body>", '<script src="/drive.js"></script></body>')


@pytest.fixture
def address() -> Iterator[str]:
    with server(0) as made:
        made.set_app(DrivenApplication(made.server_port))  # type: ignore[arg-type]
        running = Thread(target=made.serve_forever, daemon=True)
        running.start()
        yield f"http://127.0.0.1:{made.server_port}/"
        made.shutdown()
        running.join()


def test_a_slider_redraws_the_result_and_the_address_follows(address: str, tmp_path: Path) -> None:
    window = ["--virtual-time-budget=20000", "--window-size=1280,900", f"--user-data-dir={tmp_path}"]
    asked = f"{address}?net=resnet_152&hw=gtx_1080&batch=16"
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *window, "--dump-dom", asked]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
    (told,) = re.findall(r'<pre id="told">(.+?)</pre>', dom, re.DOTALL)
    found = json.loads(html.unescape(told))
    assert found["failed"] == []
    assert len(found["seen"]) == 10
    assert len(set(found["seen"])) > 5
    assert found["address"].endswith(f"sm.count={found['value']}")
    assert found["width"] <= found["window"]
    assert found["unnamed"] == 0
