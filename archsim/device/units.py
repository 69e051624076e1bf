"""The units of a GPU, and those of a CPU's packages, whose use is counted, and what each of them can do in a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
