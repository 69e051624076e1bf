"""Put the real output of its commands, and the picture, into the README: `python tests/readme/regenerate.py`."""

from __future__ import annotations

from pathlib import Path

from archsim.answer import estimate
from archsim.device.catalog import find
from archsim.machine.spec import find as find_host
from archsim.query import ask
from archsim.report.roofline_svg import svg
from archsim.report.serving import serving_text
from archsim.report.text import estimate_text
from archsim.report.training import training_text
from archsim.schedule.serving import Batching
from archsim.simulate.serve import Load, simulate_serving
from archsim.simulate.train import Input, simulate_training

ROOT = Path(__file__).parents[2]
NET, HW = "alexnet", "tegra_x1"
OPEN, CLOSE = "```text\n", "\n```"
PICTURE = ROOT / "reports" / "studies" / f"{NET}_{HW}.svg"


def with_output(readme: str) -> str:
    """The README with what its commands print now, in the order in which they stand there."""
    end = 0
    for printed in (first_estimate, serving, training):
        begin = readme.index(OPEN, end) + len(OPEN)
        readme = readme[:begin] + printed() + readme[readme.index(CLOSE, begin) :]
        end = readme.index(CLOSE, begin)
    return readme


def first_estimate() -> str:
    """`archsim estimate --net alexnet --hw tegra_x1`"""
    return estimate_text(estimate(NET, HW))


def serving() -> str:
    """`archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200 --batching max=32,wait=5ms`"""
    load = Load(rate=200.0)
    return serving_text(simulate_serving(ask("resnet_50", "tesla_t4"), load, Batching(most=32, wait_s=5e-3)))


def training() -> str:
    """`archsim simulate train --net resnet_50 --hw gtx_1080 --devices 1,2,4,8 --input disk,decode=8,pcie`"""
    query = ask("resnet_50", "gtx_1080", batch=32, task="training_step")
    given = Input(disk=True, decode=8, pcie=True)
    return training_text(simulate_training(query, find_host("deepbench_8gpu"), [1, 2, 4, 8], given=given))


def picture() -> str:
    """The roofline of the README."""
    return svg(estimate(NET, HW), find(HW))


if __name__ == "__main__":
    place = ROOT / "README.md"
    place.write_text(with_output(place.read_text("utf-8")), "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
