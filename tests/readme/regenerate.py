"""Put what the program prints now into the README and the manual: `python tests/readme/regenerate.py`.

Generated are the output behind each shown command, the tables of accuracy, of fidelities and of devices, and the pictures of the
README. Their digits are those of a release. With `--check` nothing is written: what has other digits now is named, and the exit
code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archsim.answers.layers import roofline
from archsim.base.units import show
from archsim.detect.catalog import find
from archsim.device.catalog import names
from archsim.device.spec import Spec, unit_of
from archsim.estimation.estimate import estimate
from archsim.render.blocks import Axis, Chart, Series
from archsim.render.charts import drawn

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.readme.shell import run  # noqa: E402

MANUAL = ROOT / "archsim" / "manual"
PAGES = (ROOT / "README.md", *sorted(MANUAL.glob("*.md")))
NET, HW = "alexnet", "tegra_x1"
PICTURE = ROOT / "reports" / "studies" / f"{NET}_{HW}.svg"
LADDER = ROOT / "reports" / "ladder" / "ladder.json"  # written by tests/bench/ladder.py
WIDTH = 900  # of a picture [px]
PUBLISHED = ROOT / "reports" / "published"
GENERATED = re.compile(
    r"```sh\n(?P<command>[^`]*?)\n```\n\n```text\n(?P<output>.*?)```"  # a command, then what it prints
    r"|<!-- (?P<table>\w+): begin -->\n(?P<rows>.*?)<!-- (?P=table): end -->", re.S)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of a page that is generated: what it is, what the page shows, what it would be now, and where it stands."""

    what: str
    shown: str
    now: str
    place: tuple[int, int]


def parts(page: str) -> Iterator[Part]:
    """The generated parts of a page, in their order."""
    for found in GENERATED.finditer(page):
        if found["table"]:
            yield Part(what=found["table"], shown=found["rows"], now=TABLES[found["table"]](), place=found.span("rows"))
        else:
            now = printed(found["command"]) + "\n"
            yield Part(what=found["command"], shown=found["output"], now=now, place=found.span("output"))


def up_to_date(page: str) -> str:
    """A page with what each of its generated parts is now."""
    for part in reversed(list(parts(page))):
        page = page[: part.place[0]] + part.now + page[part.place[1] :]
    return page


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
    return drawn(ladder_chart(json.loads(LADDER.read_text("utf-8"))["fidelities"]), WIDTH)


def ladder_chart(steps: list[dict]) -> Chart:
    """Each fidelity: a disc at its median error, and a line up to the error below which 90 % are."""
    series = [
        Series(name="", x=[s["seconds"]] * 2, y=[100 * s["median"], 100 * s["p90"]], sizes=[0.2, 0.01],
               labels=[f"{s['fidelity']}: {_percent(s['median'])}, {show(s['seconds'], 's', 3)}", ""])
        for s in steps
    ]  # fmt: skip
    reach = [bound for s in steps for bound in (s["seconds"] / 3, s["seconds"] * 3)]  # a name stands beside its mark
    return Chart(title="Error against time by fidelity", series=series,
                 x=Axis(title="CPU time of one estimate", unit="s", log=True, ends=(min(reach), max(reach))),
                 y=Axis(title="error [%]; disc: median, line: up to where 90 % of the errors are", log=True))  # fmt: skip


@cache
def printed(line: str) -> str:
    """What the archsim command at the end of a shell line prints; files that it writes go to a temporary folder.

    Raises RuntimeError if it ends with another exit code than 0.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = run(shlex.split(line.replace("\\\n", " ").rpartition("archsim ")[2]), folder)
    if done.code:
        raise RuntimeError(f"{line} ends with exit code {done.code}: {done.err}")
    return done.out.rstrip("\n")


def accuracy() -> str:
    """Errors on rows that the model was made with and on others, from the frozen validation."""
    folder = ROOT / "reports" / "validation"
    sight = json.loads((folder / "validation.json").read_text("utf-8")).get("by_sight", {})
    served = json.loads((folder / "served.json").read_text("utf-8"))["overall"]
    whats = {"gpu network": "time of a network on a GPU", "cpu network": "time of a network on a CPU",
             "gpu kernel": "time of one GPU kernel or layer", "cpu kernel": "time of one CPU kernel or layer",
             "gpu power": "power of a GPU that runs a network", "gpu kernel power": "power of one GPU kernel"}  # fmt: skip
    head = ("| | roofline | three constants | archsim, seen rows | not seen | 90 % of them below | their 80 % intervals hold |\n"
            "| --- | --: | --: | --: | --: | --: | --: |\n")  # fmt: skip
    lines = [_accuracy_row(name, *(sight[what].get(one) for one in ("seen", "unseen"))) for what, name in whats.items()
             if what in sight]  # fmt: skip
    lines += [_accuracy_row(f"served language model, {of['quantity']}", None, of) for of in served]
    return head + "".join(lines)


def _accuracy_row(what: str, seen: dict | None, unseen: dict | None) -> str:
    """Medians with how many rows; the baselines are those of rows not seen, or where there are none of all."""
    plain = (unseen or seen or {}).get("baselines", {})
    cells = [_percent(plain[name]["median"]) if name in plain else "" for name in ("roofline", "constants")]
    cells += [f"{_percent(of['median'])} of {of['n']:,}" if of else "" for of in (seen, unseen)]
    cells += [_percent(unseen[key]) if unseen else "" for key in ("p90", "coverage")]
    return f"| {what} | " + " | ".join(cells) + " |\n"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def picture() -> str:
    """The roofline of the README."""
    return drawn(roofline(estimate(NET, HW)), WIDTH)


TABLES = {"accuracy": accuracy, "ladder": ladder, "devices": devices}
PICTURES = {PICTURE: picture, LADDER.with_suffix(".svg"): ladder_picture}


def stale(page: str) -> list[str]:
    """What of a page is no longer what it would be now, to the last digit."""
    return [part.what for part in parts(page) if part.shown != part.now]


def main() -> int:
    """Write what is generated, or name what is stale."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing; name what has other digits now")
    check = options.parse_args().check
    texts = {place: place.read_text("utf-8") for place in (*PAGES, *PICTURES)}
    if check:
        found = [(place, what) for place in PAGES for what in stale(texts[place])]
        found += [(place, "picture") for place, draw in PICTURES.items() if texts[place] != draw()]
        for place, what in found:
            print(f"{place.relative_to(ROOT)}: {what}")
        return bool(found)
    for place in PAGES:
        place.write_text(up_to_date(texts[place]), "utf-8")
    for place, draw in PICTURES.items():
        place.write_text(draw(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
