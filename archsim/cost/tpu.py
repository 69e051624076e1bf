"""Time of a kernel on a TPU: what its bounds are computed from, and one function for each bound.

A product C[m, n] = A[m, k] B[k, n] keeps tiles of A, `array.rows` of k by `array.columns` of m, in the cells of an array; the n
columns of B pass through, one each clock, and sums leave into the accumulators. What a tile takes is `tile_clocks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import ASYNCHRONOUS, Array
from archsim.device.device import Tpu
from archsim.lower.kernel import TpuKernels

PREFETCHED = np.inf  # exponent of the smooth maximum: operands come ahead, and the longest bound is the time. A choice
SUM_BYTES = 4  # of a value of the accumulators
OPERANDS = 0.5  # share of a buffer that one operand may take, as the other half receives the next block
EXP_OPERATIONS = 10.0  # of a vector unit for an exponential, as polynomials take them. A choice


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TpuTerms:
    """Some kernels on a TPU, and the quantities on the way to their bounds, each [D, V]; computed when it is asked for.

    clock: of arrays, buffer and vector unit [Hz]
    """

    kernels: TpuKernels
    device: Tpu
    precision: str
    clock: Array | float
    constants: Calibration

    @cached_property
    def rate(self) -> Array | float:
        """Rows of activations that an array takes per clock."""
        return self.device.pipe(self.precision)

    @cached_property
    def paired(self) -> Array:
        """Whether a kernel is the two products of an attention, [V]."""
        return np.asarray(self.kernels.exps > 0)

    @cached_property
    def tiles(self) -> Array:
        """Tiles of stationary operands of one launch: the last ones of a side are not full."""
        k, array = self.kernels, self.device.array
        product = np.ceil(k.k / array.rows) * np.ceil(k.m / array.columns)
        scores = np.ceil(k.n / array.rows) * np.ceil(k.k / array.columns)
        of_pair = scores + np.ceil(k.k / array.rows) * np.ceil(k.n / array.columns)
        return np.asarray(np.where(self.paired, of_pair, product) * k.count)

    @cached_property
    def streamed(self) -> Array:
        """Rows that pass through a tile, at most as the accumulators hold, and how often each tile is loaded: see `passes`."""
        return np.asarray(np.where(self.paired, self.kernels.m, self.kernels.n) / self.passes)

    @cached_property
    def passes(self) -> Array:
        """How often each tile is loaded: as often as the rows fill one part of the accumulators, if there are any."""
        sums = self.device.accumulator
        held = np.inf if sums is None else sums.rows / sums.buffers
        return np.asarray(np.maximum(np.ceil(np.where(self.paired, self.kernels.m, self.kernels.n) / np.floor(held)), 1.0))

    @cached_property
    def work_share(self) -> Array:
        """Work of a kernel over that of whole products: attention under a mask leaves some out."""
        return np.asarray(np.where(self.paired, 0.5 * self.kernels.work, self.kernels.work))

    @cached_property
    def loads(self) -> Array:
        """Tiles that the busiest array loads in one launch."""
        return np.asarray(np.ceil(self.tiles * self.passes / self.device.array.count) * self.work_share)

    @cached_property
    def array_clk(self) -> Array:
        """Clocks of the busiest array in one launch."""
        array = self.device.array
        sets = np.asarray(array.weight_sets)
        each = tile_clocks(self.streamed / self.rate, array.rows, array.columns, sets)
        once = np.where(sets > 1, 2.0 * array.rows + array.columns - 2.0, 0.0)
        return np.asarray(self.loads * each + once)

    @cached_property
    def vector_clk(self) -> Array:
        """Clocks of the vector unit in one launch: element-wise kernels, and the exponentials of attention.

        exps: exponentials of one launch
        """
        k = self.kernels
        exps = k.exps * k.m * k.k * k.count
        alone = np.where(k.dense > 0, 0.0, k.flop) * (1.0 - k.matrix)
        return np.asarray((alone + EXP_OPERATIONS * exps) / self.device.vector.rate)

    @cached_property
    def dense_clk(self) -> Array:
        """Clocks of element-wise kernels whose arithmetic runs at the peak of the arrays (stack `ideal`)."""
        k, array = self.kernels, self.device.array
        cells = array.count * array.rows * array.columns * self.rate
        return np.asarray(np.where((k.dense > 0) & (k.matrix == 0), 0.5 * k.flop, 0.0) / cells)

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        resident = np.asarray(self.device.buffer.resident)
        return np.asarray(np.where(resident > 0, self._resident_bytes, self._blocked_bytes))

    @cached_property
    def _resident_bytes(self) -> Array:
        """Where activations stay in the buffer [B]: whole tiles of weights, each time one is loaded, and what does not fit."""
        k, array = self.kernels, self.device.array
        weights = np.where(k.matrix > 0, self.tiles * self.passes * array.rows * array.columns * k.operand_a, k.a_bytes)
        return np.asarray(weights + np.maximum(0.0, k.b_bytes + k.c_bytes - self.device.buffer.size))

    @cached_property
    def _blocked_bytes(self) -> Array:
        """Where each op reads operands from memory [B]: once if the smaller fits, else as often as blocks of the result ask.

        edge: of a square block of sums in one half of the buffer
        """
        k, size = self.kernels, self.device.buffer.size
        edge = np.sqrt(OPERANDS * size / SUM_BYTES)
        again = k.a_bytes * np.ceil(k.n / edge) + k.b_bytes * np.ceil(k.m / edge)
        fits = (np.minimum(k.a_bytes, k.b_bytes) <= OPERANDS * size) | (k.matrix == 0) | self.paired
        return np.asarray(np.where(fits, k.a_bytes + k.b_bytes, again) + k.c_bytes)

    @cached_property
    def buffer_bytes(self) -> Array:
        """Bytes between the buffer and arrays or vector unit in one launch [B]: rows are read once for each column of tiles.

        rows: what one column of tiles reads [B]
        """
        k, array = self.kernels, self.device.array
        again = np.where(self.paired, 1.0, np.ceil(k.m / array.columns))
        # A convolution sends each pixel once for each tap, unlike the tensor that is counted in b_bytes.
        rows = np.where(self.paired, k.b_bytes, k.n * k.k * k.count * k.operand_a)
        return np.asarray(np.where(k.matrix > 0, rows * again, k.b_bytes) + k.c_bytes)

    @cached_property
    def smooth(self) -> Array:
        """Exponent of the smooth maximum, [V]: a FIFO is filled ahead by instructions that wait for nothing else."""
        return np.full(self.kernels.m.shape, ASYNCHRONOUS if self.device.fifo is None else PREFETCHED)

    @cached_property
    def work(self) -> dict[str, Array]:
        """What takes energy besides the traffic."""
        none = np.zeros_like(self.dram_bytes)
        return {"macs": 0.5 * self.kernels.flop + none, "issues": none, "units": none + np.asarray(self.device.array.count)}


def tile_clocks(streamed: Array | float, rows: Array | float, columns: Array | float, sets: Array | float) -> Array:
    """Clocks from one tile of weights to the next [clk].

    With two sets of weights: max(T, R), as the next tile is shifted in, a row each clock, while rows pass through this one.
    With one: R + T + R + C - 2, since a tile is loaded, filled, and drained before the next one (Samajdar et al. 2018,
    SCALE-Sim, equation 3).

    streamed: T, clocks in which rows of activations enter [clk]; rows, columns: R, C of an array [1]; sets: of weights [1]

    >>> tile_clocks(100.0, 256, 256, 1).item(), tile_clocks(100.0, 256, 256, 2).item(), tile_clocks(1e3, 256, 256, 2).item()
    (866.0, 256.0, 1000.0)
    """
    return np.asarray(np.where(np.asarray(sets) > 1, np.maximum(streamed, rows), 2.0 * rows + columns - 2.0 + streamed))


def compute_bound(t: TpuTerms) -> Array:
    """Arithmetic of a kernel: tiles of a product through the busiest array, everything else through the vector unit [s].

    max(array, vector) / f, [D, V]

    array: loads x `tile_clocks`, and the first fill and the last drain of the pipeline [clk]; of a kernel without losses, its
        multiply-adds over all cells
    vector: operations over the rate of the vector unit [clk]
    f: clock [Hz]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> one = some(kernels=some(matrix=np.ones(1)), array_clk=7e5, vector_clk=1e5, dense_clk=0.0, clock=7e8)
    >>> round(compute_bound(one).item(), 9)
    0.001
    """
    product = np.where(t.kernels.matrix > 0, t.array_clk, t.dense_clk)
    return np.asarray(np.maximum(product, t.vector_clk) / t.clock)


def memory_bound(t: TpuTerms) -> Array:
    """Memory traffic over the bandwidth that long streams reach [s].

    bytes / (B share), [D, V]; bytes: `dram_bytes` [B]; B: peak bandwidth [B/s]; share: of it, `memory.achievable` [1]

    >>> from types import SimpleNamespace as some
    >>> v1 = some(memory=some(bandwidth=34e9, achievable=0.95))
    >>> round(memory_bound(some(device=v1, dram_bytes=65536.0)).item() * 1e6, 2)  # one tile of 256 x 256 weights
    2.03
    """
    return np.asarray(t.dram_bytes / (t.device.memory.bandwidth * t.device.memory.achievable))


def buffer_bound(t: TpuTerms) -> Array | None:
    """Traffic between the buffer on the chip and its units over its bandwidth [s].

    bytes / (B f), [D, V]; bytes: `buffer_bytes` [B]; B: `buffer.bandwidth` [B/clk]; f: clock [Hz]; None where it is not known

    >>> from types import SimpleNamespace as some
    >>> round(buffer_bound(some(buffer_bytes=1.792e8, device=some(buffer=some(bandwidth=256.0)), clock=7e8)).item(), 9)
    0.001
    """
    if t.device.buffer.bandwidth is None:
        return None
    return np.asarray(t.buffer_bytes / (t.device.buffer.bandwidth * t.clock))


def start_gap(t: TpuTerms) -> Array:
    """Gap before a kernel starts [s].

    latency, [D, V]; latency: `launch.latency` [s]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> start_gap(some(device=some(launch=some(latency=1e-6)), kernels=some(repeat=np.ones(1)))).item()
    1e-06
    """
    return np.asarray(t.device.launch.latency + np.zeros_like(t.kernels.repeat))
