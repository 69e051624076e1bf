"""What each part of the model is worth: how far measured rows are off without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.evidence.case import Case
from archsim.stack.stack import STACK_KEYS

Tell = Callable[[str], None]

VOLTAGE = ("power.voltage_slope", "power.voltage_floor")  # of an architecture
LEFT_OUT: Mapping[str, Mapping[str, float]] = {  # part of the power -> what constants whose names begin so are then
    "voltage": {"energy.voltage_floor": 1.0, "energy.core_voltage_floor": 1.0},
    "leakage": {"energy.idle_leakage": 0.0},
    "idle_clock": {"energy.idle_clock": 0.0},
    "memory_clock": {"energy.idle_memory": 0.0},
    "awake": {"energy.clock": 0.0, "energy.core_clock": 0.0},
    "fp32_energy": {"energy.lane": 0.0}, "int_energy": {"energy.int": 0.0}, "fp64_energy": {"energy.double": 0.0},
    "special_energy": {"energy.special": 0.0}, "tensor_energy": {"energy.tensor": 0.0}, "shared_energy": {"energy.shared": 0.0},
    "l2_energy": {"energy.cache": 0.0}, "dram_energy": {"energy.byte.": 0.0},
}  # fmt: skip
POWER_PARTS = tuple(LEFT_OUT)


def left_out(cases: Sequence[Case], calibration: Calibration, without: frozenset[str]) -> tuple[list[Case], Calibration]:
    """The cases and the constants by which these parts of the power, and these keys of stacks, are not modelled.

    A key of a stack: every stack has its default. voltage: the same at every clock; leakage, idle_clock: they stand, whatever
    clock and voltage; memory_clock: what stands does not follow it; the energies of units are none, neither is that of the
    clocks of units at work (awake)
    """
    found: dict[str, float] = {}
    for part in without & LEFT_OUT.keys():
        for begins, value in LEFT_OUT[part].items():
            found |= dict.fromkeys((name for name in calibration.constants if name.startswith(begins)), value)
    flat = [_flat(case) for case in cases] if "voltage" in without else list(cases)
    if keys := without.intersection(STACK_KEYS):
        stacks = {case.stack.digest: case.stack.without(keys) for case in flat}
        flat = [case if (other := stacks[case.stack.digest]) == case.stack else replace(case, stack=other) for case in flat]
    return flat, calibration.with_values(found) if found else calibration


def _flat(case: Case) -> Case:
    """The case on a device of whose voltage nothing is known."""
    entries = {key: entry for key, entry in case.spec.entries.items() if key not in VOLTAGE}
    return case if len(entries) == len(case.spec.entries) else replace(case, spec=replace(case.spec, entries=entries))


def worth(
    parts: Sequence[str], errors_without: Callable[[str], Any], tell: Tell = lambda text: None
) -> dict[str, dict[str, Any]]:
    """For each part how many rows there are, and by how much they are off without it: MAPE and median.

    errors_without: signed relative errors of the rows without a part, [rows]
    """
    found = {}
    for number, part in enumerate(parts, 1):
        tell(f"without {part} ({number} of {len(parts)})")
        off = np.abs(errors_without(part))
        found[part] = {"n": off.size, "mape": float(off.mean()), "median": float(np.median(off))}
    return found
