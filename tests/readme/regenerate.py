"""Put the real output of commands, and the picture, into the README: `python tests/readme/regenerate.py`."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from click.testing import CliRunner

from archsim.answer import estimate
from archsim.cli.sweep import command as sweep
from archsim.device.catalog import find
from archsim.report.roofline_svg import svg
from archsim.report.text import estimate_text

ROOT = Path(__file__).parents[2]
NET, HW = "alexnet", "tegra_x1"
OPEN, CLOSE = "```text\n", "\n```"
SWEEP = "    archsim sweep "  # how the line with the command of the sweep begins
PICTURE = ROOT / "reports" / "studies" / f"{NET}_{HW}.svg"


def with_output(readme: str) -> str:
    """The README with what its first command and its sweep print now."""
    readme = filled(readme, 0, estimate_text(estimate(NET, HW)))
    if SWEEP in readme:
        start = readme.index(SWEEP)
        readme = filled(readme, start, sweep_text(readme[start:].partition("\n\n")[0]))
    return readme


def filled(readme: str, start: int, text: str) -> str:
    """The README with `text` as the first block of output after `start`."""
    begin = readme.index(OPEN, start) + len(OPEN)
    end = readme.index(CLOSE, begin)
    return readme[:begin] + text + readme[end:]


def sweep_text(command: str) -> str:
    """What a command of `archsim sweep` prints, its file written elsewhere."""
    words = shlex.split(command.replace("\\\n", " "))[2:]
    with tempfile.TemporaryDirectory() as folder:
        words[words.index("--out") + 1] = str(Path(folder) / "study.sqlite")
        return CliRunner().invoke(sweep, words, catch_exceptions=False).stdout.rstrip("\n")


def picture() -> str:
    """The roofline of the README."""
    return svg(estimate(NET, HW), find(HW))


if __name__ == "__main__":
    place = ROOT / "README.md"
    place.write_text(with_output(place.read_text("utf-8")), "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
