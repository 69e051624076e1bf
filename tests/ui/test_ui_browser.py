"""The what-if page in a browser: sliders, keys, files, reload, hostile names, faults in any view. Needs chromium.

The check of accessibility needs the extra `browser` (axe-core), too. `tests/bench/ui.py` times loading and drawing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from threading import Thread
from urllib.parse import quote

import pytest

from archsim.base.files import data_folder
from archsim.ui.server import address_of, server

from ..chromium import CHROMIUM, Browser

LARGE = "?net=resnet_152&hw=gtx_1080&batch=16"
CYCLE = "?net=alexnet&hw=gtx_1080&fidelity=cycle&clock=1.2+GHz"
SERVED = "llm?net=llama_3_8b&hw=h100_sxm5_80gb&memory.bandwidth=4+TB%2Fs"
PINNED = "?net=alexnet&hw=tegra_x1&memory.bandwidth=50+GB%2Fs&pin=net%3Dalexnet%26hw%3Dtegra_x1"
REFUSED = "?net=nothing"
PAGES = (LARGE, PINNED, CYCLE, SERVED, REFUSED)
DRAWN = "document.getElementById('result').getAttribute('aria-busy') === 'false'"
HOSTILE = "<img src=x onerror=window.hit=1>"
# What the keyboard must reach: every control that is seen.
CONTROLS = """Array.from(
  document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex]")
).filter(function (one) { return one.tabIndex >= 0 && one.getClientRects().length && one.checkVisibility(); })"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


@pytest.fixture(scope="module")
def address(browser: Browser) -> Iterator[str]:
    with server(0) as made:
        running = Thread(target=made.serve_forever, daemon=True)
        running.start()
        browser.open(address_of(made))
        browser.wait("document.getElementById('result')")
        yield f"http://127.0.0.1:{made.server_port}/"
        made.shutdown()
        running.join()


def latency(browser: Browser) -> str:
    """The number that a reader sees first."""
    shown: str = browser.run("document.querySelector('#result .big').textContent")
    return shown


def fine(browser: Browser) -> None:
    """No script has failed, nothing was refused by the content policy, and nothing is wider than the window."""
    assert browser.log == []
    assert browser.run("failed") == []
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_slider_moved_by_the_arrow_keys_redraws_and_the_state_survives_a_reload(address: str, browser: Browser) -> None:
    browser.open(address + LARGE)
    seen = {latency(browser)}
    browser.run("document.querySelector('[aria-label=\"sm.count slider\"]').focus()")
    for _ in range(5):
        browser.run("result.setAttribute('aria-busy', 'true')")
        browser.press("ArrowRight", times=40)
        browser.wait(DRAWN)
        seen.add(latency(browser))
    assert len(seen) > 4
    value = browser.run("document.getElementById('k-sm.count').value")
    assert f"sm.count={value}" in browser.run("location.search")
    last = latency(browser)
    browser.open(browser.run("location.href"))
    assert latency(browser) == last
    assert browser.run("document.getElementById('k-sm.count').value") == value
    slider = "document.querySelector('[aria-label=\"sm.count slider\"]').value"
    browser.run("result.setAttribute('aria-busy', 'true'); var box = document.getElementById('k-sm.count'); box.value = '30'")
    browser.run("box.dispatchEvent(new Event('input', { bubbles: true }))")
    moved = browser.run(slider)  # a value that is typed moves its slider
    browser.wait(DRAWN)
    browser.open(browser.run("location.href"))
    assert browser.run(slider) == moved
    fine(browser)


@pytest.mark.parametrize("page", [LARGE, CYCLE, SERVED])
def test_the_keyboard_reaches_every_control(page: str, address: str, browser: Browser) -> None:
    browser.open(address + page)
    wanted = browser.run(f"{CONTROLS}.map(function (one, i) {{ one.dataset.place = i; return one.outerHTML.slice(0, 80); }})")
    assert len(wanted) > 20
    reached: set[int] = set()
    for _ in range(len(wanted) + 5):
        browser.press("Tab")
        place = browser.run("document.activeElement.dataset.place")
        if place is not None:
            reached.add(int(place))
    assert [wanted[i] for i in range(len(wanted)) if i not in reached] == []


def test_blocks_open_and_tables_sort_by_the_keyboard(address: str, browser: Browser) -> None:
    browser.open(address + LARGE)
    before = browser.run("document.querySelector('.icicle').textContent")
    browser.run("document.querySelectorAll('.icicle button')[2].focus()")
    browser.press("Enter")
    opened = browser.run("document.querySelector('.icicle').textContent")
    assert opened != before
    browser.run("result.setAttribute('aria-busy', 'true')")
    browser.run("document.querySelector('[aria-label=\"sm.count slider\"]').focus()")
    browser.press("ArrowRight", times=20)
    browser.wait(DRAWN)
    assert browser.run("document.querySelector('.icicle .cell').textContent") == opened[: len(browser.run(
        "document.querySelector('.icicle .cell').textContent"))]  # fmt: skip
    head = "document.querySelector('.scroll th.num button')"
    browser.run(f"{head}.focus()")
    browser.press("Enter")
    assert browser.run(f"{head}.parentNode.getAttribute('aria-sort')") == "descending"
    fine(browser)


def drop(browser: Browser, name: str, content: str) -> None:
    """A file is dropped on the page."""
    browser.run(f"""(function () {{
      var held = new DataTransfer();
      held.items.add(new File([{json.dumps(content)}], {json.dumps(name)}));
      document.body.dispatchEvent(new DragEvent("drop", {{ bubbles: true, cancelable: true, dataTransfer: held }}));
    }})()""")


def test_a_dropped_network_is_drawn_and_its_hostile_names_are_text(address: str, browser: Browser) -> None:
    net = data_folder("traces/nets").joinpath("alexnet.jsonl").read_text("utf-8")
    lines = net.replace('"name": "alexnet"', f'"name": "{HOSTILE}"', 1).replace('"conv2"', f'"{HOSTILE}"')
    browser.open(address + LARGE)
    drop(browser, f"{HOSTILE}.jsonl", lines)
    browser.wait("location.search.indexOf('.jsonl') > 0 && document.readyState === 'complete' && window.result")
    assert HOSTILE in browser.run("document.querySelector('#result .scroll').textContent")
    assert f"{HOSTILE}.jsonl" in browser.run("document.querySelector('select[name=net]').selectedOptions[0].textContent")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("window.hit === undefined")
    fine(browser)


def test_hostile_words_in_the_address_are_text(address: str, browser: Browser) -> None:
    for key in ("net", "hw", "batch", "stack", "sm.count", HOSTILE):
        browser.open(f"{address}?net=alexnet&hw=tegra_x1".replace(f"{key}=", f"x{key}=") + f"&{quote(key)}={quote(HOSTILE)}")
        assert browser.run("document.querySelector('#result [role=alert]').textContent").startswith("Not possible:")
        assert browser.run("document.querySelectorAll('img').length") == 0
        assert browser.run("window.hit === undefined")


def test_a_file_that_is_refused_is_told_and_the_page_stays(address: str, browser: Browser) -> None:
    browser.open(address + LARGE)
    drop(browser, "net.onnx", "nothing")
    browser.wait("said.textContent.indexOf('Not taken') === 0")
    assert "net.onnx" in browser.run("said.textContent")
    drop(browser, "run.py", "print(1)")
    browser.wait("said.textContent.indexOf('run.py') > 0")
    assert latency(browser)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_fault_in_any_view(page: str, address: str, browser: Browser) -> None:
    found = browser.faults_in_views(address + page)
    assert [fault for fault in found if page != REFUSED or "status of 400" not in fault] == []


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="the extra `browser` is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(page: str, address: str, browser: Browser) -> None:
    browser.open(address + page)
    browser.run("document.querySelectorAll('details').forEach(function (one) { one.open = true; })")
    assert browser.serious() == []
