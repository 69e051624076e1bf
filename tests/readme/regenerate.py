"""Put the real output of its commands, and the picture, into the README: `python tests/readme/regenerate.py`."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from pathlib import Path

from archsim.cli.main import group
from archsim.device.catalog import find
from archsim.estimation.result import estimate
from archsim.report.roofline_svg import svg

ROOT = Path(__file__).parents[2]
NET, HW = "alexnet", "tegra_x1"
PICTURE = ROOT / "reports" / "studies" / f"{NET}_{HW}.svg"
SHOWN = re.compile(r"```sh\n([^`]*?)\n```\n\n```text\n(.*?)\n```", re.S)  # a command, then what it prints


def with_output(readme: str) -> str:
    """The README with what its commands print now, those whose output it shows."""
    return SHOWN.sub(lambda block: f"```sh\n{block[1]}\n```\n\n```text\n{printed(block[1])}\n```", readme)


def printed(line: str) -> str:
    """What the archsim command at the end of a shell line prints, run where the files that it writes are in nobody's way."""
    words = shlex.split(line.replace("\\\n", " ").rpartition("archsim ")[2])
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        group.main(words, standalone_mode=False)
    return out.getvalue().rstrip("\n")


def picture() -> str:
    """The roofline of the README."""
    return svg(estimate(NET, HW), find(HW))


if __name__ == "__main__":
    place = ROOT / "README.md"
    place.write_text(with_output(place.read_text("utf-8")), "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
