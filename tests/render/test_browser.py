"""Pages of commands in a browser: heads sort, keys open, axe finds nothing serious. What `measures.js` finds is in the contract.

These need chromium; the check of accessibility needs the extra `browser` (axe-core), too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..chromium import CHROMIUM, Browser
from ..contract.cases import COMMANDS, OLD
from .pictures import written

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


@pytest.mark.parametrize("name", sorted({*COMMANDS} - OLD))
def test_axe_finds_nothing_serious_and_heads_sort(name: str, tmp_path: Path, browser: Browser) -> None:
    browser.open(written(COMMANDS[name][0], tmp_path / "page.html").as_uri())
    assert browser.serious() == []
    assert browser.run("document.querySelectorAll('.scroll th:not(:has(button))').length") == 0, "a head that sorts nothing"
    browser.run("document.body.append(document.createElement('input'))")
    assert "label" in [found[1] for found in browser.serious()]


def test_a_point_of_a_sweep_opens_its_machine_by_keyboard(tmp_path: Path, browser: Browser) -> None:
    line = "sweep --net alexnet --hw gtx_1080 --vary sm.count=8,40 --vary memory.bandwidth=100GB/s,800GB/s"
    browser.open(written(line, tmp_path / "page.html").as_uri())
    browser.run("document.querySelector('button.opens').focus()")
    browser.press("Enter")
    assert re.match(r"Machine \d+: ", browser.run("document.querySelector('.machine h3').textContent"))
    assert browser.run("document.activeElement === document.querySelector('button.opens')")
    assert browser.faults() == []


def test_a_large_network_has_a_flame_graph_and_a_search_box(tmp_path: Path, browser: Browser) -> None:
    browser.open(written("estimate --net resnet_152 --hw h100_sxm5_80gb", tmp_path / "page.html").as_uri())
    assert browser.run("document.querySelectorAll('.icicle .cell').length") > 100
    assert browser.run("document.querySelectorAll('input[type=search]').length") == 1
