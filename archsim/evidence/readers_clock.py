"""Rows of core clocks that boards hold under dense load at their own power limit, which the power model has to predict."""

from __future__ import annotations

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.readers_kernel import BUILDERS, parameters
from archsim.evidence.resolve import Refused, setting
from archsim.evidence.software import stack_of
from archsim.evidence.table import Row


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row: the clock at which this kernel repeats at the TDP, whatever the spec's sustained clock is."""
    cells = row.cells
    if cells["op"] not in BUILDERS:
        raise Refused(f"op {cells['op']!r} is not modelled")
    found = setting(cells["hardware"], stack_of(cells, "kernels", cells["software"]), cells["dtype"])
    built = BUILDERS[cells["op"]](cells, parameters(cells))
    return [case_of(row, file, found, cells["op"], "clock_hz", float(cells["clock_mhz"]) * 1e6, built,
                    limit=float(found.spec.device.power.tdp))]  # fmt: skip


FAMILY = Family(
    name="clocks",
    columns=("source_id", "op", "sub_op", "m", "n", "k", "dtype", "software", "clock_mhz", "hardware"),
    words=("source_id", "op", "dtype", "software", "hardware"),
    numbers=("clock_mhz",),
    whole=("m", "n", "k"),
    measured=("clock_mhz",),
    read=read,
)
