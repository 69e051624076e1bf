"""What the die model says: how far off it is on published dies, its process nodes and parts, and what its cost leaves out."""

from __future__ import annotations

import statistics

from archsim.device.silicon import silicon
from archsim.render.blocks import Block, Note, Table, Verdict, columns, percent, words
from archsim.study.whatif import DieCheck, die_checks

NOTE = (
    "Estimates of the die alone. The area counts the pins of the memory, HBM's too. The cost leaves out the memory: no GDDR "
    "chips, no HBM stacks, and no interposer, on which a die with HBM stands; nor does it count package, board, test and "
    "margins. Dies with a defect count as lost. The parts were fitted to these same dies; leaving out each in turn, the median "
    "error was 8 %, the largest 25 %. Sources: hwspecs/silicon/silicon.toml."
)


def sections() -> list[Block]:
    """The blocks of the model."""
    s, found = silicon(), die_checks()
    nodes = [[words(n.name), *(words(f"{value:g}") for value in (n.density / 1e6, n.cell, n.wafer, n.defects))]
             for n in s.nodes.values()]  # fmt: skip
    parts = [
        ("fp32 multiply-add per clock", f"{s.fp32:g} mm2"), ("of it, by warp schedulers", f"{100 * s.control:g} %"),
        ("fp64 multiply-add per clock", f"{s.fp64:g} mm2"),
        ("fp16 multiply-add per clock of tensor cores", f"{s.tensor:g} mm2"), ("pin of GDDR, LPDDR, DDR", f"{s.gddr:g} mm2"),
        ("pin of HBM", f"{s.hbm:g} mm2"), ("everything else", f"{s.rest:g} mm2"),
        ("registers, shared memory, L1 over their cells", f"x {s.sm_storage:g}"), ("L2 over its cells", f"x {s.l2_storage:g}"),
    ]  # fmt: skip
    errors = [abs(c.error) for c in found]
    off = f"Of {len(found)} published dies it misses half by less than {100 * statistics.median(errors):.0f} %, " \
          f"one by {100 * max(errors):.0f} %."  # fmt: skip
    scales = "Logic scales with transistor density, pins with its square root, storage with the SRAM cell."
    node_heads = columns("", "MTr/mm2", "SRAM cell um2", "wafer USD", "defects per cm2", numbers=range(1, 5))
    return [
        Verdict(title="The die model", sentences=[off, f"One exposure covers {s.field:.0f} mm2: nothing larger is one die."]),
        dies_table(found), Table(title="Process nodes", columns=node_heads, rows=nodes),
        Table(title=f"Areas at {s.reference}", columns=columns("", "takes", numbers=(1,)), notes=[scales],
              rows=[[words(name), words(takes)] for name, takes in parts]),
        Note(text=NOTE),
    ]  # fmt: skip


def dies_table(found: list[DieCheck]) -> Table:
    """Predicted against published area of each die, and the error."""
    rows = [[words(c.name), words(c.spec), words(c.node), words(f"{c.published:.0f} mm2"), words(f"{c.predicted:.0f} mm2"),
             percent(c.error, "+.0f")] for c in found]  # fmt: skip
    return Table(title="Published dies", columns=columns("", "spec", "node", "published", "model", "error", numbers=(3, 4, 5)),
                 rows=rows)  # fmt: skip
