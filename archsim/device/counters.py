"""What profilers call the units of a GPU, and shares as people write them, of a GPU and of a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from archsim.base.errors import ArgumentError, UnknownName
from archsim.base.units import parse_share
from archsim.device.units import AWAKE, CORE, PACKAGE_UNITS, UNITS

DCGM = {  # a field without what stands before it: DCGM_FI_PROF_PIPE_FP32_ACTIVE is fp32_active
    "sm_active": AWAKE, "fp32_active": "fp32", "fp64_active": "fp64", "tensor_active": "tensor", "dram_active": "dram",
}  # fmt: skip
BEFORE = ("dcgm_fi_prof_", "pipe_")
NSIGHT = {  # metrics of Nsight Compute, of their peak over the time that elapsed
    "sm__cycles_active": AWAKE, "sm__pipe_fma_cycles_active": "fp32", "sm__pipe_fp64_cycles_active": "fp64",
    "sm__inst_executed_pipe_xu": "special", "sm__pipe_tensor_cycles_active": "tensor",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": "shared", "lts__t_sectors": "l2", "dram__bytes": "dram",
    "dram__throughput": "dram",
}  # fmt: skip
OF_ELAPSED = "pct_of_peak_sustained_elapsed"
KNOWN = (AWAKE, *UNITS, *DCGM, *NSIGHT)
PERCENT = 100.0  # the largest number that may have been meant in per cent


def unit_named(name: str) -> str:
    """The unit that a name means: its own, or that of a counter of DCGM or Nsight Compute.

    Raises UnknownName; ArgumentError for a metric of Nsight Compute that is not of the time that elapsed.

    >>> unit_named("DCGM_FI_PROF_PIPE_FP32_ACTIVE"), unit_named("dram__bytes.sum.pct_of_peak_sustained_elapsed")
    ('fp32', 'dram')
    """
    word, _, rollup = name.strip().lower().partition(".")
    for prefix in BEFORE:
        word = word.removeprefix(prefix)
    unit = word if word in (AWAKE, *UNITS) else DCGM.get(word) or NSIGHT.get(word)
    if unit is None or (rollup and word not in NSIGHT):
        raise UnknownName("unit", name, KNOWN, hint=f"the units are {', '.join((AWAKE, *UNITS))}")
    if rollup and not rollup.endswith(OF_ELAPSED):
        raise ArgumentError(f"unit {name}: a share is of the peak over the whole time; count {word}.avg.{OF_ELAPSED}")
    return unit


def package_unit_named(name: str) -> str:
    """The unit of a CPU that a name means. Raises UnknownName.

    >>> package_unit_named(" SIMD ")
    'simd'
    """
    word, own = name.strip().lower(), (CORE, *PACKAGE_UNITS)
    if word not in own:
        raise UnknownName("unit", name, own, hint=f"the units of a CPU are {', '.join(own)}")
    return word


def shares_of(written: Mapping[str, object], named: Callable[[str], str] = unit_named) -> dict[str, float]:
    """Shares [1] by unit from names and values as people and profilers write them: 0.8, or a text like `80%`.

    named: the unit that a name means, on this kind of device

    Raises UnknownName for a unit that does not exist, ArgumentError for a value that is no share and for a unit named twice.

    >>> shares_of({"fp32_active": 0.8, "dram": "30%"})
    {'fp32': 0.8, 'dram': 0.3}
    """
    found: dict[str, float] = {}
    for name, value in written.items():
        unit = named(name)
        if unit in found:
            raise ArgumentError(f"share of {name}: {unit} is given twice")
        found[unit] = _share(name, value)
    return found


def _share(name: str, value: object) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        share = parse_share(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"share of {name}: {value!r} is not a number from 0 to 1, nor a text like '80%'") from None
    except ValueError as error:
        raise ArgumentError(f"share of {name}: {error}") from None
    if not math.isfinite(share) or not 0.0 <= share <= 1.0:
        meant = f"; per cent are written {share:g}%" if 1.0 < share <= PERCENT and "%" not in str(value) else ""
        raise ArgumentError(f"share of {name}: {value if isinstance(value, str) else f'{share:g}'} is not between 0 and 1{meant}")
    return share
