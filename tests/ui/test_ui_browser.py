"""The what-if page in a browser: sliders, lists, keys, files, messages, hostile names, faults in any view. Needs chromium.

`tests/bench/ui.py` times loading and drawing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from archsim.base.files import data_folder

from ..chromium import CHROMIUM, Browser
from ..each import each
from .asked import served

LARGE = "?net=resnet_152&hw=gtx_1080&batch=16"
CYCLE = "?net=alexnet&hw=gtx_1080&fidelity=cycle&clock=1.2+GHz"
SERVED = "llm?net=llama_3_8b&hw=h100_sxm5_80gb&memory.bandwidth=4+TB%2Fs"
PINNED = "?net=alexnet&hw=tegra_x1&memory.bandwidth=50+GB%2Fs&pin=net%3Dalexnet%26hw%3Dtegra_x1"
REFUSED = "?net=nothing"
PAGES = (LARGE, PINNED, CYCLE, SERVED, REFUSED, "help")
DRAWN = "document.getElementById('result').getAttribute('aria-busy') === 'false'"
HOSTILE = "<img src=x onerror=window.hit=1>"
# What the keyboard must reach: every control that is seen.
CONTROLS = """Array.from(
  document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex]")
).filter(function (one) { return one.tabIndex >= 0 && one.getClientRects().length && one.checkVisibility(); })"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


@pytest.fixture(scope="module")
def address(browser: Browser) -> Iterator[str]:
    with served() as made:
        browser.open(made.address())
        browser.wait("document.getElementById('result')")
        yield made.address().partition("?")[0]


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
    fine(browser)


@each(("key", "value"), (("sm.count", "30"), ("memory.bandwidth", "0.5 TB/s"), ("l2.size", "3 MiB"), ("clock", "1500MHz")))
def test_a_value_that_is_typed_moves_its_slider(key: str, value: str, address: str, browser: Browser) -> None:
    slider, places = f"document.querySelector('[aria-label=\"{key} slider\"]').value", []
    for words in ("", f"&{key}={quote(value)}"):
        browser.open(address + LARGE + words)
        places.append(browser.run(slider))
    browser.open(address + LARGE)
    write(browser, f"k-{key}", value)
    assert browser.run(slider) == places[1] != places[0]


def write(browser: Browser, field: str, value: str) -> None:
    """Type over what stands in a field."""
    browser.run(f"document.getElementById('{field}').focus(); document.getElementById('{field}').select()")
    browser.call("Input.insertText", text=value)


def test_a_device_is_found_by_maker_and_year_and_chosen_by_keys(address: str, browser: Browser) -> None:
    browser.open(address + PINNED)
    write(browser, "f-hw", "nvidia 2016 1080")
    shown = "Array.from(document.querySelectorAll('#f-hw-list .option')).map(function (one) { return one.textContent; })"
    assert browser.run(shown) == ["GeForce GTX 1080"]
    assert browser.run("document.querySelector('#f-hw-list [role=group]').getAttribute('aria-label')") == "NVIDIA, 2016"
    write(browser, "f-hw", "i76700")
    assert "6700K" in browser.run(shown)[0]
    write(browser, "f-hw", "no such device")
    assert browser.run(shown) == []
    browser.press("Escape")
    assert "Tegra X1" in browser.run("document.getElementById('f-hw').value")
    write(browser, "f-hw", "titan x")
    active = "document.getElementById(document.getElementById('f-hw').getAttribute('aria-activedescendant')).textContent"
    first = browser.run(active)
    browser.press("ArrowDown")
    chosen = browser.run(active)
    assert chosen != first
    assert browser.serious() == []
    browser.press("Enter")
    browser.wait("location.search.indexOf('hw=titan_x') > 0 && document.readyState === 'complete' && window.result")
    assert browser.run("document.getElementById('f-hw').value") == chosen
    assert "memory.bandwidth" not in browser.run("location.search").partition("pin=")[0]  # those of the device before
    fine(browser)


@each(("field", "value"), (("f-batch", "-3"), ("k-memory.bandwidth", "fast"), ("k-memory.latency", "9 days")))
def test_a_message_is_at_its_field_while_the_last_result_stays(field: str, value: str, address: str, browser: Browser) -> None:
    browser.open(address + PINNED)
    browser.run("document.querySelector('form details').open = true")
    before, box = latency(browser), f"document.getElementById('{field}')"
    write(browser, field, value)
    browser.wait("document.querySelector('.wrong') && document.querySelector('.stale')")
    assert browser.run(f"{box}.parentNode.querySelector('.wrong').id === {box}.getAttribute('aria-describedby')")
    assert browser.run(f"{box}.getAttribute('aria-invalid')") == "true"
    assert "--" not in browser.run("document.querySelector('.wrong').textContent")
    assert latency(browser) == before
    browser.open(browser.run("location.href"))  # where no result is, the message is in its place, too
    assert "Not possible:" in browser.run("document.querySelector('#result [role=alert]').textContent")
    browser.run(f"{box}.value = ''; {box}.dispatchEvent(new Event('input', {{ bubbles: true }}))")
    browser.wait("!document.querySelector('.wrong') && document.querySelector('#result .big')")


def test_totals_stay_in_sight_on_a_phone_and_shift_nothing_elsewhere(address: str, browser: Browser) -> None:
    place = "document.getElementById('said').getBoundingClientRect()"
    browser.open(address + PINNED, "phone")
    browser.run("window.scrollTo(0, document.documentElement.scrollHeight)")
    assert browser.run(f"{place}.top === 0 && {place}.height > 30")
    assert latency(browser) in browser.run("said.textContent")
    browser.open(address + PINNED)
    assert browser.run("getComputedStyle(said).opacity + getComputedStyle(said).position") == "0fixed"


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


@each(("name", "told"), (("net.onnx", "Not taken: net.onnx"), ("run.py", "Not taken: run.py")))
def test_a_file_that_is_refused_is_told_and_the_page_stays(name: str, told: str, address: str, browser: Browser) -> None:
    browser.open(address + LARGE)
    drop(browser, name, "nothing")
    browser.wait(f"told.textContent.indexOf('{told}') === 0")
    assert latency(browser)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_fault_in_any_view_and_axe_finds_nothing_serious(page: str, address: str, browser: Browser) -> None:
    found = browser.faults_in_views(address + page)
    assert [fault for fault in found if page != REFUSED or "status of 400" not in fault] == []
    assert browser.serious() == []
