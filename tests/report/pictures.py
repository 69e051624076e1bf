"""Pictures of all pages in all views, for a reader to look at: `python -m tests.report.pictures FOLDER`. Needs chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from threading import Thread

from archsim.ui.server import server

from ..chromium import VIEWS, Browser
from .pages import ASKED, written

SERVED = {  # name -> the state of `archsim ui`
    "ui": "?net=alexnet&hw=tegra_x1&memory.bandwidth=50+GB%2Fs",
    "ui_models": "llm?net=llama_3_8b&hw=h100_sxm5_80gb&memory.bandwidth=4+TB%2Fs",
}
TALLEST = 8000  # of a picture [px]


def main(folder: Path) -> None:
    """One PNG for each page and view, all details open, and a line for each fault that is measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with server(0) as made, tempfile.TemporaryDirectory() as kept, Browser(Path(kept)) as browser:
        Thread(target=made.serve_forever, daemon=True).start()
        addresses = {name: f"http://127.0.0.1:{made.server_port}/{state}" for name, state in SERVED.items()}
        for name in (*ASKED, *SERVED):
            address = addresses.get(name) or written(name, Path(kept)).as_uri()
            for view in VIEWS:
                browser.open(address, view)
                for fault in browser.faults():
                    print(f"{name}, {view}: {fault}", file=sys.stderr)
                browser.view(view, min(TALLEST, browser.run("document.documentElement.scrollHeight")))
                browser.picture(folder / f"{name}-{view}.png")
        made.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
