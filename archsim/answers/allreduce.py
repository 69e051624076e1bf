"""What simulated all-reduces say: how fast a node exchanges, beside what was measured."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Any

from archsim.base.units import show
from archsim.render.blocks import Axis, Block, Chart, Column, Series, Table, Verdict, columns, count, number, words
from archsim.render.text import records_csv
from archsim.simulate.allreduce import AllReduces


def record(a: AllReduces) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": "archsim-allreduce/1", "node": a.node, "rows": [asdict(row) for row in a.rows]}


def csv(a: AllReduces) -> str:
    """One row for each size and number of devices."""
    return records_csv([asdict(row) for row in a.rows], {"node": a.node})


def sections(a: AllReduces) -> list[Block]:
    """The blocks of an answer."""
    fast = max(a.rows, key=lambda row: row.bandwidth_Bps)
    errors = [abs(error) for error in a.errors]
    seen = "Nobody has published a measurement of these."
    if errors:
        far = f"{100 * median(errors):.0f} % off in the median, {100 * max(errors):.0f} % at most"
        seen = f"Beside {len(errors)} measurements of DeepBench: {far}."
    rows = [
        [count(row.devices), number(row.size, "B", 4), number(row.time_s, "s", 4), number(row.bandwidth_Bps, "B/s"),
         count(row.rings), words(", ".join(f"{m.hardware} {show(m.time_s, 's', 3)} ({100 * (row.time_s / m.time_s - 1):+.0f} %)"
                                           for m in row.measured))]
        for row in a.rows
    ]  # fmt: skip
    heads = [*columns("devices", "bytes", "time", "bus bandwidth", "rings", numbers=range(5)),
             Column(head="measured by DeepBench", needed=False)]  # fmt: skip
    top = (show(fast.bandwidth_Bps, "B/s", 3), "at most", f"{show(fast.size, 'B', 3)} on {fast.devices} devices in "
           f"{show(fast.time_s, 's', 3)}")  # fmt: skip
    return [Verdict(title=f"Ring all-reduce in {a.node}", asked=["bus bandwidth"], lines=[top], sentences=[seen]),
            Table(columns=heads, rows=rows), bandwidths(a)]  # fmt: skip


def bandwidths(a: AllReduces) -> Chart:
    """The bus bandwidth against the size, a line for each number of devices, and what was measured."""
    counts = sorted({row.devices for row in a.rows})
    lines = []
    for tone, devices in enumerate(counts):
        mine = sorted((row for row in a.rows if row.devices == devices), key=lambda row: row.size)
        lines.append(Series(name=f"{devices} devices", tone=str(tone), x=[row.size for row in mine],
                            y=[row.bandwidth_Bps for row in mine]))  # fmt: skip
    seen = [(m, row.bandwidth_Bps * row.time_s / m.time_s) for row in a.rows for m in row.measured]
    tips = [f"{m.hardware}, {m.devices} devices: {show(m.time_s, 's', 3)}" for m, _ in seen]
    lines.append(Series(name="measured", tone="quiet", joined=False, tips=tips, x=[m.size for m, _ in seen],
                        y=[rate for _, rate in seen]))  # fmt: skip
    top = 1.1 * max(max(line.y, default=0.0) for line in lines)
    return Chart(title="Bus bandwidth by size", series=lines, x=Axis(title="size", unit="B"),
                 y=Axis(title="bus bandwidth", unit="B/s", log=False, ends=(0.0, top)))  # fmt: skip
