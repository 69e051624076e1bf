"""The traffic model beside simulated caches: text, JSON, and a page with a static chart."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.report.drawing import drawing
from archsim.report.frame import document
from archsim.report.markup import TableCell, number, percent, table, text, words
from archsim.report.text import table as text_table
from archsim.validation.traffic import BATCH, TrafficRow, median_error
from archsim.validation.traffic_kinds import NEGLIGIBLE, KernelDistance, RoleDistance

SCHEMA = "archsim-traffic/1"
BAND = 0.15
HOW = (
    f"Products of the convolutions at batch {BATCH}, forward, fp32, with the algorithm and tile that the model chooses. CTAs "
    "run in order, tiles along m first, a choice, as the libraries do not say; those that are resident take turns of 32 "
    "values of k. Each multiprocessor has its L1 (write through, no allocation on writes), all share the L2 (write back); "
    "lines of 128 B in sectors of 32 B, 16 ways where the spec has none, LRU, sets by a hash. B is what the op before has "
    "left. Of launches of more than six waves the first six run; the rest is taken to be like those after the first. "
    "Copies, transforms and biases move every tensor once in both, and are left out."
)
WHY = (
    ("gtx_1080 vgg_16 conv2_2: memory, the model has 42 % less",
     "The filters fill exactly half of the L2, so the model keeps them. But between two uses of them a wave's parts of B and "
     "C pass, which with the filters are more than the L2: LRU drops them, and every wave reads them again. On "
     "titan_x_maxwell, with half as much L2 again, they stay."),
    ("gtx_1080 alexnet conv3: memory, the model has 32 % less",
     "The model lets the CTAs that run together cover a square of 6 x 6 tiles. In the order simulated here they cover all 12 "
     "tiles along m and 3.3 along n: A is read 8.4 times instead of 5, B once instead of twice."),
    ("vgg_16 conv4_2 and conv4_3: memory, the model has 13 to 14 % less",
     "A product of the batch has 52 tiles and a wave 80 or 96 CTAs: most waves end inside a product, whose A the next one "
     "reads again. The model takes each product as a whole."),
    ("Products of transformed values (vgg_16 conv3 and conv4), and conv1_1: L2, the model has 21 to 65 % more",
     "CTAs that share a multiprocessor and a row of tiles find in the L1 what the other has just loaded. The model lets "
     "every CTA load its own. Where those it runs at a time (R) have few different rows of A, R of the loads of A become "
     "c s: of P multiprocessors and G x H tiles a product, c = G / gcd(G, P) rows in s = 1 + (R - 1) P / (G H) products, "
     "R at most. With that the median of all L2 errors falls from 15 to 3 %, with the tiles counted one by one to 1.6 %. "
     "Whether these kernels use the L1 for such loads is not published, so the model leaves it out."),
    ("gtx_1080 alexnet conv1: L2, the model has 31 % less",
     "Eight CTAs gather through 48 KiB of L1, which loses half of the overlapping taps before they are needed; the model "
     "takes every overlap as a hit. With four times the L1 the simulation moves 92 MB instead of 171 MB. On titan_x_maxwell "
     "the same excess is hidden by rows of A that CTAs of one multiprocessor share."),
    ("vgg_16 conv1_2 to conv2_2: L2, the model has 15 % less",
     "The squares of a fused Winograd kernel are taken in rows here, which have more halo than the model's patches of 4 x 8. "
     "Sectors of 32 B, of which the ends of a row waste a part, are 4 of the 15 %: in sectors of 8 B the model has 11 % less."),
)  # fmt: skip
HEAD = ("role", "level", "kernels", "median", "90 %", "worst kernels: closed form, simulated")
KINDS = (
    "Every different kernel of inference at batch 16 and of some training steps, with the algorithms and tiles that the model "
    "chooses: |closed form / simulated - 1| of the bytes below a level. Products of GPUs are simulated for three waves, the "
    "other kernels by the stack distances of their loops. What is less than "
    f"{100 * NEGLIGIBLE:.0f} % of a kernel's tensors counts as so much on both sides. Of a CPU the closed form counts between L1 "
    "and L2 what products read there, and no streams."
)
DEVICES = {"gpu": "GPUs", "cpu": "CPUs"}


def traffic_json(rows: Sequence[TrafficRow], kinds: Sequence[RoleDistance] = ()) -> str:
    """One JSON object; `kinds` has the distances of all kernels by role."""
    body = {
        "schema": SCHEMA, "batch": BATCH, "dram_median_error": _rounded(median_error([row.dram_error for row in rows])),
        "l2_median_error": _rounded(median_error([row.l2_error for row in rows])),
        "rows": [{name: _rounded(value) for name, value in asdict(row).items()} for row in rows], "roles": kinds_json(kinds),
    }  # fmt: skip
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def traffic_text(rows: Sequence[TrafficRow], kinds: Sequence[RoleDistance] = ()) -> str:
    """A table, and the medians; the same by role."""
    cells = [
        (row.hardware, row.network, row.layer, row.kernel, row.tile, f"{row.waves:.1f}", f"{100 * row.share:.0f} %",
         show(row.dram_model, "B", 3), show(row.dram_simulated, "B", 3), f"{100 * row.dram_error:+.1f} %",
         show(row.l2_model, "B", 3), show(row.l2_simulated, "B", 3), f"{100 * row.l2_error:+.1f} %")
        for row in rows
    ]  # fmt: skip
    head = ("device", "network", "layer", "kernel", "tile", "waves", "run", "DRAM model", "simulated", "error", "L2 model",
            "simulated", "error")  # fmt: skip
    parts = [text_table(head, cells, left=5), _medians(rows), *([kinds_text(kinds)] if kinds else [])]
    return "\n\n".join(parts)


def _medians(rows: Sequence[TrafficRow]) -> str:
    dram, l2 = ([getattr(row, name) for row in rows] for name in ("dram_error", "l2_error"))
    close = sum(abs(error) <= BAND for error in dram)
    return (
        f"Median error of the closed form: DRAM {100 * median_error(dram):.1f} %, L2 {100 * median_error(l2):.1f} %; "
        f"{close} of {len(rows)} products within {100 * BAND:.0f} % (DRAM)"
    )


def traffic_page(rows: Sequence[TrafficRow], kinds: Sequence[RoleDistance] = ()) -> str:
    """A page of tables with two scatter plots as SVG, and the distances by role."""
    head = ("layer", "kernel and tile", "waves", "run", "DRAM model", "simulated", "error", "L2 model", "simulated", "error")
    devices = dict.fromkeys(row.hardware for row in rows)
    tables = [f"<h2>{text(name)}</h2>{table(head, [_cells(row) for row in rows if row.hardware == name])}" for name in devices]
    sections = [
        "<h1>Closed-form traffic beside simulated caches</h1>", f'<p class="asked">{text(_medians(rows))}</p>',
        f'<p class="quiet">{text(HOW)}</p>', _picture(rows), *tables, "<h2>The largest disagreements</h2>",
        "".join(f"<h3>{text(what)}</h3><p>{text(why)}</p>" for what, why in WHY), *(kinds_page(kinds) if kinds else []),
    ]  # fmt: skip
    return document("Closed-form traffic beside simulated caches", sections)


def _cells(row: TrafficRow) -> tuple[TableCell, ...]:
    return (
        words(f"{row.network} {row.layer}"), words(f"{row.kernel.replace('_', ' ')}, {row.tile.replace('x', ' x ')}"),
        number(row.waves, "1"), percent(row.share, ".0f"), number(row.dram_model, "B"), number(row.dram_simulated, "B"),
        percent(row.dram_error, "+.1f"), number(row.l2_model, "B"), number(row.l2_simulated, "B"), percent(row.l2_error, "+.1f"),
    )  # fmt: skip


SIDE, MARGIN = 420, 70  # of one square plot [px]
COLOURS = {"gtx_1080": "#0072b2", "titan_x_maxwell": "#d55e00"}


def _picture(rows: Sequence[TrafficRow]) -> str:
    head = ("hardware", "network", "layer", "kernel", "dram_model", "dram_simulated", "l2_model", "l2_simulated")
    return drawing(svg(rows), "traffic", head, [[getattr(row, name) for name in head] for row in rows])


def svg(rows: Sequence[TrafficRow]) -> str:
    """Model over simulation, for DRAM and for L2, on logarithmic axes; dashed: 15 % more and less."""
    plots = [_plot(rows, name, title, i) for i, (name, title) in enumerate((("dram", "DRAM"), ("l2", "L2")))]
    width, height = 2 * (SIDE + MARGIN) + 30, SIDE + MARGIN + 24
    legend = "".join(
        f'<circle cx="{MARGIN + 8 + 170 * i}" cy="10" r="4" fill="{colour}"/>'
        f'<text x="{MARGIN + 16 + 170 * i}" y="14">{name}</text>'
        for i, (name, colour) in enumerate(COLOURS.items())
    )
    return (
        f'<svg role="img" aria-label="Model beside simulation" width="{width}" height="{height}" font-size="12" '
        f'font-family="sans-serif">{legend}{"".join(plots)}</svg>'
    )


def _plot(rows: Sequence[TrafficRow], name: str, title: str, i: int) -> str:
    pairs = [(getattr(row, f"{name}_simulated"), getattr(row, f"{name}_model"), row) for row in rows]
    low = math.floor(math.log10(min(min(x, y) for x, y, _ in pairs)))
    high = math.ceil(math.log10(max(max(x, y) for x, y, _ in pairs)))
    left, top = MARGIN + i * (SIDE + MARGIN), 24

    def at(x: float, y: float) -> tuple[float, float]:
        return (left + SIDE * (math.log10(x) - low) / (high - low), top + SIDE * (1 - (math.log10(y) - low) / (high - low)))

    parts = [f'<rect x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#b8c0ca"/>']
    for factor, dash in ((1.0, ""), (1 + BAND, ' stroke-dasharray="4 3"'), (1 - BAND, ' stroke-dasharray="4 3"')):
        begin, end = max(1.0, 1 / factor), min(1.0, 1 / factor)
        (x1, y1), (x2, y2) = at(10.0**low * begin, 10.0**low * begin * factor), at(10.0**high * end, 10.0**high * end * factor)
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#1d2530"{dash}/>')
    for x, y, row in pairs:
        cx, cy = at(x, y)
        tip = text(f"{row.hardware} {row.network} {row.layer}: {100 * (y / x - 1):+.0f} %")
        colour = COLOURS.get(row.hardware, "#999999")
        look = f'r="4" fill="{colour}" fill-opacity="0.7"'
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" {look}><title>{tip}</title></circle>')
    for power in range(low, high + 1):
        x0, y0 = at(10.0**power, 10.0**power)
        shown = show(10.0**power, "B", 4)
        parts.append(f'<text x="{x0:.1f}" y="{top + SIDE + 16}" text-anchor="middle">{shown}</text>')
        parts.append(f'<text x="{left - 6}" y="{y0 + 4:.1f}" text-anchor="end">{shown}</text>')
    parts.append(f'<text x="{left + SIDE / 2}" y="{top + SIDE + 36}" text-anchor="middle">{title}, simulated (up: model)</text>')
    return "".join(parts)


def kinds_json(rows: Sequence[RoleDistance]) -> list[dict[str, Any]]:
    """The rows as plain values."""
    return [
        {"device_kind": row.device_kind, "role": row.role, "level": row.level, "kernels": row.kernels,
         "median": _rounded(row.median), "p90": _rounded(row.p90),
         "worst": [{"hardware": one.hardware, "network": one.network, "task": one.task, "layer": one.layer, "phase": one.phase,
                    "kernel": one.kernel, "closed": _rounded(one.closed), "simulated": _rounded(one.simulated)}
                   for one in row.worst]}
        for row in rows
    ]  # fmt: skip


def kinds_text(rows: Sequence[RoleDistance]) -> str:
    """A table for each kind of device."""
    parts = []
    for kind, title in DEVICES.items():
        cells = [(row.role, row.level, str(row.kernels), f"{100 * row.median:.0f} %", f"{100 * row.p90:.0f} %",
                  _worst(row.worst[0])) for row in rows if row.device_kind == kind]  # fmt: skip
        if cells:
            parts.append(f"{title}: distance of the closed form by role\n{text_table(HEAD, cells, left=2)}")
    return "\n\n".join(parts)


def _worst(row: KernelDistance) -> str:
    sizes = ", ".join(show(value, "B", 3) for value in (row.closed, row.simulated))
    return f"{row.hardware} {row.network} {row.layer} {row.kernel}: {sizes}"


def kinds_page(rows: Sequence[RoleDistance]) -> list[str]:
    """Sections of the page."""
    sections = ["<h2>All kernels, by role</h2>", f'<p class="quiet">{text(KINDS)}</p>']
    for kind, title in DEVICES.items():
        own = [_kind_cells(row) for row in rows if row.device_kind == kind]
        if own:
            sections.append(f"<h3>{title}</h3>{table(HEAD, own)}")
    return sections


def _kind_cells(row: RoleDistance) -> tuple[TableCell, ...]:
    return (words(row.role.replace("_", " ")), words(row.level), number(row.kernels, "1"), percent(row.median, ".0f"),
            percent(row.p90, ".0f"), words("; ".join(_worst(one) for one in row.worst)))  # fmt: skip
