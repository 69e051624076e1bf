"""A kernel of a CPU as numbers, and the loops that its cores have simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from archsim.base.machine_code import digest
from archsim.cost.cpu import CpuTerms
from archsim.cost.cpu_traffic import last_level
from archsim.cost.traffic import RESIDENT_SHARE
from archsim.cycle.core import assemble, copies, layout, library, operation, product, run, scalar, timeline
from archsim.cycle.core.machine import CoreMachine, shared
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.run import run_loop
from archsim.device.cpu_core import ELEMENT_BYTES, FORMS
from archsim.device.device import PRECISION_BYTES, WIDENED
from archsim.lower.columns import CpuRuntime
from archsim.lower.kernel import Kernel

Known = MutableMapping[bytes, float]
LANES = "fp16_lanes"  # a form whose blocks are those of fp32 with more lanes
LANE_BITS = 32  # of a sum
HALF_BYTES = 2  # of what is widened


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuVariant:
    """One kernel of a CPU as numbers: a column of the `terms` of one device."""

    terms: CpuTerms
    column: int

    def of(self, name: str) -> float:
        """A column of the kernel."""
        return float(getattr(self.terms.kernels, name)[self.column])

    def count(self, name: str) -> float:
        """How often its scalar loop does something in one launch."""
        return float(self.terms.kernels.counts[name][self.column])

    @property
    def kernel(self) -> Kernel:
        """It as it was lowered."""
        kernels = self.terms.kernels
        return kernels.kernels[int(kernels.kernel_of[self.column])]

    @property
    def runtime(self) -> CpuRuntime:
        """How its framework and libraries run."""
        return self.terms.kernels.runtime

    def at(self, values: Any) -> float:
        """What a quantity of shape [1, V] is for this kernel."""
        row = np.atleast_2d(np.asarray(values, dtype=float))[0]
        return float(row[min(self.column, row.size - 1)])

    @property
    def workers(self) -> float:
        """Cores at work."""
        return self.at(self.terms.workers)

    @property
    def form(self) -> str:
        """The form of instructions that sums narrow operands of a product; empty where lanes multiply one value each."""
        precision = self.terms.precision
        return precision if precision in FORMS and precision != LANES and not self.of("depthwise") else ""

    @property
    def size(self) -> float:
        """Operand of a product in memory [B]; that of the precision for kernels of several products, such as attention."""
        precision = self.terms.precision
        usual = ELEMENT_BYTES[FORMS[precision].precision] if precision in FORMS else PRECISION_BYTES.get(precision, HALF_BYTES)
        return self.of("operand_a") or float(usual)

    @property
    def element(self) -> int:
        """Operand of a product as lanes multiply it [bit]; what is widened has 32."""
        precision = self.terms.precision
        wide = precision == WIDENED or (self.of("depthwise") and precision in FORMS and precision != LANES)
        return LANE_BITS if wide else int(8 * self.size)

    @property
    def disturbed(self) -> bool:
        """Whether threads without work spin on the hyper-threads of cores at work."""
        return self.at(self.terms.speed) < self.at(self.terms.core_clock)

    @property
    def width(self) -> int:
        """SIMD registers that the library's instructions use [bit]."""
        return int(min(self.at(self.terms.device.core.simd), self.runtime.simd))

    def level(self, size: float) -> int:
        """Where data of some bytes lie that all cores at work share: 2 where each holds its part in its L2, to 4 for memory."""
        device = self.terms.device
        if size <= RESIDENT_SHARE * self.at(device.l2.size) * self.workers:
            return 2
        has_third = device.l3 is not None
        if has_third and size <= RESIDENT_SHARE * self.at(last_level(device)):
            return 3
        return 4 if has_third else 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopUse:
    """A loop of a kernel: how often all cores together run it in a launch, what an iteration takes [clk], and the loop."""

    times: float
    clocks: float
    program: Callable[..., CoreLoop]
    words: tuple[object, ...]


class Simulated:
    """Loops on a core, each simulated once; what was `known` before is not simulated again.

    uses: the loops that were spent, in the order of the kernel
    """

    def __init__(self, machine: CoreMachine, known: Known) -> None:
        """`known`: clocks of what was simulated before, to which new ones are added."""
        self.machine, self._known = machine, known
        self.uses: list[LoopUse] = []
        self._of = hashlib.sha256(f"{code_version()} {machine}".encode())

    def fused(self, v: CpuVariant) -> bool:
        """Whether a kernel multiplies and adds at once here."""
        return v.runtime.fused > 0 and "fma" in self.machine.masks

    def clocks(self, program: Callable[..., CoreLoop], *words: object) -> float:
        """Clocks of an iteration of the loop that `program(*words)` writes."""
        key = self._of.copy()
        key.update(f"{program.__name__} {words}".encode())
        name = key.digest()
        if name not in self._known:
            self._known[name] = run_loop(self.machine, program(*words)).cycles
        return self._known[name]


    def both(self) -> Simulated:
        """The core as one of two hyper-threads has it that both run."""
        return Simulated(shared(self.machine), self._known)

    def spent(self, times: float, program: Callable[..., CoreLoop], *words: object) -> float:
        """Clocks of so many iterations of a loop."""
        clocks = self.clocks(program, *words)
        self.uses.append(LoopUse(times=times, clocks=clocks, program=program, words=words))
        return times * clocks


@lru_cache(maxsize=1)
def code_version() -> str:
    """Equal for equal code of the simulation and of the programs."""
    return digest(layout, timeline, assemble, run, operation, product, product, copies, scalar, library)
