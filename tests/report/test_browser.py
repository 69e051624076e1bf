"""Pages in a browser: nothing fails, nothing is wider than the window, all can be reached by keyboard, axe finds nothing serious.

These need chromium; the check of accessibility needs the extra `browser` (axe-core), too.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.report.pictures import (
    CHROMIUM,
    DARK,
    DRAWN,
    NAMES,
    STORED,
    TOLERANCE,
    VIEWS,
    difference,
    made,
    read_png,
    served,
    smaller,
    taken,
)

WIDE, NARROW = 1280, 390  # of a window [px]
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
    return made(tmp_path_factory.mktemp("pages"))


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


@pytest.mark.parametrize("name", NAMES)
def test_a_page_runs_offline_draws_all_and_sorts_by_keyboard(pages: dict[str, str], name: str, tmp_path: Path) -> None:
    found = seen(pages[name], tmp_path)
    assert found["failed"] == []
    assert found["width"] <= found["window"]
    assert found["drawn"] >= found["charts"]
    assert found["buttons"] == found["heads"]


@pytest.mark.parametrize("name", NAMES)
def test_no_page_is_wider_than_a_phone(pages: dict[str, str], name: str, tmp_path: Path) -> None:
    found = seen(pages[name], tmp_path, width=NARROW)
    assert found["failed"] == []
    assert found["window"] <= NARROW
    assert found["width"] <= found["window"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", DRAWN)
def test_a_page_looks_as_it_is_stored(pages: dict[str, str], name: str, view: str, tmp_path: Path) -> None:
    found = smaller(taken({**pages, **served()}[name], tmp_path, *VIEWS[view]))
    assert difference(found, read_png(STORED / f"{name}-{view}.png")) < TOLERANCE, "look, then python -m tests.report.pictures"


def test_a_lost_chart_and_a_lost_style_are_seen(pages: dict[str, str], tmp_path: Path) -> None:
    stored = read_png(STORED / "sweep-wide.png")
    body = pages["sweep"]
    for broken in (body.replace('id="library"', 'id="lost"'), re.sub("<style>.*?</style>", "", body, flags=re.DOTALL)):
        assert difference(smaller(taken(broken, tmp_path, *VIEWS["wide"])), stored) > TOLERANCE


def test_a_point_of_a_sweep_opens_its_machine_by_keyboard(pages: dict[str, str], tmp_path: Path) -> None:
    press = """<script>setTimeout(function () {
      var button = document.querySelector("button.opens"); button.focus(); button.click();
      window.failed.push(document.querySelector(".machine h3").textContent + " " + (document.activeElement === button));
    }, 1500)</script></body>"""
    (said,) = seen(pages["sweep"].replace("</body>", press), tmp_path)["failed"]
    assert re.fullmatch(r"Machine \d+: .* true", said)


def test_a_large_network_has_a_flame_graph_and_a_search_box(pages: dict[str, str], tmp_path: Path) -> None:
    found = seen(pages["large"], tmp_path)
    assert found["cells"] > 100
    assert found["search"] == 1


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="the extra `browser` is not installed")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(pages: dict[str, str], name: str, dark: bool, tmp_path: Path) -> None:
    found = seen(pages[name], tmp_path, dark=dark, axe=True)
    assert [violation for violation in found["violations"] if violation[0] in SERIOUS] == []


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="the extra `browser` is not installed")
def test_axe_finds_words_that_cannot_be_read(pages: dict[str, str], tmp_path: Path) -> None:
    pale = pages["small"].replace("--quiet: #5b6673", "--quiet: #c0c0c0")
    assert "color-contrast" in [violation[1] for violation in seen(pale, tmp_path, axe=True)["violations"]]
