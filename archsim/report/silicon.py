"""The die model: process nodes, parts, and its error on published dies."""

from __future__ import annotations

import statistics

from archsim.base.units import show
from archsim.device.silicon import silicon
from archsim.report.text import table
from archsim.study.silicon import DieCheck, DieEstimate, die_checks

NOTE = (
    "Estimates. The parts were fitted to these same dies; leaving out each in turn, the median error was 8 %, the largest\n"
    "25 %. The cost leaves out package, memory chips, board, test and margins; dies with a defect count as lost."
)


def silicon_text() -> str:
    """Nodes, parts and the table of dies."""
    s = silicon()
    nodes = [(n.name, f"{n.density / 1e6:g}", f"{n.cell:g}", f"{n.wafer:g}", f"{n.defects:g}") for n in s.nodes.values()]
    parts = [
        ("fp32 multiply-add per clock", f"{s.fp32:g} mm2"), ("fp64 multiply-add per clock", f"{s.fp64:g} mm2"),
        ("fp16 multiply-add per clock of tensor cores", f"{s.tensor:g} mm2"), ("pin of GDDR, LPDDR, DDR", f"{s.gddr:g} mm2"),
        ("pin of HBM", f"{s.hbm:g} mm2"), ("everything else", f"{s.rest:g} mm2"),
        ("registers, shared memory, L1 over their cells", f"x {s.sm_storage:g}"), ("L2 over its cells", f"x {s.l2_storage:g}"),
    ]  # fmt: skip
    head = ("node", "MTr/mm2", "SRAM cell um2", "wafer USD", "defects per cm2")
    return "\n\n".join([
        "Nodes\n" + table(head, nodes),
        f"Areas at {s.reference}: logic scales with transistor density, pins with its square root, storage with the SRAM cell\n"
        + table(("part", "takes"), parts),
        "Published dies beside the model\n" + dies_table(die_checks()),
        f"One exposure covers {s.field:.0f} mm2: nothing larger is one die.",
        NOTE + " Sources: hwspecs/silicon/silicon.toml.",
    ])  # fmt: skip


def dies_table(found: list[DieCheck]) -> str:
    """Predicted against published area of each die, and the error."""
    rows = [
        (c.name, c.spec, c.node, f"{c.published:.0f} mm2", f"{c.predicted:.0f} mm2", f"{100 * c.error:+.0f} %") for c in found
    ]
    errors = [abs(c.error) for c in found]
    summary = f"median error {100 * statistics.median(errors):.0f} %, largest {100 * max(errors):.0f} %"
    return table(("die", "spec", "node", "published", "model", "error"), rows, left=3) + f"\n{summary}"


def die_line(c: DieEstimate) -> str:
    """One die on one line."""
    parts = ", ".join(f"{name} {100 * part / c.area:.0f} %" for name, part in c.parts.items())
    own = "" if c.published is None else f", scaled from the published {c.published:g} mm2"
    large = "" if c.feasible else f"; no mask can make it as one die: one exposure covers {silicon().field:.0f} mm2"
    return f"{c.area:.0f} mm2 ({parts}), {100 * c.good:.0f} % yield, {show(c.cost, 'USD', 3)} a die{own}{large}"
