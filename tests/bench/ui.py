"""The what-if page in a headless browser: time to load it, and to draw what a slider moves.

Limits are 2 s and, at the median for ResNet-152, 200 ms from the move to the drawn result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from ..chromium import CHROMIUM, Browser
from ..ui.asked import served
from .figure import arguments

STATES = {
    "resnet_152 on gtx_1080": "?net=resnet_152&hw=gtx_1080&batch=16", "resnet_50 on i7_6700k": "?net=resnet_50&hw=i7_6700k",
    "llama_3_8b on h100": "llm?net=llama_3_8b&hw=h100_sxm5_80gb",
    "alexnet on gtx_1080, cycle model": "?net=alexnet&hw=gtx_1080&fidelity=cycle",
}  # fmt: skip
MOVES = 15
# Moves the slider of the memory's bandwidth, and waits until what comes back is laid out and painted.
MOVE = """new Promise(function (done) {
  var slider = document.querySelector('[aria-label="memory.bandwidth slider"]'), begun = performance.now();
  var seen = new MutationObserver(function () {
    if (result.getAttribute("aria-busy") !== "false") { return; }
    seen.disconnect();
    requestAnimationFrame(function () { setTimeout(function () { done(performance.now() - begun); }); });
  });
  seen.observe(result, { attributes: true });
  slider.value = %d;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def main(words: Sequence[str]) -> None:
    """One line for each page."""
    small = arguments(__doc__).parse_args(words).smoke
    if CHROMIUM is None:
        print("not here: Chromium")
        return
    with served() as made, tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        browser.open(made.address())
        for name, state in list(STATES.items())[: 1 if small else None]:
            address = made.address().partition("?")[0] + state
            first, again = browser.open(address), browser.open(address)
            drawn = [float(browser.run(MOVE % (400 + 17 * i))) for i in range(2 if small else MOVES)]
            print(f"{name}: loads in {first:.2f} s, again in {again:.2f} s; a slider redraws in {median(drawn):.0f} ms "
                  f"({min(drawn):.0f} to {max(drawn):.0f})")  # fmt: skip
