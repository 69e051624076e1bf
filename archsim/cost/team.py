"""The threads of a parallel loop on a CPU: how many work, which pieces each gets, what it costs to fork and to join them.

A loop is cut into pieces that a thread takes whole: register blocks of a product, blocks of channels of one row of an image, or
whole images. Cores of one instance of the last cache level exchange a line through it, all others at the latency of memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration
from archsim.cost.blocking import LANE_BITS, micro_tile
from archsim.cost.cost import Array
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels

FLAGS = 4.0  # lines that pass between two threads of a BLAS for a panel: either half of what one packs is filled, and free again


def register_blocks(kernels: CpuKernels, device: Cpu) -> Array:
    """Register blocks of the results of all products of one launch, those at the edges counted whole.

    ceil(m / rows) ceil(n / columns) count, [D, V]; rows, columns: `micro_tile`, [D, 1]. A direct convolution has its pixels (n)
    in the rows and channels in the columns.

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> register_blocks(kernels(m=10.0, n=49.0, count=1.0, packed=1.0), find("i7_6700k").device).item()  # 6 x 16 results each
    8.0
    """
    block_m, block_n = micro_tile(device)
    direct = np.asarray(kernels.packed) == 0
    rows, columns = np.where(direct, kernels.n, kernels.m), np.where(direct, kernels.m, kernels.n)
    return np.asarray(np.ceil(rows / block_m) * np.ceil(columns / block_n) * kernels.count)


def pieces_of(kernels: CpuKernels, device: Cpu) -> Array:
    """Pieces of a loop that a thread takes whole, 0 where the work divides freely.

    ceil(channels / block), [D, V]

    lanes: fp32 values of a SIMD register
    block: channels of a block of whole registers

    >>> from types import SimpleNamespace as some
    >>> pieces_of(some(channels=256.0, runtime=some(block_registers=4.0)), some(core=some(simd=256.0))).item()
    8.0
    """
    lanes = device.core.simd / LANE_BITS
    block = np.maximum(kernels.runtime.block_registers * lanes, 1.0)
    return np.asarray(np.ceil(kernels.channels / block))


def tiles_of(kernels: CpuKernels, device: Cpu) -> Array:
    """Tiles of unfolded images, each as large as a second cache level, that threads copy whole [1].

    ceil(tiled / size), [D, V]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> tiles_of(some(tiled=2.5e6), find("raspberry_pi_4").device).item()  # of 1 MiB
    3.0
    """
    return np.asarray(np.ceil(kernels.tiled / device.l2.size))


def active_cores(kernels: CpuKernels, device: Cpu, threads: Array | float) -> Array:
    """Cores at work on each kernel.

    min(threads, count, max(1, pieces)), or 1, [D, V]

    team: cores that the threads can occupy, one after the other
    pieces: what threads take whole, `tiles_of` unfolded images where these are `tiled`, or `items`
    threads: threads that were asked for, a float or [D, 1]

    One core works where the framework's loop is serial, or where the library finds the product too narrow for so many threads:
    a side of less than `min_rows_per_thread` for each.

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> kernel = some(channels=72.0, items=1e6, matrix=0.0, m=1.0, n=1.0, threaded=1.0, tiled=0.0,
    ...               min_rows_per_thread=0.0, runtime=CpuRuntime(block_registers=3.0))
    >>> active_cores(kernel, some(core=some(count=4.0, simd=256.0), l2=some(size=2.0**18)), 8.0).item()
    3.0
    """
    team = np.minimum(threads, device.core.count)
    pieces = np.where(kernels.channels > 0, pieces_of(kernels, device), kernels.items)
    pieces = np.where((kernels.tiled > 0) & (kernels.matrix == 0), tiles_of(kernels, device), pieces)
    wide = (kernels.matrix == 0) | (np.minimum(kernels.m, kernels.n) >= kernels.min_rows_per_thread * threads)
    return np.asarray(np.where((kernels.threaded > 0) & wide, np.minimum(team, np.maximum(1.0, pieces)), 1.0))


def siblings(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Threads at work on each core: hyper-threads are taken once every core has a thread.

    max(1, min(threads, hardware threads, pieces) / count) with all cores at work, else 1, [D, V]

    running: threads that have work
    pieces: what threads take whole, or `items`
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> kernel = some(channels=48.0, items=1e6, runtime=CpuRuntime(block_registers=1.0))
    >>> siblings(kernel, some(core=some(count=4.0, threads=8.0, simd=256.0)), 4.0, 8.0).item()
    1.5
    """
    pieces = np.where(kernels.channels > 0, pieces_of(kernels, device), kernels.items)
    running = np.minimum(np.minimum(threads, device.core.threads), pieces)
    return np.asarray(np.where(workers >= device.core.count, np.maximum(running / device.core.count, 1.0), 1.0))


def overlapped(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, constants: Calibration) -> Array:
    """Clocks of scalar code on a core with hyper-threads at work, as a share of those of one thread for the same work.

    max(1 / siblings, issue), [D, V]

    issue: `cpu.issue`, share of the clocks of scalar code in which it issues instructions; in the others it waits for its loads,
        its chains of operations and its mispredicted branches, and another thread issues
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    Two threads of one core share its ports, its caches and its line fill buffers: arithmetic that keeps the ports busy, copies
    and streams through memory gain nothing.

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> kernel = some(channels=0.0, items=1e6, runtime=CpuRuntime())
    >>> cpu = some(core=some(count=4.0, threads=8.0, simd=256.0))
    >>> [overlapped(kernel, cpu, 4.0, threads, {"cpu.issue": 0.75}).item() for threads in (4.0, 5.0, 8.0)]
    [1.0, 0.8, 0.75]
    """
    return np.asarray(np.maximum(1.0 / siblings(kernels, device, workers, threads), constants["cpu.issue"]))


def last_of(kernels: CpuKernels, workers: Array, constants: Calibration) -> Array:
    """Time of the last of some threads with equal shares of a loop, as a multiple of their mean [1].

    1 + cpu.straggle log2(workers) for a loop whose shares are dealt out when it is forked, else 1, [D, V]

    workers: cores at work, [D, V]

    The largest of n normal values lies log2(n) / 2 standard deviations above their mean, 0.56, 1.03, 1.42 and 1.77 for 2, 4, 8
    and 16 (Tippett 1925, Biometrika 17): interrupts, other processes and shared caches delay one thread or another.

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> last_of(some(runtime=CpuRuntime(fork_cache_lines=8.0)), np.array([1.0, 4.0]), {"cpu.straggle": 0.05}).tolist()
    [1.0, 1.1]
    """
    return np.asarray(1.0 + np.where(kernels.runtime.fork_cache_lines > 0, constants["cpu.straggle"] * np.log2(workers), 0.0))


def awake_cores(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Cores that are not asleep while a kernel runs: those of the whole team where its idle threads wait spinning.

    max(workers, min(threads, count)), or workers where they sleep, [D, V]

    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> awake_cores(some(runtime=CpuRuntime(spin=1.0)), some(core=some(count=4.0)), 1.0, 8.0).item()
    4.0
    """
    return np.asarray(np.where(kernels.runtime.spin > 0, np.maximum(workers, np.minimum(threads, device.core.count)), workers))


def undisturbed(
    kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Share of its core that a thread gets.

    `cpu.sibling` [1] where threads without work spin on hyper-threads of cores at work, else 1, [D, V]

    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> kernel, cpu = some(channels=0.0, runtime=CpuRuntime(spin=1.0)), some(core=some(count=4.0, simd=256.0))
    >>> undisturbed(kernel, cpu, 1.0, 8.0, {"cpu.sibling": 0.6}).item()  # a serial loop beside seven threads
    0.6
    """
    beyond = (kernels.runtime.spin > 0) & (threads > device.core.count)
    return np.asarray(np.where(beyond & unoccupied(kernels, device, workers), constants["cpu.sibling"], 1.0))


def unoccupied(kernels: CpuKernels, device: Cpu, workers: Array) -> NDArray[np.bool_]:
    """Whether a kernel has no work for more threads than there are cores, [D, V]: a serial loop, or as few pieces.

    workers < count, or 0 < pieces <= count; workers: cores at work, [D, V]

    pieces: what threads take whole

    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> blocks = some(channels=32.0, runtime=CpuRuntime(block_registers=1.0))
    >>> unoccupied(blocks, some(core=some(count=4.0, simd=256.0)), 4.0).item()
    True
    """
    pieces = pieces_of(kernels, device)
    return np.asarray((workers < device.core.count) | ((pieces > 0) & (pieces <= device.core.count)))


def busiest_share(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Share of a kernel that its busiest core gets: whole pieces of what is cut, else an even part.

    ceil(pieces / workers) / pieces, or min(strip / n, 1) where a library cuts into strips, [D, V]

    even: share where cores get whole pieces, or an even cut
    pieces: what is not divided: register blocks, or blocks of channels
    lanes: fp32 values of a SIMD register
    strip: columns of one core: a strip for each thread, in whole registers
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    A static schedule (OpenMP) gives each thread one run of pieces. A library with `min_rows_per_thread` (OpenBLAS) cuts one side
    of a product into as many strips as there are threads, whatever the cores, and computes each in whole SIMD registers.

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> from archsim.lower.columns import CpuRuntime
    >>> product = kernels(matrix=1.0, m=10.0, n=49.0, count=1.0, channels=0.0, min_rows_per_thread=0.0,
    ...                   packed=1.0, runtime=CpuRuntime())
    >>> busiest_share(product, find("i7_6700k").device, 4.0, 4.0).item()  # two of eight blocks
    0.25
    """
    whole = np.where(kernels.matrix > 0, register_blocks(kernels, device), 0.0)
    pieces = np.where(kernels.channels > 0, pieces_of(kernels, device), whole)
    even = np.where(pieces > 0, np.ceil(pieces / workers) / np.maximum(pieces, 1.0), 1.0 / workers)
    lanes = device.core.simd / LANE_BITS
    strip = np.ceil(np.ceil(kernels.n / threads) / lanes) * lanes * np.maximum(threads / device.core.count, 1.0)
    return np.asarray(np.where((kernels.min_rows_per_thread > 0) & (workers > 1), np.minimum(strip / kernels.n, 1.0), even))


def instances_used(device: Cpu, workers: Array | float) -> Array:
    """Instances of the last cache level whose cores work, one filled after the other.

    max(ceil(workers / shared_by), 1), [D, V]; workers: cores at work, [D, V]

    level: the third, or the second where there is no third

    >>> from archsim.device.catalog import find
    >>> instances_used(find("epyc_7742").device, 6.0).item()  # four cores each
    2.0
    """
    level = device.l2 if device.l3 is None else device.l3
    return np.asarray(np.maximum(np.ceil(workers / np.minimum(level.shared_by, device.core.count)), 1.0))


def near_line(device: Cpu) -> Array:
    """Time in which a core gets a line that another one of the same last cache level has written [s].

    2 latency / boost, a float or [D, 1]        (Levinthal 2009, Performance Analysis Guide for Core i7: 40 clk, modified 75)

    level: the third, or the second where there is no third; the request goes there, and from there to the core with the line
    latency: of a hit in that level [clk], as one core at its highest clock sees it; the level keeps its own clock
    boost: that clock [Hz]

    >>> from archsim.device.catalog import find
    >>> near_line(find("i7_6700k").device).item() * 1e9
    20.0
    """
    level = device.l2 if device.l3 is None else device.l3
    return np.asarray(2.0 * level.latency / device.clock.boost)


def dispatch_clock(host: Cpu) -> Array | float:
    """Clock [Hz] at which a core of Haswell would run one thread of branchy scalar code as fast as one of the `host`.

    f = f_turbo ipc        (frameworks, drivers and calls of the system are such code)

    f_turbo: clock of one active core [Hz], a float or [D, 1]
    ipc: its instructions per clock of such code relative to Haswell, `core.scalar_ipc` [1]

    >>> from archsim.device.catalog import find
    >>> dispatch_clock(find("i7_5930k").device) / 1e9
    3.7
    """
    return host.clock.boost * host.core.scalar_ipc


def fork_join(
    kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, panels: Array, constants: Calibration
) -> Array:  # fmt: skip
    """Forking and joining the threads of one parallel loop [s].

    counter + written; where a BLAS starts its threads itself also queue + flags panels, [D, V]; 0 with one core at work

    counter: every core at work gets the one line on which they count themselves, once for the join and once for the fork [s]
    queue: a BLAS that starts one thread after the other, `cpu.wake_s` for each: threads that spin yield to the system [s]
    flags: what each thread hears of the others for one panel, `FLAGS` lines of each [s]
    alone: what starting and hearing each other take in such a BLAS [s]
    written: the first thread writes `fork_cache_lines` of each other one of the team, which that one has read, and wakes them [s]
    woken: by one call where they spin and none sleeps, `call`; by a call for each, `rouse`, where they sleep [s]
    call: one call of the system that wakes nobody, `cpu.call_clk` clocks of a Haswell core at the `dispatch_clock` [s]
    rouse: a call for each further thread, `cpu.rouse_clk` clocks of a Haswell core each, at the `dispatch_clock` [s]
    whole: whether all threads that were asked for join the loop, as those of OpenMP do, also where it has fewer pieces
    team: threads that join the loop [1]
    near: a line from a core of the same last cache level [s]
    far: a line from any other, at the latency of memory [s]
    outside: instances of the last level
    usual: a line from any core at work [s]
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]
    panels: into which k is cut, [D, V]

    A library with `min_rows_per_thread` (OpenBLAS) starts its threads one after the other, all that there are. Of each panel
    every thread packs a part, and waits for the parts of all others (driver/level3/level3_thread.c).

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> from archsim.lower.columns import CpuRuntime
    >>> usual = {"min_rows_per_thread": 0.0, "threaded": 1.0, "runtime": CpuRuntime()}
    >>> of = {"cpu.wake_s": 1e-6, "cpu.rouse_clk": 5e3, "cpu.call_clk": 1e3}
    >>> round(fork_join(kernels(**usual), find("i7_6700k").device, 4.0, 8.0, 1.0, of).item() * 1e9)
    120
    """
    whole = (kernels.runtime.fork_cache_lines > 0) & (kernels.runtime.spin > 0) & (kernels.threaded > 0)
    team = np.where(whole, np.minimum(threads, device.core.count), workers)
    near, far = near_line(device), device.memory.latency
    outside = instances_used(device, team)
    usual = (near + (outside - 1.0) * far) / outside
    counter = 2.0 * usual * (team - 1.0)
    rouse = constants["cpu.rouse_clk"] / dispatch_clock(device) * (team - 1.0)
    call = constants["cpu.call_clk"] / dispatch_clock(device)
    woken = np.where(kernels.runtime.spin > 0, call, rouse)
    written = np.where(kernels.runtime.fork_cache_lines > 0, woken + kernels.runtime.fork_cache_lines * usual * (team - 1.0), 0.0)
    queue = constants["cpu.wake_s"] * (threads - 1.0)
    flags = FLAGS * usual * (threads - 1.0)
    alone = np.where(kernels.min_rows_per_thread > 0, queue + flags * panels, 0.0)
    return np.asarray(np.where(team > 1, counter + written + alone, 0.0))
