"""Pages of commands in a browser: `measures.js` finds no fault in any view, keys open and sort, axe finds nothing serious.

These need chromium; the check of accessibility needs the extra `browser` (axe-core), too.
`python -m tests.report.pictures FOLDER` draws the pages for a reader to look at.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..chromium import CHROMIUM, Browser
from .pictures import ASKED, written

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.mark.parametrize("name", ASKED)
def test_a_page_has_no_fault_in_any_view(name: str, pages: Path, browser: Browser) -> None:
    assert browser.faults_in_views(written(name, pages).as_uri()) == []
    assert browser.run("document.querySelectorAll('.scroll th:not(:has(button))').length") == 0, "a head that sorts nothing"


def test_a_point_of_a_sweep_opens_its_machine_by_keyboard(pages: Path, browser: Browser) -> None:
    browser.open(written("sweep", pages).as_uri())
    browser.run("document.querySelector('button.opens').focus()")
    browser.press("Enter")
    assert re.match(r"Machine \d+: ", browser.run("document.querySelector('.machine h3').textContent"))
    assert browser.run("document.activeElement === document.querySelector('button.opens')")
    assert browser.faults() == []


def test_a_large_network_has_a_flame_graph_and_a_search_box(pages: Path, browser: Browser) -> None:
    browser.open(written("large", pages).as_uri())
    assert browser.run("document.querySelectorAll('.icicle .cell').length") > 100
    assert browser.run("document.querySelectorAll('input[type=search]').length") == 1


@pytest.mark.parametrize("name", ASKED)
def test_axe_finds_nothing_serious(name: str, pages: Path, browser: Browser) -> None:
    browser.open(written(name, pages).as_uri())
    assert browser.serious() == []


def test_axe_finds_a_field_without_a_name(pages: Path, browser: Browser) -> None:
    browser.open(written("small", pages).as_uri())
    browser.run("document.body.append(document.createElement('input'))")
    assert "label" in [found[1] for found in browser.serious()]
