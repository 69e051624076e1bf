"""The units of a processor whose use is counted: what each can do in a second, and what profilers and people call shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.base.errors import ArgumentError, UnknownName
from archsim.base.units import parse_share
from archsim.device.device import Cpu, Gpu

if TYPE_CHECKING:
    from archsim.device.part import Number

UNITS = {  # name -> what the share is of; the order of every output
    "fp32": "lanes of single precision",
    "int": "integer instructions, of the lanes for fp32",
    "fp64": "lanes of double precision",
    "special": "special functions",
    "tensor": "tensor cores, at the rate of 16-bit operands",
    "shared": "bandwidth of shared memory",
    "l2": "bandwidth of the L2",
    "dram": "peak bandwidth of memory",
}
AWAKE = "sm"  # the share of SMs at work, or of the time in which they are
PACKAGE_UNITS = {  # those of a CPU, in the same way
    "simd": "vector and tile units of all cores, at the rate of their widest instructions",
    "llc": "bandwidth of the last cache level to all cores",
    "dram": "peak bandwidth of memory",
}
CORE = "core"  # the share of a CPU's cores that are awake, or of the time in which all are
MEMORY = ("dram",)  # units with the memory's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitClocks:
    """Where a GPU runs: its core clock [Hz], and its memory clock as a share of the usual one [1], each a float or [N]."""

    core: Number | float
    memory: Number | float = 1.0


def unit_rates(device: Gpu, at: UnitClocks) -> dict[str, Number | float]:
    """What each unit does in a second at these clocks when it is always busy: operations, or bytes of memories [1/s].

    >>> from archsim.device.catalog import find
    >>> unit_rates(find("gtx_1080").device, UnitClocks(core=1e9))["fp32"]
    2560000000000.0
    """
    lanes = device.sm.count * at.core
    tensor = device.pipe("fp16") if device.has_tensor("fp16") else 0.0
    return {
        "fp32": lanes * device.rate.fp32, "int": lanes * device.rate.fp32,
        "fp64": lanes * (0.0 if device.rate.fp64 is None else device.rate.fp64),
        "special": lanes * device.rate.special, "tensor": lanes * tensor,
        "shared": lanes * device.sm.shared_bandwidth,
        "l2": device.l2.bandwidth * at.core,
        "dram": device.memory.bandwidth * at.memory,
    }  # fmt: skip


def package_rates(device: Cpu, clock: Number | float) -> dict[str, Number | float]:
    """What each unit of a CPU does in a second at this clock [Hz] when it is always busy: multiply-adds in fp32, or bytes [1/s].

    >>> from archsim.device.catalog import find
    >>> package_rates(find("i7_6700k").device, 4e9)["simd"]  # 4 cores x 16 FMA/clk x 4 GHz
    256000000000.0
    """
    cores = device.core.count * clock
    last = device.l2 if device.l3 is None else device.l3
    return {"simd": cores * device.pipe("fp32"), "llc": cores * last.bandwidth, "dram": device.memory.bandwidth}


# --------------------------------------------------------------------------------------------------- words of profilers

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
