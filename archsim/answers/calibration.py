"""What the calibration says: its constants, how sure those are that were fitted, those that are derived; and the die model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from archsim.calibration.constants import Calibration, Constant
from archsim.device.silicon import silicon
from archsim.render.blocks import Block, Note, Table, Verdict, columns, percent, words
from archsim.study.whatif import DieCheck, die_checks


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownConstants:
    """The constants of a calibration whose names begin with `prefix`."""

    calibration: Calibration
    prefix: str

    @property
    def constants(self) -> Mapping[str, Constant]:
        """By name."""
        return {name: c for name, c in self.calibration.constants.items() if name.startswith(self.prefix)}


def record(shown: ShownConstants) -> dict[str, Any]:
    """The constants as plain values, with their factor of uncertainty."""
    spreads = shown.calibration.uncertainties()
    found = {name: asdict(c) | {"uncertainty": spreads.get(name)} for name, c in shown.constants.items()}
    return {"schema": "archsim-calibration/1", "version": shown.calibration.version, "constants": found}


def sections(shown: ShownConstants) -> list[Block]:
    """The blocks of the constants."""
    spreads, rows = shown.calibration.uncertainties(), []
    for name, c in shown.constants.items():
        factor = spreads.get(name)
        near = "" if factor is None else f"{c.value / factor:.3g} to {c.value * factor:.3g}"
        kind = "fitted" if c.fitted else "prior" if c.derived is None else "derived"
        rows.append([words(name), words(f"{c.value:.4g}"), words(near), words(f"{c.low:g} to {c.high:g}"), words(kind),
                     words(c.origin)])  # fmt: skip
    fitted = sum(c.fitted for c in shown.constants.values())
    found: list[Block] = [
        Verdict(title="Calibration", asked=[shown.calibration.version, f"{len(rows)} constants, {fitted} of them fitted"]),
        Table(title="Constants", columns=columns("", "value", "80 % interval", "range", "kind", "origin", numbers=(1,)),
              rows=rows, long=True),
    ]  # fmt: skip
    derived = {name: c.derived for name, c in shown.constants.items() if c.derived is not None}
    own = [[words(of), *(words(f"{values[of]:.4g}" if of in values else "") for values in derived.values())]
           for of in sorted({of for values in derived.values() for of in values})]  # fmt: skip
    note = "By the cycle model, for each kind of SM (architecture and warps) and, where they differ, each device."
    heads = columns("", *derived, numbers=range(1, len(derived) + 1))
    return [*found, Table(title="SM or device", columns=heads, rows=own, notes=[note])] if derived else found


# --------------------------------------------------------------------------------------------------------- die model

NOTE = (
    "Estimates of the die alone. The area counts the pins of the memory, HBM's too. The cost leaves out the memory: no GDDR "
    "chips, no HBM stacks, and no interposer, on which a die with HBM stands; nor does it count package, board, test and "
    "margins. Dies with a defect count as lost. The parts were fitted to these same dies; leaving out each in turn, the median "
    "error was 8 %, the largest 25 %. Sources: hwspecs/silicon/silicon.toml."
)


def die_model() -> list[Block]:
    """What the die model says: how far off it is on published dies, its process nodes and parts, what its cost leaves out."""
    s, found = silicon(), die_checks()
    nodes = [[words(n.name), *(words(f"{value:g}") for value in (n.density / 1e6, n.cell, n.wafer, n.defects))]
             for n in s.nodes.values()]  # fmt: skip
    parts = [
        ("fp32 multiply-add per clock", f"{s.fp32:g} mm2"), ("fp64 multiply-add per clock", f"{s.fp64:g} mm2"),
        ("fp16 multiply-add per clock of tensor cores", f"{s.tensor:g} mm2"), ("pin of GDDR, LPDDR, DDR", f"{s.gddr:g} mm2"),
        ("pin of HBM", f"{s.hbm:g} mm2"), ("everything else", f"{s.rest:g} mm2"),
        ("registers, shared memory, L1 over their cells", f"x {s.sm_storage:g}"), ("L2 over its cells", f"x {s.l2_storage:g}"),
    ]  # fmt: skip
    errors = [abs(c.error) for c in found]
    off = f"Of {len(found)} published dies it misses half by less than {100 * median(errors):.0f} %, " \
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
