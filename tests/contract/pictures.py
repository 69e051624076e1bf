"""Pictures of the pages of every answer and of `archsim ui`, in all views, for a reader to look at.

`python -m tests.contract.pictures FOLDER` draws them. Needs chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from archsim.render.html import page

from ..chromium import VIEWS, Browser
from ..ui.asked import served
from .cases import COMMANDS, LARGE, OLD, told

ASKED = {"large": LARGE, **{name: lines[0] for name, lines in COMMANDS.items() if name not in OLD}}
SERVED = {  # name -> the state of `archsim ui`
    "ui": "?net=alexnet&hw=tegra_x1&memory.bandwidth=50+GB%2Fs",
    "ui_models": "llm?net=llama_3_8b&hw=h100_sxm5_80gb&memory.bandwidth=4+TB%2Fs",
}
TALLEST = 8000  # of a picture [px]


def written(name: str, folder: Path) -> Path:
    """The page of this name."""
    place, found = folder / f"{name}.html", told(ASKED[name])
    assert found is not None
    place.write_text(page(found.blocks), "utf-8")
    return place


def main(folder: Path) -> None:
    """One PNG for each page and view, all details open, and a line for each fault that is measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with served() as made, tempfile.TemporaryDirectory() as kept, Browser(Path(kept)) as browser:
        browser.open(made.address())
        addresses = {name: made.address().partition("?")[0] + state for name, state in SERVED.items()}
        for name in (*ASKED, *SERVED):
            address = addresses.get(name) or written(name, Path(kept)).as_uri()
            for view in VIEWS:
                browser.open(address, view)
                for fault in browser.faults():
                    print(f"{name}, {view}: {fault}", file=sys.stderr)
                browser.view(view, min(TALLEST, browser.run("document.documentElement.scrollHeight")))
                browser.picture(folder / f"{name}-{view}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
