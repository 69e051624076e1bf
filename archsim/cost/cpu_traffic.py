"""Bytes that a kernel moves on a CPU, and what its memory, its last cache level and the link between sockets can carry."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archsim.cost.blocking import block_columns, block_rows, micro_tile
from archsim.cost.cost import Array
from archsim.cost.team import instances_used, pieces_of, register_blocks
from archsim.cost.traffic import RESIDENT_SHARE
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels


def last_level(device: Cpu) -> Array | float:
    """Capacity of the last cache level over all its instances [B].

    size max(1, count / shared_by), a float or [D, 1]

    level: the third, or the second where there is no third

    >>> from archsim.device.catalog import find
    >>> float(last_level(find("xeon_e5_2630_v3_2s").device)) / 2**20
    40.0
    """
    level = device.l2 if device.l3 is None else device.l3
    return level.size * np.maximum(1.0, device.core.count / level.shared_by)


def sockets_used(device: Cpu, workers: Array | float) -> Array:
    """Sockets that the cores at work fill, one after the other.

    max(ceil(workers sockets / count), 1), [D, V]; workers: cores at work, [D, V]

    >>> from types import SimpleNamespace as some
    >>> sockets_used(some(core=some(count=16.0, sockets=2.0)), 9.0).item()
    2.0
    """
    return np.asarray(np.maximum(np.ceil(workers * device.core.sockets / device.core.count), 1.0))


def sums_of(kernels: CpuKernels, panels: Array) -> Array:
    """Results that further panels of a packed product read and write again [B].

    2 c (panels - 1), 0 for what is not packed, [D, V]; panels: into which k is cut, [D, V]

    >>> from types import SimpleNamespace as kernels
    >>> sums_of(kernels(packed=np.array([1.0, 0.0]), c_bytes=1e6), 3.0).tolist()
    [4000000.0, 0.0]
    """
    return np.where(kernels.packed > 0, 2.0 * kernels.c_bytes * (panels - 1.0), 0.0)


def b_unblocked(kernels: CpuKernels) -> NDArray[np.bool_]:
    """Whether each block of channels of a packed product goes through all of B, which is not cut for the caches, [V].

    packed and channels > 0

    >>> from types import SimpleNamespace as kernels
    >>> b_unblocked(kernels(packed=1.0, channels=64.0)).item()
    True
    """
    return np.asarray((kernels.packed > 0) & (kernels.channels > 0))


def sweeps_of(kernels: CpuKernels, device: Cpu, workers: Array) -> Array:
    """How often the cores at work read B one after the other [1]: those that share a cache go through it side by side.

    ceil(pieces / workers) where each block of channels goes through all of B, else 1, [D, V]

    pieces: blocks of channels, `pieces_of`; workers: cores at work, [D, V]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> one = kernels(packed=1.0, channels=64.0, runtime=kernels(block_registers=2.0))  # eight blocks of two registers
    >>> [sweeps_of(one, find("raspberry_pi_4").device, cores).item() for cores in (1.0, 4.0)]
    [8.0, 2.0]
    """
    return np.asarray(np.where(b_unblocked(kernels), np.maximum(np.ceil(pieces_of(kernels, device) / workers), 1.0), 1.0))


def memory_bytes(kernels: CpuKernels, device: Cpu, workers: Array, sums: Array) -> Array:
    """Memory traffic of one launch [B].

    parameters + (operands + 2 c + sums where they do not stay in the cache) + further, [D, V]

    level: the third, or the second where there is no third
    cache: capacity of its instances whose cores work [B]
    parameters: A, unless an op before has written it too [B]
    operands: all else that is read [B]
    fresh: activations, where the op before has not left them in the cache [B]
    further: what of B the cache does not hold, for each further one of `sweeps_of` [B]
    workers: cores at work, [D, V]
    sums: results of further panels [B], [D, V]

    A written line is read first (read for ownership). What fits in half the last level is still there from the op before;
    parameters are not.

    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuRuntime
    >>> from types import SimpleNamespace as kernels
    >>> layer = kernels(a_bytes=1e6, b_bytes=8e6, c_bytes=8e6, both_activations=0.0, packed=0.0, channels=0.0,
    ...                 runtime=CpuRuntime())
    >>> memory_bytes(layer, find("i7_6700k").device, 4.0, 0.0).item()
    25000000.0
    """
    level = device.l2 if device.l3 is None else device.l3
    cache = level.size * instances_used(device, workers)
    parameters = np.where(kernels.both_activations > 0, 0.0, kernels.a_bytes)
    operands = kernels.a_bytes - parameters + kernels.b_bytes
    kept = operands + kernels.c_bytes <= RESIDENT_SHARE * cache
    fresh = np.where(kept, 0.0, operands + 2.0 * kernels.c_bytes + sums)
    further = np.maximum(kernels.b_bytes - cache, 0.0) * (sweeps_of(kernels, device, workers) - 1.0)
    return np.asarray(parameters + fresh + further)


def last_level_bytes(kernels: CpuKernels, device: Cpu, workers: Array, sums: Array) -> Array:
    """Traffic of one launch through the last cache level [B].

    a + b + 2 c + sums + again + repeats, [D, V]; 0 for an element-wise kernel whose tensors `stay_near` its cores

    again: the operand that is not cut, read whole by every further core [B]
    tensors: all three once, the result read before it is written [B]
    workers: cores at work, [D, V]
    sums: results of further panels [B], [D, V]

    Where a library cuts one side of a product into strips (`min_rows_per_thread`), every core reads the whole of the other
    operand, which the cores have packed together.

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> one = kernels(a_bytes=1e6, b_bytes=2e6, c_bytes=3e6, packed=0.0, matrix=0.0, min_rows_per_thread=0.0, m=1.0, n=1.0,
    ...               k=1.0, count=1.0, operand_a=4.0, channels=0.0)
    >>> last_level_bytes(one, find("i7_6700k").device, 4.0, 0.0).item()
    9000000.0
    """
    again = np.where((kernels.matrix > 0) & (kernels.min_rows_per_thread > 0),
                     (workers - 1.0) * kernels.operand_a * kernels.m * kernels.k * kernels.count, 0.0)  # fmt: skip
    tensors = kernels.a_bytes + (kernels.b_bytes + 2.0 * kernels.c_bytes)
    return np.where(stay_near(kernels, device, workers), 0.0, tensors + sums + again + repeat_bytes(kernels, device))


def stay_near(kernels: CpuKernels, device: Cpu, workers: Array) -> NDArray[np.bool_]:
    """Whether the second levels of the cores at work still have the tensors of an element-wise kernel from the op before, [D, V].

    size <= l2 workers / 2 where there is a third level; size = a + b + c

    size: of the tensors, each once [B]; l2: of a second level [B]; workers: cores at work, [D, V]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> [stay_near(kernels(matrix=0.0, a_bytes=0.0, b_bytes=size, c_bytes=size), find("i7_6700k").device, 4.0).item()
    ...  for size in (2e5, 4e5)]
    [True, False]
    """
    size = kernels.a_bytes + kernels.b_bytes + kernels.c_bytes
    small = size <= RESIDENT_SHARE * device.l2.size * workers
    return np.asarray(small & (kernels.matrix == 0) & (device.l3 is not None))


def repeat_bytes(kernels: CpuKernels, device: Cpu) -> Array:
    """What packed products read from the last cache level a second time and more [B].

    ((ceil(m / mc) - 1) n + (ceil(n / nc) - 1) m) k count element, [D, V]        (Goto & van de Geijn 2008)

    element: size of a value [B]
    further_b: columns of B, read for each further block of mc rows that stays in a core's second level
    blocks_b: blocks of columns of B; one where no third level bounds them
    further_a: rows of A, read for each further block of nc columns that stays in the last level

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> product = kernels(packed=1.0, m=101.0, n=64.0, k=325.0, count=1.0, operand_a=4.0, channels=0.0)
    >>> repeat_bytes(product, find("i7_6700k").device).item() == 64 * 325 * 4  # a block has 100 rows
    True
    """
    element = np.maximum(kernels.operand_a, 1.0)
    further_b = (np.ceil(kernels.m / block_rows(device, element)) - 1.0) * kernels.n
    blocks_b = 1.0 if device.l3 is None else np.ceil(kernels.n / block_columns(device, element))
    further_a = (blocks_b - 1.0) * kernels.m
    cut = (kernels.packed > 0) & ~b_unblocked(kernels)
    return np.asarray(np.where(cut, (further_b + further_a) * kernels.k * kernels.count * element, 0.0))


def refill_bytes(kernels: CpuKernels, device: Cpu, workers: Array) -> Array:
    """What goes by the register blocks from the second level, since the first one keeps the other operand [B].

    blocks rows k element, [D, V]        (Low et al. 2016); of an element-wise kernel `passed`

    Of a packed product these are the panels of A, once for each column of blocks. A direct convolution takes as many channels at
    a time as leave the filters of a block in the first level, and its pixels go by.

    refilled: rows of all blocks over k [B]
    passed: tensors of an element-wise kernel that `stay_near` its cores [B]; workers: cores at work, [D, V]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> product = kernels(matrix=1.0, m=8.0, n=32.0, k=50.0, count=1.0, operand_a=4.0, packed=1.0, a_bytes=1600.0,
    ...                   b_bytes=6400.0, c_bytes=1024.0)
    >>> refill_bytes(product, find("i7_6700k").device, 1.0).item()  # four blocks of six rows
    4800.0
    """
    block_m, _ = micro_tile(device)
    refilled = register_blocks(kernels, device) * block_m * kernels.k * kernels.operand_a
    passed = np.where(stay_near(kernels, device, workers), kernels.a_bytes + kernels.b_bytes + 2.0 * kernels.c_bytes, 0.0)
    return np.where(kernels.matrix > 0, refilled, passed)


def core_bandwidth(device: Cpu) -> Array | float:
    """Memory bandwidth of one core [B/s].

    buffers line / latency, a float or [D, 1]        (Little's law; Bailey 1996, eq. 1)

    buffers: lines on their way into the second level, which its prefetcher fills; of a core whose number nobody has told, those
        of its first level [1]
    line: its length [B]; latency: of memory, unloaded [s]

    >>> from types import SimpleNamespace as some
    >>> cpu = some(core=some(miss_buffers=10.0), l1=some(line=64.0), l2=some(miss_buffers=15.0), memory=some(latency=64e-9))
    >>> round(core_bandwidth(cpu) / 1e9, 3)
    15.0
    """
    buffers = device.core.miss_buffers if device.l2.miss_buffers is None else device.l2.miss_buffers
    return buffers * device.l1.line / device.memory.latency


def memory_bandwidth(device: Cpu, workers: Array, local: Array | float) -> Array:
    """Memory bandwidth that the cores at work draw together [B/s].

    min(workers core_bandwidth, delivered), [D, V]; delivered: `sockets_bandwidth` [B/s]

    workers: cores at work, [D, V]
    local: 1 where threads of every socket touched the tensors first, 0 where one thread did, [V]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> memory = some(bandwidth=120e9, achievable=0.8, latency=64e-9)
    >>> cpu = some(core=some(count=16.0, sockets=2.0), l1=some(line=64.0), l2=some(miss_buffers=15.0), memory=memory)
    >>> [memory_bandwidth(cpu, workers, 1.0).item() / 1e9 for workers in (1.0, 16.0)]
    [15.0, 96.0]
    """
    return np.asarray(np.minimum(workers * core_bandwidth(device), sockets_bandwidth(device, workers, local)))


def sockets_bandwidth(device: Cpu, workers: Array | float, local: Array | float = 1.0) -> Array:
    """What the memory of the sockets delivers whose cores work [B/s].

    socket (1 + (sockets_used - 1) local), [D, V]

    socket: what the memory of one socket delivers [B/s]
    workers: cores at work, [D, V]; local: see `memory_bandwidth`, [V]

    Cores fill one socket before the next, whose memory adds its bandwidth where it holds its share of the pages: pages lie with
    the thread that first touched them.

    >>> from types import SimpleNamespace as some
    >>> cpu = some(core=some(count=16.0, sockets=2.0), memory=some(bandwidth=120e9, achievable=0.8))
    >>> [sockets_bandwidth(cpu, 16.0, local).item() / 1e9 for local in (0.0, 1.0)]
    [48.0, 96.0]
    """
    socket = device.memory.bandwidth * device.memory.achievable / device.core.sockets
    return np.asarray(socket * (1.0 + (sockets_used(device, workers) - 1.0) * local))


def crossing(kernels: CpuKernels, device: Cpu, workers: Array, cached: Array) -> Array:
    """Time of what one socket reads from caches or memory of another [s]: of S sockets in use, all but one in S bytes.

    bytes (S - 1) / S / (link (1 + local)), [D, V]

    used: sockets at work
    workers: cores at work, [D, V]
    cached: traffic through the last cache level [B], [D, V]
    link: bandwidth between two sockets, one direction [B/s]; local: see `memory_bandwidth`, [V]

    It crosses in both directions where the pages lie on every socket, in one where they lie on the first.

    >>> from types import SimpleNamespace as some
    >>> cpu = some(core=some(link=32e9, count=16.0, sockets=2.0))
    >>> crossing(some(runtime=some(local=1.0)), cpu, 16.0, 64e9).item()
    0.5
    """
    if device.core.link is None:
        return np.zeros_like(cached * workers)
    used = sockets_used(device, workers)
    return np.asarray(np.where(used > 1, cached * (used - 1.0) / used / (device.core.link * (1.0 + kernels.runtime.local)), 0.0))


def cache_bandwidth(device: Cpu, workers: Array, clock: Array | float) -> Array:
    """Bandwidth of the last cache level to the cores at work [B/s].

    workers B f, [D, V]

    workers: cores at work, [D, V]
    clock: f, theirs [Hz], a float or [D, V]
    B: sustained read bandwidth of one core from that level [B/clk], a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> float(cache_bandwidth(some(l2=some(bandwidth=28.0), l3=some(bandwidth=10.5)), 8.0, 2e9)) / 1e9
    168.0
    """
    level = device.l2 if device.l3 is None else device.l3
    return np.asarray(workers * level.bandwidth * clock)
