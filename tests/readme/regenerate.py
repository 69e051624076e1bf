"""Put the first command's real output, and the picture, into the README: `python tests/readme/regenerate.py`."""

from __future__ import annotations

from pathlib import Path

from archsim.answer import estimate
from archsim.device.catalog import find
from archsim.report.roofline_svg import svg
from archsim.report.text import estimate_text

ROOT = Path(__file__).parents[2]
NET, HW = "alexnet", "tegra_x1"
OPEN, CLOSE = "```text\n", "\n```"
PICTURE = ROOT / "reports" / "studies" / f"{NET}_{HW}.svg"


def with_output(readme: str) -> str:
    """The README with what the first command prints now."""
    begin = readme.index(OPEN) + len(OPEN)
    end = readme.index(CLOSE, begin)
    return readme[:begin] + estimate_text(estimate(NET, HW)) + readme[end:]


def picture() -> str:
    """The roofline of the README."""
    return svg(estimate(NET, HW), find(HW))


if __name__ == "__main__":
    place = ROOT / "README.md"
    place.write_text(with_output(place.read_text("utf-8")), "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
