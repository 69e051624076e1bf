"""The traffic model beside simulated caches: how far its closed forms are off, layer by layer and by the role of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.render.blocks import (
    Axis,
    Block,
    Chart,
    Note,
    Series,
    Table,
    Verdict,
    columns,
    count,
    number,
    percent,
    words,
)
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
KINDS = (
    "Every different kernel of inference at batch 16 and of some training steps, with the algorithms and tiles that the model "
    "chooses: |closed form / simulated - 1| of the bytes below a level. Products of GPUs are simulated for three waves, the "
    "other kernels by the stack distances of their loops. What is less than "
    f"{100 * NEGLIGIBLE:.0f} % of a kernel's tensors counts as so much on both sides. Of a CPU the closed form counts between L1 "
    "and L2 what products read there, and no streams."
)
DEVICES = {"gpu": "GPUs", "cpu": "CPUs"}


def record(rows: Sequence[TrafficRow], kinds: Sequence[RoleDistance] = ()) -> dict[str, Any]:
    """Plain values; `kinds` has the distances of all kernels by role."""
    return {
        "schema": SCHEMA, "batch": BATCH, "dram_median_error": _rounded(median_error([row.dram_error for row in rows])),
        "l2_median_error": _rounded(median_error([row.l2_error for row in rows])),
        "rows": [{name: _rounded(value) for name, value in asdict(row).items()} for row in rows],
        "roles": [_role_record(row) for row in kinds],
    }  # fmt: skip


def _role_record(row: RoleDistance) -> dict[str, Any]:
    worst = ("hardware", "network", "task", "layer", "phase", "kernel", "closed", "simulated")
    return {name: _rounded(getattr(row, name)) for name in ("device_kind", "role", "level", "kernels", "median", "p90")} | {
        "worst": [{name: _rounded(getattr(one, name)) for name in worst} for one in row.worst]}  # fmt: skip


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def sections(rows: Sequence[TrafficRow], kinds: Sequence[RoleDistance] = ()) -> list[Block]:
    """The blocks of the comparison."""
    dram, l2 = ([getattr(row, name) for row in rows] for name in ("dram_error", "l2_error"))
    close = sum(abs(error) <= BAND for error in dram)
    said = (f"Median error of the closed form: DRAM {100 * median_error(dram):.1f} %, L2 {100 * median_error(l2):.1f} %; "
            f"{close} of {len(rows)} products within {100 * BAND:.0f} % (DRAM).")  # fmt: skip
    found: list[Block] = [Verdict(title="Closed-form traffic beside simulated caches", asked=[f"batch {BATCH}", "fp32"],
                                  sentences=[said]), Note(text=HOW, tone="quiet", only="page")]  # fmt: skip
    found += [_scatter(rows, name, title) for name, title in (("dram", "DRAM"), ("l2", "L2"))]
    found += [_products(name, [row for row in rows if row.hardware == name]) for name in dict.fromkeys(r.hardware for r in rows)]
    found.append(Table(title="The largest disagreements", columns=columns("where", "why"), only="page",
                       rows=[[words(what), words(why)] for what, why in WHY]))  # fmt: skip
    if kinds:
        found.append(Note(text=KINDS, tone="quiet", only="page"))
    by_kind = {title: [row for row in kinds if row.device_kind == kind] for kind, title in DEVICES.items()}
    return [*found, *(_roles(title, own) for title, own in by_kind.items() if own)]


def _products(device: str, rows: Sequence[TrafficRow]) -> Table:
    heads = (device, "kernel and tile", "waves", "run", "DRAM model", "simulated", "error", "L2 model", "simulated", "error")
    lines = [[words(f"{row.network} {row.layer}"), words(f"{row.kernel.replace('_', ' ')}, {row.tile.replace('x', ' x ')}"),
              number(row.waves), percent(row.share, ".0f"), number(row.dram_model, "B"), number(row.dram_simulated, "B"),
              percent(row.dram_error, "+.1f"), number(row.l2_model, "B"), number(row.l2_simulated, "B"),
              percent(row.l2_error, "+.1f")] for row in rows]  # fmt: skip
    return Table(title=device, columns=columns(*heads, numbers=range(2, 10), spare=(1, 2, 3, 7, 8)), rows=lines)


def _scatter(rows: Sequence[TrafficRow], name: str, title: str) -> Chart:
    """Model over simulation on logarithmic axes; dashed: `BAND` more and less."""
    found = [(row, getattr(row, f"{name}_simulated"), getattr(row, f"{name}_model")) for row in rows]
    values = [value for _, x, y in found for value in (x, y)] or [1.0]
    span = 0.8 * min(values), 1.25 * max(values)
    series = [Series(name="", x=span, y=(factor * span[0], factor * span[1]), tone="quiet", mark="", dashed=factor != 1)
              for factor in (1.0, 1 + BAND, 1 - BAND)]  # fmt: skip
    for device in dict.fromkeys(row.hardware for row in rows):
        own = [(row, x, y) for row, x, y in found if row.hardware == device]
        series.append(Series(name=device, x=[x for _, x, _ in own], y=[y for _, _, y in own], joined=False,
                             labels=[f"{row.network} {row.layer}" if abs(y / x - 1) > BAND else "" for row, x, y in own],
                             tips=[f"{row.network} {row.layer}: {100 * (y / x - 1):+.0f} %" for row, x, y in own]))  # fmt: skip
    axes = [Axis(title=f"{title} traffic, {of}", unit="B", log=True, ends=span) for of in ("simulated", "closed form")]
    return Chart(title=f"{title} traffic", series=series, x=axes[0], y=axes[1], height=420)


def _roles(title: str, rows: Sequence[RoleDistance]) -> Table:
    heads = ("role", "level", "kernels", "median", "90 %", "worst kernels: closed form, simulated")
    lines = [[words(row.role.replace("_", " ")), words(row.level), count(row.kernels), percent(row.median, ".0f"),
              percent(row.p90, ".0f"), words("; ".join(_worst(one) for one in row.worst[:1]),
                                             tip="; ".join(_worst(one) for one in row.worst))] for row in rows]  # fmt: skip
    return Table(title=f"{title}: distance of the closed form by role", columns=columns(*heads, numbers=(2, 3, 4), spare=(5,)),
                 rows=lines)  # fmt: skip


def _worst(row: KernelDistance) -> str:
    sizes = ", ".join(show(value, "B", 3) for value in (row.closed, row.simulated))
    return f"{row.hardware} {row.network} {row.layer} {row.kernel}: {sizes}"
