"""The parts of a tensor processing unit: systolic arrays over a buffer that software manages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.base.units import COUNT, TEXT
from archsim.device.part import Chip, Memory, Power, hertz, rate, spec, whole

if TYPE_CHECKING:
    from archsim.device.part import Number



@dataclass(frozen=True, slots=True, kw_only=True)
class SystolicArray:
    """The arrays of multiply-accumulate cells: weights stay in the cells, activations and sums move from cell to cell."""

    count: Number = whole("arrays of the chip", high=1e4)
    rows: Number = whole("rows of cells: terms of a sum that one tile of weights holds", high=65536, sense=0)
    columns: Number = whole("columns of cells: results that one tile of weights computes side by side", high=65536, sense=0)
    weight_sets: Number = whole("sets of weights that a cell holds; with two the next tile is shifted in while one multiplies",
                                high=16)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRate:
    """Multiply-adds that a cell starts per clock; a precision that the cells do not take is left out."""

    fp32: Number | None = rate("single precision", optional=True)
    bf16: Number | None = rate("bf16 factors, fp32 sums", optional=True)
    fp8: Number | None = rate("fp8 factors", optional=True)
    int8: Number | None = rate("8-bit integer factors, 32-bit sums", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuClock:
    """The one clock of arrays and vector units."""

    boost: Number = hertz("clock of arrays, buffers and vector units; a TPU does not lower it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulators:
    """The sums behind each array; a TPU without this table takes them away as they leave the array."""

    rows: Number = whole("sums that a column of an array keeps", high=1e9)
    buffers: Number = whole("parts into which they are cut, so that one is read while another one is added to", high=16,
                            sense=0)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedBuffer:
    """The memory on the chip that software manages (unified buffer, VMEM)."""

    size: Number = spec("B", "capacity of the chip", low=1e3, high=1e12)
    bandwidth: Number | None = spec("B/clk", "what it delivers to arrays and vector units per clock; none: no bound", low=1,
                                    high=1e7, optional=True)  # fmt: skip
    resident: Number = spec(COUNT, "1 where the results of an op stay here for the next one; 0 where each op reads its operands "
                            "from memory and writes its results there", low=0, high=1, above=False)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFifo:
    """The queue of weight tiles between memory and an array; a TPU without one loads weights from its buffer."""

    tiles: Number = whole("tiles that wait in the queue", high=1e6, cycle=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnit:
    """What computes activations, pooling and everything else that is no product."""

    rate: Number = rate("results of the chip per clock", unit="OP/clk")


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuLaunch:
    """What stands between two ops of a program, and the host."""

    latency: Number = spec("s", "gap between two dependent ops", low=1e-9, high=0.01, product=False)
    host_cpu: str = spec(TEXT, "the CPU (id of its spec) of the computer that feeds the chip", product=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuMemory(Memory):
    """The memory of a TPU; programs prefetch, so that no model reads its latency."""

    latency: Number | None = spec("s", "load-to-use latency", low=1e-9, high=1e-4, product=False,  # type: ignore[assignment]
                                  optional=True, informational=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuChip(Chip):
    """The silicon of a TPU, whose powers are published whole: no energy follows from its process."""

    node: Number = spec("m", "process node", low=1e-10, high=1e-5, informational=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuPower(Power):
    """Power of a TPU, whose split among its units nobody published."""

    busy: Number = spec("W", "mean power while it runs networks", low=0.01, high=1e5, product=False)
