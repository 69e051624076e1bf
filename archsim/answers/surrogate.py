"""The closed form beside the cycle model on random kernels: how far apart they are, by op, machine and precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from archsim.answers.cells import ratio_scale, spread
from archsim.render.blocks import Block, Note, Table, Verdict, columns, count, percent, words
from archsim.validation.surrogate import FACTORS, KERNELS_OF_MACHINE, Judged, SurrogateRow
from archsim.validation.verdict import quantiles

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
    ratios = _ratios(rows)
    off = np.abs(ratios - 1.0)
    return len(rows), float(np.median(off)), float(np.quantile(off, 0.9)), float(np.median(ratios)) - 1.0


def _ratios(rows: Sequence[SurrogateRow]) -> Any:
    return np.exp([row.distance for row in rows])


def grouped(rows: Sequence[SurrogateRow], of: Callable[[SurrogateRow], str]) -> dict[str, list[SurrogateRow]]:
    """Rows by a property, in the order of its words."""
    return {name: [row for row in rows if of(row) == name] for name in sorted({of(row) for row in rows})}


def record(rows: Sequence[SurrogateRow], verdicts: Sequence[Judged], seed: int) -> dict[str, Any]:
    """Plain values; distances are |closed form / simulated - 1|."""
    def entry(some: Sequence[SurrogateRow]) -> dict[str, float]:
        kernels, median, p90, bias = summary(some)
        return {"kernels": kernels, "median": _rounded(median), "p90": _rounded(p90), "bias": _rounded(bias)}

    return {
        "schema": SCHEMA, "seed": seed, **entry(rows),
        **{name: {group: entry(some) for group, some in grouped(rows, of).items()} for name, of in GROUPS},
        "published": [{k: _rounded(v) for k, v in asdict(verdict).items()} for verdict in verdicts],
    }  # fmt: skip


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def sections(rows: Sequence[SurrogateRow], verdicts: Sequence[Judged], seed: int) -> list[Block]:
    """The blocks of the comparison; `verdicts` say which one agrees with published times."""
    kernels, median, p90, bias = summary(rows)
    said = (f"The closed form is within {100 * median:.1f} % of the cycle model for half of the kernels, within "
            f"{100 * p90:.1f} % for nine in ten; {100 * bias:+.1f} % in the median.")  # fmt: skip
    asked = [f"{kernels:,} random kernels", f"seed {seed}"]
    found: list[Block] = [Verdict(title=TITLE, asked=asked, sentences=[said]),
                          Note(text=HOW, tone="quiet", only="page"),
                          *(_table(rows, name, of) for name, of in GROUPS)]  # fmt: skip
    note = ("Bars: time by the closed form / time by the cycle model, from the 10th to the 90th percentile, the middle half "
            "darker, a mark at the median, a ring where both are equal.")  # fmt: skip
    found.append(Note(text=note, tone="quiet", only="page"))
    if verdicts:
        found.append(Table(
            title="Which one published times agree with",
            notes=["Median error of both on a sample of published rows of single ops on GPUs."],
            columns=columns("op", "rows", "closed form", "cycle model", numbers=(1, 2, 3)),
            rows=[[words(v.op), count(v.rows), percent(v.closed), percent(v.simulated)] for v in verdicts],
        ))  # fmt: skip
    return found


def _table(rows: Sequence[SurrogateRow], name: str, of: Callable[[SurrogateRow], str]) -> Table:
    groups = {group: quantiles(_ratios(some)) for group, some in grouped(rows, of).items()}
    place = ratio_scale(groups.values())
    lines = []
    for group, some in grouped(rows, of).items():
        kernels, median, p90, bias = summary(some)
        lines.append([words(group.replace("_", " ")), count(kernels), percent(median), percent(p90), percent(bias, "+.1f"),
                      spread(groups[group], place)])  # fmt: skip
    heads = (name, "kernels", "median", "90 % below", "bias", "")
    return Table(title=f"By {name}", columns=columns(*heads, numbers=range(1, 5), bars=(5,), spare=(3,)), rows=lines)
