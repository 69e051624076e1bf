"""The closed forms beside what simulates the same: traffic beside caches, times of random kernels beside the cycle model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from archsim.render.blocks import Block, Table, Verdict, columns, count, number, percent, words
from archsim.validation.random_kernels import Judged, SurrogateRow
from archsim.validation.traffic import BATCH, RoleDistance, TrafficRow

TRAFFIC, KERNELS = "archsim-traffic/1", "archsim-surrogate/1"  # schemas
BAND = 0.15
WORST = ("hardware", "network", "task", "layer", "phase", "kernel", "closed", "simulated")  # that is said of a kernel
GROUPS: Mapping[str, Callable[[SurrogateRow], str]] = {
    "op": lambda row: row.op, "machine": lambda row: "scaled" if row.scaled else "as shipped",
    "architecture": lambda row: row.architecture, "precision": lambda row: row.precision,
}  # fmt: skip
Record = dict[str, Any]


def rounded(value: Any, digits: int) -> Any:
    """Plain values, floats with so many digits."""
    if isinstance(value, Mapping):
        return {name: rounded(inner, digits) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, digits) for inner in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def traffic_record(rows: Sequence[TrafficRow], roles: Sequence[RoleDistance] = ()) -> Record:
    """Products of convolutions one by one, and all kernels of some runs by role."""
    kinds = [{**asdict(role), "worst": [{name: getattr(one, name) for name in WORST} for one in role.worst]} for role in roles]
    found: Record = rounded({
        "schema": TRAFFIC, "batch": BATCH, "dram_median_error": float(np.median([abs(row.dram_error) for row in rows])),
        "l2_median_error": float(np.median([abs(row.l2_error) for row in rows])), "rows": [asdict(row) for row in rows],
        "roles": kinds,
    }, 6)  # fmt: skip
    return found


def traffic_sections(r: Record) -> list[Block]:
    """How far the traffic is off, by product and by role, of what `traffic_record` has."""
    errors = {name: [row[f"{name}_model"] / row[f"{name}_simulated"] - 1.0 for row in r["rows"]] for name in ("dram", "l2")}
    close = sum(abs(error) <= BAND for error in errors["dram"])
    said = (f"Median error of the closed form: DRAM {100 * r['dram_median_error']:.1f} %, L2 {100 * r['l2_median_error']:.1f} %; "
            f"{close} of {len(r['rows'])} products within {100 * BAND:.0f} % (DRAM).")  # fmt: skip
    products = [[words(f"{row['hardware']} {row['network']} {row['layer']}"), number(row["dram_simulated"], "B"),
                 percent(dram, "+.1f"), number(row["l2_simulated"], "B"), percent(l2, "+.1f")]
                for row, dram, l2 in zip(r["rows"], errors["dram"], errors["l2"], strict=True)]  # fmt: skip
    roles = [[words(f"{row['device_kind'].upper()} {row['role'].replace('_', ' ')}"), words(row["level"]), count(row["kernels"]),
              percent(row["median"], ".0f"), percent(row["p90"], ".0f"),
              words(" ".join(row["worst"][0][name] for name in ("hardware", "network", "layer", "kernel")))]
             for row in r["roles"]]  # fmt: skip
    return [
        Verdict(title="Closed-form traffic beside simulated caches", asked=[f"batch {BATCH}", "fp32"], sentences=[said]),
        Table(title="Products", rows=products, columns=columns("", "DRAM", "error", "L2", "error", numbers=range(1, 5))),
        Table(title="Distance by role", rows=roles,
              columns=columns("", "level", "kernels", "median", "90 % below", "worst kernel", numbers=(2, 3, 4))),
    ]  # fmt: skip


def kernels_record(rows: Sequence[SurrogateRow], verdicts: Sequence[Judged], seed: int) -> Record:
    """Distances, |closed form / simulated - 1|, of all kernels and by group; `verdicts`: which one published times agree with."""

    def entry(some: Sequence[SurrogateRow]) -> Record:
        ratios = np.exp([row.distance for row in some])
        median, p90 = np.quantile(np.abs(ratios - 1.0), (0.5, 0.9))
        return {"kernels": len(some), "median": float(median), "p90": float(p90), "bias": float(np.median(ratios)) - 1.0}

    groups = {name: {group: entry([row for row in rows if of(row) == group]) for group in sorted({*map(of, rows)})}
              for name, of in GROUPS.items()}  # fmt: skip
    found: Record = rounded({
        "schema": KERNELS, "seed": seed, **entry(rows), **groups, "published": [asdict(verdict) for verdict in verdicts],
    }, 4)  # fmt: skip
    return found


def kernels_sections(r: Record) -> list[Block]:
    """How far apart the times are, of what `kernels_record` has."""
    said = (f"The closed form is within {100 * r['median']:.1f} % of the cycle model for half of the kernels, within "
            f"{100 * r['p90']:.1f} % for nine in ten; {100 * r['bias']:+.1f} % in the median.")  # fmt: skip
    found: list[Block] = [Verdict(title="The closed form beside the cycle model", sentences=[said],
                                  asked=[f"{r['kernels']:,} random kernels", f"seed {r['seed']}"])]  # fmt: skip
    for name in GROUPS:
        rows = [[words(group.replace("_", " ")), count(one["kernels"]), percent(one["median"]), percent(one["p90"]),
                 percent(one["bias"], "+.1f")] for group, one in r[name].items()]  # fmt: skip
        found.append(Table(title=f"By {name}", rows=rows,
                           columns=columns("", "kernels", "median", "90 % below", "bias", numbers=range(1, 5))))  # fmt: skip
    published = [[words(one["op"]), count(one["rows"]), percent(one["closed"]), percent(one["simulated"])]
                 for one in r["published"]]  # fmt: skip
    return [*found, Table(title="Errors on published times", rows=published,
                          columns=columns("", "rows", "closed form", "cycle model", numbers=(1, 2, 3)))]  # fmt: skip
