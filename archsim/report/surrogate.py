"""The closed form beside the cycle model on random kernels: text, JSON, and a page with a static chart."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np

from archsim.report.drawing import drawing
from archsim.report.frame import document
from archsim.report.markup import number, percent, table, text, words
from archsim.report.text import table as text_table
from archsim.validation.surrogate import FACTORS, KERNELS_OF_MACHINE, Judged, SurrogateRow

SCHEMA = "archsim-surrogate/1"
TITLE = "The closed form beside the cycle model"
HOW = (
    f"Single ops with shapes drawn evenly on a logarithmic axis, half of them products, {KERNELS_OF_MACHINE} on each machine, by "
    "the default stack of the device, which chooses algorithm and tile; fp32, and fp16 where there are tensor cores. One half of "
    f"the machines are GPUs as shipped, of the others two keys are scaled by {FACTORS[0]:g} to {FACTORS[1]:g}: bandwidth "
    "and latency of memory, size and bandwidth of the L2, special functions, bandwidth of shared memory. Both times contain the "
    "gaps of launches. "
    "Constants of the closed form that the SM decides follow from the cycle model for each architecture; no measurement enters "
    "these, and no constant of the closed form enters the cycle model but the efficiency of a kernel family."
)
GROUPS: tuple[tuple[str, Callable[[SurrogateRow], str]], ...] = (
    ("op", lambda row: row.op), ("machine", lambda row: "scaled" if row.scaled else "as shipped"),
    ("architecture", lambda row: row.architecture), ("precision", lambda row: row.precision),
)  # fmt: skip


def summary(rows: Sequence[SurrogateRow]) -> tuple[int, float, float, float]:
    """How many, and of closed form / simulated - 1: median of the sizes, their 90th percentile, and the median."""
    ratios = np.exp([row.distance for row in rows])
    off = np.abs(ratios - 1.0)
    return len(rows), float(np.median(off)), float(np.quantile(off, 0.9)), float(np.median(ratios)) - 1.0


def grouped(rows: Sequence[SurrogateRow], of: Callable[[SurrogateRow], str]) -> dict[str, list[SurrogateRow]]:
    """Rows by a property, in the order of its words."""
    return {name: [row for row in rows if of(row) == name] for name in sorted({of(row) for row in rows})}


def surrogate_json(rows: Sequence[SurrogateRow], verdicts: Sequence[Judged], seed: int) -> str:
    """One JSON object; distances are |closed form / simulated - 1|."""
    def entry(some: Sequence[SurrogateRow]) -> dict[str, float]:
        count, median, p90, bias = summary(some)
        return {"kernels": count, "median": _rounded(median), "p90": _rounded(p90), "bias": _rounded(bias)}

    body = {
        "schema": SCHEMA, "seed": seed, **entry(rows),
        **{name: {group: entry(some) for group, some in grouped(rows, of).items()} for name, of in GROUPS},
        "published": [{k: _rounded(v) for k, v in asdict(verdict).items()} for verdict in verdicts],
    }  # fmt: skip
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def surrogate_text(rows: Sequence[SurrogateRow]) -> str:
    """A table by op and machine, and the median of all."""
    cells = [(name, group, f"{count:,}", f"{100 * median:.1f} %", f"{100 * p90:.1f} %", f"{100 * bias:+.1f} %")
             for name, of in GROUPS for group, some in grouped(rows, of).items()
             for count, median, p90, bias in [summary(some)]]  # fmt: skip
    return f"{text_table(('by', '', 'kernels', 'median', '90 % below', 'bias'), cells, left=2)}\n\n{_all(rows)}"


def _all(rows: Sequence[SurrogateRow]) -> str:
    count, median, p90, bias = summary(rows)
    return (f"Distance of the closed form from the cycle model: median {100 * median:.1f} %, 90 % below {100 * p90:.1f} %, "
            f"bias {100 * bias:+.1f} %, {count:,} kernels")  # fmt: skip


def surrogate_page(rows: Sequence[SurrogateRow], verdicts: Sequence[Judged], seed: int) -> str:
    """A page of tables with a chart of all distances."""
    head = ("kernels", "median distance", "90 % below", "bias")
    sections = [
        f"<h1>{TITLE}</h1>", f'<p class="asked">{text(_all(rows))}</p>', f'<p class="quiet">{text(HOW)} Seed {seed}.</p>',
        drawing(svg(rows), "distances", ("hardware", "precision", "op", "closed_s", "simulated_s"),
                [(r.hardware, r.precision, r.op, f"{r.closed_s:.4g}", f"{r.simulated_s:.4g}") for r in rows]),
        "<h2>Which one published times agree with</h2>",
        '<p class="quiet">Median error of both on a sample of published rows of single ops on GPUs.</p>',
        table(("op", "rows", "closed form", "cycle model"),
              [(words(v.op), number(v.rows, "1"), percent(v.closed, ".1f"), percent(v.simulated, ".1f")) for v in verdicts]),
    ]  # fmt: skip
    for name, of in GROUPS:
        cells = [(words(group.replace("_", " ")), number(count, "1"), percent(median, ".1f"), percent(p90, ".1f"),
                  percent(bias, "+.1f"))
                 for group, some in grouped(rows, of).items() for count, median, p90, bias in [summary(some)]]  # fmt: skip
        sections += [f"<h2>By {name}</h2>", table((name, *head), cells)]
    return document(TITLE, sections)


LEFT, WIDTH, ROW, TOP = 110, 760, 44, 10  # of the chart [px]
WIDEST = math.log(4.0)  # distances beyond are drawn at the edge
MARKS = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)
SPREAD = 14  # of the dots of a row to either side [px]


def svg(rows: Sequence[SurrogateRow]) -> str:
    """Closed form over simulated, a dot for each kernel, a row for each op; a bar from the 10th to the 90th percentile."""
    ops = grouped(rows, lambda row: row.op)
    height = TOP + ROW * len(ops) + 40

    def at(distance: float) -> float:
        return LEFT + WIDTH * (0.5 + 0.5 * max(-1.0, min(1.0, distance / WIDEST)))

    parts = []
    for mark in MARKS:
        x, bottom = at(math.log(mark)), TOP + ROW * len(ops)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#b8c0ca"/>'
                     f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="currentColor">{mark:g}</text>')  # fmt: skip
    for i, (op, some) in enumerate(ops.items()):
        middle = TOP + ROW * (i + 0.5)
        parts.append(f'<text x="{LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end" fill="currentColor">'
                     f'{text(op.replace("_", " "))}</text>')  # fmt: skip
        for n, row in enumerate(some):
            y = middle + SPREAD * (2.0 * (n * 0.618034 % 1.0) - 1.0)
            parts.append(f'<circle cx="{at(row.distance):.1f}" cy="{y:.1f}" r="1.8" fill="#0072b2" fill-opacity="0.5"/>')
        low, mid, high = (at(float(np.quantile([row.distance for row in some], q))) for q in (0.1, 0.5, 0.9))
        parts.append(f'<rect x="{low:.1f}" y="{middle - 3:.1f}" width="{max(1.0, high - low):.1f}" height="6" fill="#d55e00" '
                     f'fill-opacity="0.55"/><rect x="{mid - 1.5:.1f}" y="{middle - 9:.1f}" width="3" height="18" '
                     'fill="#d55e00"/>')  # fmt: skip
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{height - 4}" text-anchor="middle" fill="currentColor">'
                 "time by the closed form / time by the cycle model</text>")  # fmt: skip
    return (f'<svg role="img" aria-label="{TITLE}, by op" width="{LEFT + WIDTH + 30}" height="{height}" font-size="12" '
            f'font-family="sans-serif">{"".join(parts)}</svg>')  # fmt: skip
