"""The list of ops from which one is chosen to be explained."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.explain.layer import Slowest
from archsim.render.blocks import Block, Table, Verdict, columns, number, percent, stacked, words
from archsim.render.text import records_csv


def record(s: Slowest) -> list[dict[str, Any]]:
    """One object an op."""
    return [asdict(row) for row in s.ops]


def csv(s: Slowest) -> str:
    """One row an op."""
    return records_csv(record(s), {"network": s.network, "hardware": s.hardware, "hardware_name": s.hardware_name})


def sections(s: Slowest) -> list[Block]:
    """How much of the time they take, and each."""
    whole = sum(op.share for op in s.ops)
    most = max((op.time_s for op in s.ops), default=0.0)
    rows = [[words(op.layer), words(op.kind), words(op.phase.replace("_", " ")), number(op.time_s, "s"), percent(op.share),
             stacked({"0": op.time_s}, most, "s")] for op in s.ops]  # fmt: skip
    heads = columns("", "kind", "phase", "time", "share", "", numbers=(3, 4), bars=(5,))
    first = s.ops[0].layer if s.ops else "NAME"
    return [Verdict(title=f"{s.network} on {s.hardware_name}",
                    sentences=[f"These {len(s.ops)} ops take {100 * whole:.0f} % of the time."]),
            Table(title="The slowest ops", columns=heads, rows=rows,
                  notes=[f"--layer {first} explains one, --phase its gradient."])]  # fmt: skip
