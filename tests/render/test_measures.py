"""What is measured on pages: a sound page has no fault, and one fault put into it is found with its element, text and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..chromium import CHROMIUM, Browser

SOUND = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>sound</title><style>
body { margin: 0; padding: 10px; color: #1d2530; background: #ffffff; font: 14px/1.4 sans-serif; }
.card { width: 200px; background: #eeeeee; } .wide { overflow-x: auto; } .bar { overflow: hidden; white-space: nowrap; }
.placed { position: relative; } .large { font-size: 24px; }
</style></head><body>
<h1>A sound page</h1>
<div class="card placed"><p class="first">first words</p><p class="second">second words</p></div>
<div class="wide"><table><tr><td style="min-width: 3000px">a table that scrolls</td></tr></table></div>
<div class="bar">a bar</div>
<details><summary>more</summary><p class="inner">what is folded</p></details>
<label>name <input type="text" value="alexnet" style="width: 120px"></label>
<svg width="300" height="100" role="img"><title>a chart</title>
<rect width="300" height="100" fill="#ffffff"/><line x1="0" y1="90" x2="300" y2="90" stroke="#e3e7ec"/>
<rect class="mark" x="20" y="20" width="90" height="60" fill="#0072b2"/>
<text x="24" y="60" font-size="12" fill="#ffffff">inside</text><text x="130" y="60" font-size="12" fill="#1d2530">beside</text>
<text x="200" y="60" font-size="12" fill="#1d2530" transform="rotate(-45 200 60)">turned words</text>
<text x="214" y="68" font-size="12" fill="#1d2530" transform="rotate(-45 214 68)">more of them</text>
</svg>
</body></html>"""

def doctored(old: str, new: str) -> str:
    assert SOUND.count(old) == 1, old
    return SOUND.replace(old, new)


def styled(rule: str) -> str:
    return doctored("</style>", f"{rule}</style>")


FIRST, SECOND = "div.card.placed > p.first 'first words': ", "div.card.placed > p.second 'second words': "
BAR, MARK = "div.bar 'a bar': ", '<circle cx="299" cy="50" r="5" fill="#d55e00"/>'
DOCTORED = {  # what is wrong -> the page, and how its one fault begins
    "a page wider than its window": (styled(".bar { width: 2000px; }"), "outside: html '': the page is 2010 px wide"),
    "text over text": (styled(".second { position: absolute; top: -14px; }"), f"overlap: {SECOND}"),
    "text over a field": (styled("input { margin-left: -30px; }"), "overlap: label 'name': "),
    "text that its box hides": (styled(".bar { width: 10px; }"), f"cut: {BAR}"),
    "an ellipsis whose whole nobody tells": (styled(".bar { width: 20px; text-overflow: ellipsis; }"), f"cut: {BAR}"),
    "text longer than its box": (styled(".card p { width: 20px; }"), f"cut: {FIRST}needs "),
    "a value longer than its field": (doctored('"alexnet"', '"a network of a long name"'), "cut: label > input 'a network of "),
    "pale text": (styled(".first { color: #888888; }"), f"contrast: {FIRST}3.06 of 4.5: rgb 136,136,136 on 238,238,238"),
    "a pale hint of a field": (doctored('value="alexnet" style="', 'placeholder="alexnet" style="background: #cccccc; '),
                               "contrast: label > input 'alexnet': 2.8"),
    "text on a mark that hides it": (doctored('#ffffff">inside', '#1d2530">inside'), "contrast: svg > text 'inside': "),
    "a chart without marks": (doctored('fill="#0072b2"', 'fill="#333333"'), "chart: svg 'a chart': no mark of data in 300 x 100"),
    "a mark outside of its chart": (doctored("<line", MARK + "<line"), "chart: svg > circle 'a chart': 1 marks"),
    "a script that fails": (doctored("</body>", "<script>nothing();</script></body>"), "console: error Uncaught Reference"),
}  # fmt: skip
FINE = {
    "an ellipsis whose whole is told": doctored('"bar"', '"bar" title="a bar" style="width: 20px; text-overflow: ellipsis"'),
    "large text of middle grey": styled("h1 { color: #888888; }"),
    "marks that a clip hides": doctored("<line", f'<g clip-path="inset(0)">{MARK}</g><line'),
}  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


def faults(browser: Browser, folder: Path, body: str) -> list[str]:
    place = folder / "page.html"
    place.write_text(body, "utf-8")
    browser.open(place.as_uri())
    return browser.faults()


def test_a_sound_page_has_no_fault(browser: Browser, tmp_path: Path) -> None:
    assert faults(browser, tmp_path, SOUND) == []
    for name, body in FINE.items():
        assert faults(browser, tmp_path, body) == [], name


@pytest.mark.parametrize("name", DOCTORED)
def test_one_fault_is_found_and_told(name: str, browser: Browser, tmp_path: Path) -> None:
    body, told = DOCTORED[name]
    found = faults(browser, tmp_path, body)
    assert any(one.startswith(told) for one in found), found
    assert {one.partition(":")[0] for one in found} == {told.partition(":")[0]}, found
