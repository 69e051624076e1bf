"""Put what the program prints now into the README and the manual: `python tests/readme/regenerate.py`.

Generated are the output behind each shown command, the tables of accuracy, of fidelities and of devices, and the pictures of the
README.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
import shlex
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from archsim.base.units import show
from archsim.cli.main import group
from archsim.detect.catalog import find
from archsim.device.catalog import names
from archsim.device.spec import Spec, unit_of
from archsim.estimation.estimate import estimate
from archsim.report.ladder_svg import LadderStep, ladder_svg
from archsim.report.roofline_svg import svg

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "archsim" / "manual"
PAGES = (ROOT / "README.md", *sorted(MANUAL.glob("*.md")))
NET, HW = "alexnet", "tegra_x1"
PICTURE = ROOT / "reports" / "studies" / f"{NET}_{HW}.svg"
LADDER = ROOT / "reports" / "ladder" / "ladder.json"  # written by tests/bench/ladder.py
LADDER_PICTURE = LADDER.with_suffix(".svg")
SHOWN = re.compile(r"```sh\n([^`]*?)\n```\n\n```text\n(.*?)```", re.S)  # a command, then what it prints
ACCURACY = re.compile(r"(<!-- accuracy: begin -->\n).*?(<!-- accuracy: end -->)", re.S)
DEVICES = re.compile(r"(<!-- devices: begin -->\n).*?(<!-- devices: end -->)", re.S)
PUBLISHED = ROOT / "reports" / "published"
STEPS = re.compile(r"(<!-- ladder: begin -->\n).*?(<!-- ladder: end -->)", re.S)


def up_to_date(page: str) -> str:
    """A page with the output that its commands have now, and the tables of accuracy and of fidelities."""
    shown = SHOWN.sub(lambda block: f"```sh\n{block[1]}\n```\n\n```text\n{printed(block[1])}\n```", page)
    with_accuracy = ACCURACY.sub(lambda block: block[1] + accuracy() + block[2], shown)
    with_ladder = STEPS.sub(lambda block: block[1] + ladder() + block[2], with_accuracy)
    return DEVICES.sub(lambda block: block[1] + devices() + block[2], with_ladder)


def devices() -> str:
    """What is known of each shipped device, a table for each kind, the youngest of an architecture first."""
    specs = [find(name) for name in names()]
    kinds = {kind: f"{kind.upper()}s" for kind in ("gpu", "cpu", *(spec.kind for spec in specs))}
    head = ("| device | name | architecture | year | memory | sourced | of a sibling | assumed | published rows |\n"
            "| --- | --- | --- | --: | --: | --: | --: | --: | --: |\n")  # fmt: skip
    tables = []
    for kind, title in kinds.items():
        of_kind = sorted((s for s in specs if s.kind == kind),
                         key=lambda s: (s.identity.vendor, s.identity.architecture, -s.identity.year, s.identity.id))  # fmt: skip
        tables.append(f"## {title} ({len(of_kind)})\n\n{head}" + "".join(map(_device_row, of_kind)))
    return "\n" + "\n".join(tables) + "\n"


def _device_row(spec: Spec) -> str:
    """One device, by the values that estimates read: those that only the cycle fidelity reads are of its architecture."""
    known = spec.identity
    count = Counter(e.kind for key, e in spec.entries.items() if not unit_of(spec.kind, key).cycle)
    counts = [count["datasheet"] + count["measured"] + count["derived"], count["sibling"], count["assumed"]]
    memory = f"{float(spec.device.memory.capacity) / 2**30:.4g} GiB"
    rows = f"{published_rows()[known.id]:,}" if published_rows()[known.id] else ""
    cells = [f"`{known.id}`", known.name, known.architecture, known.year, memory, *counts, rows]
    return f"| {' | '.join(map(str, cells))} |\n"


@cache
def published_rows() -> Counter[str]:
    """How many rows of the shipped measurements are of each device."""
    found: Counter[str] = Counter()
    for place in sorted(PUBLISHED.glob("*.csv*")):
        with gzip.open(place, "rt", encoding="utf-8") if place.suffix == ".gz" else place.open(encoding="utf-8") as lines:
            found.update(row["hardware"] for row in csv.DictReader(lines) if row.get("hardware"))
    return found


def ladder() -> str:
    """Error and time of each fidelity, from the frozen record."""
    frozen = json.loads(LADDER.read_text("utf-8"))
    head = ("| fidelity | median error | 90 % below | bias | CPU time of an estimate | the longest |\n"
            "| --- | --: | --: | --: | --: | --: |\n")  # fmt: skip
    return head + "".join(_ladder_row(s) for s in frozen["fidelities"])


def _ladder_row(s: dict) -> str:
    times = [show(s[name], "s", 3) for name in ("seconds", "longest")]
    cells = [s["fidelity"], _percent(s["median"]), _percent(s["p90"]), f"{100 * s['bias']:+.0f} %", *times]
    return f"| {' | '.join(cells)} |\n"


def ladder_picture() -> str:
    """The same as a picture."""
    frozen = json.loads(LADDER.read_text("utf-8"))
    steps = [LadderStep(name=s["fidelity"], median=s["median"], p90=s["p90"], seconds=s["seconds"]) for s in frozen["fidelities"]]
    return ladder_svg(steps, f"{frozen['rows']} published times of networks on {frozen['devices']} GPUs")


def printed(line: str) -> str:
    """What the archsim command at the end of a shell line prints; files that it writes go to a temporary folder."""
    words = shlex.split(line.replace("\\\n", " ").rpartition("archsim ")[2])
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        group.main(words, standalone_mode=False)
    return out.getvalue().rstrip("\n")


def accuracy() -> str:
    """Errors on whole networks, single kernels and power, from the frozen validation."""
    frozen = json.loads((ROOT / "reports" / "validation" / "validation.json").read_text("utf-8"))
    networks, classes, unseen = frozen["networks"], frozen["by_class"], frozen["cross_validation"].get("hardware", {})
    rows = [
        ("time of a network on a GPU", networks["gpu"], unseen.get("gpu")),
        ("time of a network on a CPU", networks["cpu"], unseen.get("cpu")),
        ("time of one GPU kernel or layer", classes["gpu kernel"]["time"], None),
        ("time of one CPU kernel or layer", classes["cpu kernel"]["time"], None),
        ("power of a GPU", classes["gpu power"]["power"], None),
    ]
    head = ("| | values | roofline | archsim | 90 % below | unseen device | in the 80 % interval |\n"
            "| --- | --: | --: | --: | --: | --: | --: |\n")  # fmt: skip
    return head + "".join(_accuracy_row(*row) for row in rows)


def _accuracy_row(what: str, score: dict, unseen: dict | None) -> str:
    held_out = score if unseen is None else unseen
    medians = [_percent(s["median"]) for s in (score["baselines"]["roofline"], score)]
    cells = [f"{score['n']:,}", *medians, _percent(score["p90"]), "" if unseen is None else _percent(unseen["median"])]
    return f"| {what} | " + " | ".join([*cells, _percent(held_out["coverage"])]) + " |\n"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def picture() -> str:
    """The roofline of the README."""
    return svg(estimate(NET, HW), find(HW))


if __name__ == "__main__":
    for place in PAGES:
        place.write_text(up_to_date(place.read_text("utf-8")), "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
    LADDER_PICTURE.write_text(ladder_picture(), "utf-8")
