"""Pictures of the pages of all commands that the contract asks, and of `archsim ui`, for a reader to look at.

`python -m tests.render.pictures FOLDER` draws all pages in all views. Needs chromium.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from archsim.render.html import page

from ..chromium import VIEWS, Browser
from ..contract.cases import COMMANDS, printed, told
from ..ui.asked import served

SERVED = {  # name -> the state of `archsim ui`
    "ui": "?net=alexnet&hw=tegra_x1&memory.bandwidth=50+GB%2Fs",
    "ui_models": "llm?net=llama_3_8b&hw=h100_sxm5_80gb&memory.bandwidth=4+TB%2Fs",
}
TALLEST = 8000  # of a picture [px]


def written(line: str, place: Path) -> Path:
    """The page of a command, in this file."""
    found = told(line)
    if found is None:  # which prints without AnswerForm.show
        printed(f"{line} --html {shlex.quote(str(place))}")
    else:
        place.write_text(page(found.blocks), "utf-8")
    return place


def main(folder: Path) -> None:
    """One PNG for each page and view, all details open, and a line for each fault that is measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with served() as made, tempfile.TemporaryDirectory() as kept, Browser(Path(kept)) as browser:
        browser.open(made.address())
        addresses = {name: made.address().partition("?")[0] + state for name, state in SERVED.items()}
        for name, lines in COMMANDS.items():
            places = [written(line, Path(kept) / f"{name}-{i}.html") for i, line in enumerate(lines)]
            addresses |= {place.stem: place.as_uri() for place in places if place.exists()}
        for name, address in addresses.items():
            for view in VIEWS:
                browser.open(address, view)
                for fault in browser.faults():
                    print(f"{name}, {view}: {fault}", file=sys.stderr)
                browser.view(view, min(TALLEST, browser.run("document.documentElement.scrollHeight")))
                browser.picture(folder / f"{name}-{view}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
