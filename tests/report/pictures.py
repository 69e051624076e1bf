"""The pages that commands write, each written when it is first asked for, and pictures of them for a reader to look at.

`python -m tests.report.pictures FOLDER` draws all pages in all views. Needs chromium.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from archsim.cli.main import group

from ..chromium import VIEWS, Browser
from ..ui.asked import served

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"
ASKED = {  # name -> a command
    "small": "estimate --net alexnet --hw tegra_x1",
    "large": "estimate --net resnet_152 --hw h100_sxm5_80gb --batch 8 --precision fp16",
    "whatif": "whatif --net alexnet --hw tegra_x1 --set memory.bandwidth=51.2GB/s",
    "llm": "llm --net llama_3_8b --hw h100_sxm5_80gb --input 2048 --output 256 --batch 16",
    "compare": "compare --net alexnet --hw tegra_x1,gtx_1080,rtx_4090 --batch 128",
    "serve": "simulate serve --net alexnet --hw gtx_1080 --rate 100/s --requests 500",
    "train": "simulate train --net resnet_50 --hw tesla_v100_sxm2 --devices 4 --batch 32",
    "sm": "simulate sm --hw gtx_1080 --kernel 'gemm 128x128x8 threads=256' --k 512",
    "core": "simulate core --hw i7_6700k --kernel 'gemm 6x16 avx2'",
    "search": "search --net alexnet --hw gtx_1080 --minimise latency,area --vary sm.count=4:40:4 --vary l2.size=1MiB:8MiB:x2",
    "tune": "tune --net alexnet --hw titan_x_maxwell --batch 8 --minimise energy",
    "sensitivity": "sensitivity --net alexnet --hw tegra_x1",
    "sweep": "sweep --net alexnet --hw gtx_1080 --vary sm.count=8:40:4 --vary memory.bandwidth=100GB/s:800GB/s:8log",
    "cache": "cache --hw i7_6700k --net resnet_20 --layer conv1 --plain",
    "validation": f"validate --limit 200 --measurements '{PUBLISHED / 'kernel_power.csv'}'",
    "scoreboard": f"validate --predictor published --measurements '{PUBLISHED / 'peers' / 'transformers.csv'}'",
}
SERVED = {  # name -> the state of `archsim ui`
    "ui": "?net=alexnet&hw=tegra_x1&memory.bandwidth=50+GB%2Fs",
    "ui_models": "llm?net=llama_3_8b&hw=h100_sxm5_80gb&memory.bandwidth=4+TB%2Fs",
}
TALLEST = 8000  # of a picture [px]


def written(name: str, folder: Path) -> Path:
    """The page of this name, in a folder that keeps it."""
    place = folder / f"{name}.html"
    if not place.exists():
        with redirect_stdout(StringIO()):
            group.main([*shlex.split(ASKED[name]), "--html", str(place)], prog_name="archsim", standalone_mode=False)
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
