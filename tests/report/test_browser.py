"""Pages in a browser: nothing fails, nothing is wider than the window, all can be reached by keyboard, axe finds nothing serious.

These need chromium; the check of accessibility needs the extra `browser` (axe-core), too.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from archsim.device import catalog
from archsim.estimation.estimate import estimate
from archsim.report.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDE, NARROW = 1280, 390  # of a window [px]
DARK = "--blink-settings=preferredColorScheme=0"
SERIOUS = ("serious", "critical")
# Collects errors of scripts from the start, and at the end writes what a test reads into the page.
FIRST = "<script>window.failed=[];addEventListener('error',function(e){failed.push(e.message)});\
addEventListener('unhandledrejection',function(e){failed.push(String(e.reason))});\
addEventListener('securitypolicyviolation',function(e){failed.push(e.violatedDirective)})</script>"
LAST = """<script>setTimeout(function () {
  var axis = window.axe ? axe.run(document, { resultTypes: ["violations"] }) : Promise.resolve({ violations: [] });
  axis.then(function (found) {
    var said = document.createElement("pre");
    said.id = "said";
    said.textContent = JSON.stringify({
      failed: failed, width: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
      charts: document.querySelectorAll(".chart").length, drawn: document.querySelectorAll(".chart .main-svg").length,
      heads: document.querySelectorAll(".scroll th").length, buttons: document.querySelectorAll(".scroll th button").length,
      cells: document.querySelectorAll(".icicle .cell").length, search: document.querySelectorAll("input[type=search]").length,
      violations: found.violations.map(function (v) { return [v.impact, v.id, v.nodes[0].html]; })
    });
    document.body.appendChild(said);
  });
}, 2500)</script>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    asked = {
        "compare": ["compare", "--net", "alexnet", "--hw", "tegra_x1,gtx_1080,rtx_4090", "--batch", "128"],
        "serve": ["simulate", "serve", "--net", "alexnet", "--hw", "gtx_1080", "--rate", "100/s", "--requests", "500"],
        "tune": ["tune", "--net", "alexnet", "--hw", "titan_x_maxwell", "--batch", "8", "--minimise", "energy"],
        "sensitivity": ["sensitivity", "--net", "alexnet", "--hw", "tegra_x1"],
        "validation": ["validate", "--source", "nvidia_tx1_wp"],
    }
    for name, words in asked.items():
        made = [sys.executable, "-m", "archsim", *words, "--html", str(folder / f"{name}.html")]
        subprocess.run(made, check=True, capture_output=True, timeout=300)
    written = {name: (folder / f"{name}.html").read_text("utf-8") for name in asked}
    large = estimate("resnet_152", "h100_sxm5_80gb", batch=8, precision="fp16")
    small = estimate("alexnet", "tegra_x1")
    return {**written, "large": page(large, catalog.find("h100_sxm5_80gb")), "small": page(small, catalog.find("tegra_x1"))}


def seen(body: str, folder: Path, *, width: int = WIDE, dark: bool = False, axe: bool = False) -> dict[str, Any]:
    """What a browser made of a page in a window, or in a frame of it where the browser allows no window so narrow."""
    code = f"<script>{_axe()}</script>" if axe else ""
    shown = folder / "page.html"
    shown.write_text(body.replace("<head>", "<head>" + FIRST, 1).replace("</body>", code + LAST + "</body>"), "utf-8")
    frame = folder / "frame.html"
    frame.write_text(
        f'<iframe id="f" src="page.html" style="width:{width}px;height:900px;border:0"></iframe><pre id="said"></pre>'
        "<script>setTimeout(function(){document.getElementById('said').textContent="
        "document.getElementById('f').contentDocument.getElementById('said').textContent},6000)</script>", "utf-8")  # fmt: skip
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--virtual-time-budget=15000", f"--user-data-dir={folder / 'profile'}", *([DARK] if dark else []),
        f"--window-size={WIDE},1000", "--dump-dom",
        frame.as_uri() if width < WIDE else shown.as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
    (told,) = re.findall(r'<pre id="said">(.+?)</pre>', dom, re.DOTALL)
    found: dict[str, Any] = json.loads(html.unescape(told))
    return found


def _axe() -> str:
    return files("axe_core_python").joinpath("axe.min.js").read_text("utf-8").replace("</script", "<\\/script")


@pytest.mark.parametrize("name", ["compare", "serve", "tune", "sensitivity", "validation", "large", "small"])
def test_a_page_runs_offline_draws_all_and_sorts_by_keyboard(pages: dict[str, str], name: str, tmp_path: Path) -> None:
    found = seen(pages[name], tmp_path)
    assert found["failed"] == []
    assert found["width"] <= found["window"]
    assert found["drawn"] >= found["charts"]
    assert found["buttons"] == found["heads"]


@pytest.mark.parametrize("name", ["compare", "serve", "large", "small"])
def test_no_page_is_wider_than_a_phone(pages: dict[str, str], name: str, tmp_path: Path) -> None:
    found = seen(pages[name], tmp_path, width=NARROW)
    assert found["failed"] == []
    assert found["window"] <= NARROW
    assert found["width"] <= found["window"]


def test_a_large_network_has_a_flame_graph_and_a_search_box(pages: dict[str, str], tmp_path: Path) -> None:
    found = seen(pages["large"], tmp_path)
    assert found["cells"] > 100
    assert found["search"] == 1


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="the extra `browser` is not installed")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["compare", "serve", "tune", "sensitivity", "validation", "large", "small"])
def test_axe_finds_nothing_serious(pages: dict[str, str], name: str, dark: bool, tmp_path: Path) -> None:
    found = seen(pages[name], tmp_path, dark=dark, axe=True)
    assert [violation for violation in found["violations"] if violation[0] in SERIOUS] == []


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="the extra `browser` is not installed")
def test_axe_finds_words_that_cannot_be_read(pages: dict[str, str], tmp_path: Path) -> None:
    pale = pages["small"].replace("--quiet: #5b6673", "--quiet: #c0c0c0")
    assert "color-contrast" in [violation[1] for violation in seen(pale, tmp_path, axe=True)["violations"]]
