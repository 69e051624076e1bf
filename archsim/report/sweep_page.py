"""A sweep as a self-contained page: time against energy of its points, of which a click opens the machine beside the base."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.answers.asked import base_value
from archsim.answers.front import thin
from archsim.base.units import show
from archsim.estimation.die import die_columns
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.markup import TableCell, table, text, valued, words
from archsim.report.study_figures import PlotAxis, Series, lines
from archsim.study.knob import SIZES, WORDS
from archsim.study.pareto import pareto_front
from archsim.study.space import Space
from archsim.study.sweep import names

MOST_POINTS = 700  # that a page holds besides the fronts, shared by its networks
OUTPUTS = {
    "latency_s": "latency", "throughput_per_s": "throughput", "power_w": "power", "energy_j": "energy",
    "throughput_per_w": "throughput per watt", "memory_bytes": "memory", "clock_hz": "clock", "area_mm2": "area",
}  # fmt: skip
LISTED = ("latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w", "area_mm2")  # in the table of the front
EACH = {"latency_s": "time per sample", "energy_j": "energy per sample"}  # where batches differ, so that points can be compared
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoints:
    """The points of a sweep for a page.

    units: of every column; knobs: the columns that vary
    rows: points; those without outputs have a `problem`
    bases: by (network, device) the values of the same columns where nothing is varied
    asked: what all share, in words
    count: points of the sweep, more than `rows` where a file holds very many
    """

    units: Mapping[str, str]
    knobs: Sequence[str]
    rows: Sequence[Row]
    bases: Mapping[tuple[str, str], Row]
    asked: str
    count: int


def sweep_page(s: SweepPoints) -> str:
    """The whole page."""
    networks = list(dict.fromkeys(str(row["network"]) for row in s.rows))
    sound = [row for row in s.rows if row["problem"] is None]
    varied = [f"varied: {', '.join(s.knobs)}"] if s.knobs else []
    asked = " · ".join([s.asked, f"{s.count:,} points", *varied])
    sections = [f'<h1>Sweep of {text(", ".join(networks))}</h1>\n<p class="asked">{text(asked)}</p>', _thinned(s), _problems(s)]
    for place, network in enumerate(networks):
        sections += _network(s, network, [row for row in sound if row["network"] == network], place, MOST_POINTS // len(networks))
    return document(f"Sweep of {', '.join(networks)}", sections, figures.library())


def _thinned(s: SweepPoints) -> str:
    if len(s.rows) == s.count:
        return ""
    return f'<p class="warn">The page is of {len(s.rows):,} points, evenly picked; the file has all {s.count:,}.</p>'


def _problems(s: SweepPoints) -> str:
    """What is impossible, and what does not fit the memory."""
    found: dict[str, int] = {}
    for row in s.rows:
        if row["problem"] is not None:
            found[row["problem"]] = found.get(row["problem"], 0) + 1
    beyond = sum(row["fits"] == 0 for row in s.rows)
    said = [f"{count:,} points have no answer: {problem}" for problem, count in sorted(found.items(), key=lambda i: -i[1])[:5]]
    if beyond:
        said.append(f"{beyond:,} points need more memory than their device has; they are drawn as rings and are on no front")
    return "".join(f'<p class="quiet">{text(line)}.</p>' for line in said)


def _network(s: SweepPoints, network: str, rows: Sequence[Row], place: int, most: int) -> list[str]:
    """The chart of at most so many points and the front, the opened machine, and the front as a table."""
    heading = f"<h2>{text(network)}: time and energy</h2>"
    if not rows:
        return [f"{heading}\n<p>No point has an answer.</p>"]
    costs = np.array([[_cost(s, row, name) if row["fits"] else math.nan for name in EACH] for row in rows])
    front = [rows[int(i)] for i in pareto_front(costs)]
    on_front = {row["point"] for row in front}
    drawn = [*thin([row for row in rows if row["point"] not in on_front], most), *front]
    note = ("Nothing is both faster and more frugal than a point of the front. Drag over a part of the chart to enlarge it, "
            "click twice for all of it. A click on a mark, or a button of the table, opens the machine beside the device as it "
            "is.")  # fmt: skip
    if len(drawn) < len(rows):
        note += f" {len(drawn):,} of {len(rows):,} points are drawn: all of the front, the others evenly picked."
    name = f"front-{place + 1}"
    chart = figures.embed(_chart(s, network, drawn, front), name)
    told = _machines(s, drawn, name)
    title = f"<h2>{text(network)}: Pareto front, {len(front)} {'point' if len(front) == 1 else 'points'}</h2>"
    return [f'{heading}\n<p class="quiet">{text(note)}</p>\n{chart}', told,
            f'{title}\n<div class="scroll">\n{_table(s, front, drawn, name)}\n</div>']  # fmt: skip


def _each(s: SweepPoints) -> bool:
    return "batch" in s.knobs or "task" in s.knobs


def _cost(s: SweepPoints, row: Row, name: str) -> float:
    """Time or energy of a point, per sample where batches differ."""
    if not _each(s):
        return float(row[name])
    return 1.0 / float(row["throughput_per_s" if name == "latency_s" else "throughput_per_w"])


def _chart(s: SweepPoints, network: str, drawn: Sequence[Row], front: Sequence[Row]) -> Any:
    place = {row["point"]: i for i, row in enumerate(drawn)}
    devices = list(dict.fromkeys(str(row["hardware_name"]) for row in drawn))

    def series(name: str, rows: Sequence[Row], mode: str, **more: Any) -> Series:
        return Series(name=name, x=[_cost(s, row, "latency_s") for row in rows], y=[_cost(s, row, "energy_j") for row in rows],
                      notes=[_tip(s, row) for row in rows], mode=mode, keys=[place.get(row["point"], -1) for row in rows],
                      hollow=[not row["fits"] for row in rows], **more)  # fmt: skip

    found = [series(device, [row for row in drawn if row["hardware_name"] == device], "markers") for device in devices]
    bases = [base for (net, _), base in s.bases.items() if net == network]
    found.append(series("Pareto front", front, "lines+markers"))
    if bases:
        found.append(series("as it is", bases, "markers", sign="diamond"))
    titles = EACH if _each(s) else OUTPUTS
    across, up = (PlotAxis(title=titles[name], unit=s.units[name], zooms=True, log=_is_wide(s, drawn, name)) for name in EACH)
    return lines(found, across, up, height=520)


def _is_wide(s: SweepPoints, rows: Sequence[Row], name: str) -> bool:
    values = [_cost(s, row, name) for row in rows]
    return min(values) > 0 and max(values) / min(values) > 8.0


def _tip(s: SweepPoints, row: Row) -> str:
    knobs = [f"{text(knob)} = {text(shown(s, knob, row[knob]))}" for knob in s.knobs if knob in row]
    outputs = [f"{OUTPUTS[name]} {text(shown(s, name, row[name]))}" for name in ("latency_s", "energy_j", "power_w")]
    return "<br>".join([text(str(row["hardware_name"])), *knobs, *outputs])


def shown(s: SweepPoints, name: str, value: Any) -> str:
    """A value of a column with its unit."""
    if value is None:
        return "-"
    if name in WORDS or isinstance(value, str):
        return str(value)
    if name in SIZES:
        return f"{value:g}"
    return show(value, s.units.get(name, "1").removeprefix("1"))


def _machines(s: SweepPoints, drawn: Sequence[Row], chart: str) -> str:
    """The place where a machine opens, with what is told of each: its values, those of the base, and their ratios."""
    names = [*s.knobs, *(name for name in OUTPUTS if name in s.units and not (name == "clock_hz" and "clock" in s.knobs))]
    bases = {f"{hardware}": [shown(s, name, base.get(name)) for name in names]
             for (net, hardware), base in s.bases.items() if net == drawn[0]["network"]}  # fmt: skip
    told = {
        "names": [OUTPUTS.get(name, name) for name in names], "knobs": len(s.knobs), "bases": bases,
        "rows": [[row["point"], row["hardware"], row["hardware_name"], [shown(s, name, row[name]) for name in names],
                  [_ratio(row.get(name), s.bases.get((row["network"], row["hardware"]), {}).get(name)) for name in names]]
                 for row in drawn],
    }  # fmt: skip
    data = json.dumps(told, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return (f'<div class="machine" data-chart="{chart}"><p class="quiet">No machine is open.</p>'
            f'<script type="application/json">{data}</script></div>')  # fmt: skip


def _ratio(value: Any, base: Any) -> str:
    if isinstance(value, str) or isinstance(base, str) or not value or not base:
        return ""
    return "=" if math.isclose(value, base) else f"x {value / base:.3g}"


def _table(s: SweepPoints, front: Sequence[Row], drawn: Sequence[Row], chart: str) -> str:
    place = {row["point"]: i for i, row in enumerate(drawn)}
    outputs = [name for name in LISTED if name in s.units]

    def cell(row: Row, name: str) -> TableCell:
        value = row[name]
        if value is None or isinstance(value, str):
            return words(shown(s, name, value))
        return valued(shown(s, name, value), float(value))

    rows = [
        [TableCell(body=f'<button type="button" class="opens" data-chart="{chart}" data-row="{place[row["point"]]}">'
                        f'open {row["point"]}</button>', value=float(row["point"])),
         words(str(row["hardware_name"])), *(cell(row, name) for name in (*s.knobs, *outputs))]
        for row in front
    ]  # fmt: skip
    return table(("machine", "device", *s.knobs, *(OUTPUTS[name] for name in outputs)), rows)


def sweep_points(space: Space, requests: Sequence[Request], rows: Iterable[Row], count: int) -> SweepPoints:
    """The points of a sweep beside its devices as they are."""
    bases = {(r.network, r.spec.identity.id): base_row(r, space.knobs) for r in requests}
    first = requests[0]
    asked = [] if "task" in space.knobs else [first.task.replace("_", " ")]
    asked += [] if "batch" in space.knobs else [f"batch {first.batch}"]
    asked += [] if "precision" in space.knobs else [first.precision]
    asked.append(f"{first.fidelity.name} model")
    return SweepPoints(units=names(space, first.spec.kind), knobs=space.knobs, rows=list(rows), bases=bases, count=count,
                       asked=" · ".join(asked))  # fmt: skip


def base_row(request: Request, knobs: Sequence[str]) -> Row:
    """The columns of a sweep for a device as it is."""
    e = estimate_of(request, references=False)
    own = {knob: base_value(request, knob) for knob in knobs}
    die = {name: float(column[0]) for name, column in die_columns(request.spec, {}, 1).items() if name == "area_mm2"}
    outputs = {name: getattr(e, name) for name in OUTPUTS if hasattr(e, name)}
    return {"point": -1, "network": request.network, "hardware": request.spec.identity.id, "hardware_name": e.hardware_name,
            **own, **outputs, **die, "fits": int(e.fits), "problem": None}  # fmt: skip
