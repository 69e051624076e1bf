"""What the cores of a CPU do with a kernel: which of them work, at which clock, for how many clocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration
from archsim.cost.blocking import LANE_BITS, micro_tile
from archsim.cost.cost import Array, family_efficiency
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels


def active_cores(kernels: CpuKernels, device: Cpu, threads: Array | float) -> Array:
    """Cores at work on each kernel.

    min(threads, count, max(1, pieces)), or 1, [D, V]

    team: cores that the threads can occupy; hyper-threads add none
    pieces: what threads take whole, `parts` or `items`
    threads: threads that were asked for, a float or [D, 1]

    One core works where the framework's loop is serial, or where the library finds the product too narrow for so many threads:
    a side of less than `grain` for each.

    >>> from types import SimpleNamespace as some
    >>> kernel = some(parts=3.0, items=1e6, matrix=0.0, m=1.0, n=1.0, grain=0.0, threaded=1.0)
    >>> active_cores(kernel, some(core=some(count=4.0)), 8.0).item()
    3.0
    """
    team = np.minimum(threads, device.core.count)
    pieces = np.where(kernels.parts > 0, kernels.parts, kernels.items)
    wide = (kernels.matrix == 0) | (np.minimum(kernels.m, kernels.n) >= kernels.grain * threads)
    return np.asarray(np.where((kernels.threaded > 0) & wide, np.minimum(team, np.maximum(1.0, pieces)), 1.0))


def awake_cores(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Cores that are not asleep while a kernel runs: those of the whole team where its idle threads wait spinning.

    max(workers, min(threads, count)), or workers where they sleep, [D, V]

    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> awake_cores(some(spin=1.0), some(core=some(count=4.0)), 1.0, 8.0).item()
    4.0
    """
    return np.asarray(np.where(kernels.spin > 0, np.maximum(workers, np.minimum(threads, device.core.count)), workers))


def active_clock(device: Cpu, awake: Array | float, clock: Array | float) -> Array:
    """Clock with so many cores awake: from the turbo of one in even steps down to `clock` with all of a socket [Hz].

    clock + max(boost - clock, 0) idle, [D, V]

    idle: room for turbo: 1 with one core awake, 0 with all of a socket
    awake: cores that are not asleep, [D, V]
    clock: of SIMD code on all cores [Hz], a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> cpu = some(core=some(count=16.0, sockets=2.0), clock=some(boost=3.2e9))
    >>> active_clock(cpu, 4.5, 2.6e9).item()
    2900000000.0
    """
    idle = np.maximum(1.0 - (awake - 1.0) / np.maximum(device.core.count / device.core.sockets - 1.0, 1.0), 0.0)
    return np.asarray(clock + np.maximum(device.clock.boost - clock, 0.0) * idle)


def undisturbed(
    kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Share of its core that a thread gets.

    `cpu.sibling` [1] where threads without work spin on hyper-threads of cores at work, else 1, [D, V]

    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> kernel, cpu = some(spin=1.0, parts=0.0), some(core=some(count=4.0))
    >>> undisturbed(kernel, cpu, 1.0, 8.0, {"cpu.sibling": 0.6}).item()  # a serial loop beside seven threads
    0.6
    """
    beyond = (kernels.spin > 0) & (threads > device.core.count)
    return np.asarray(np.where(beyond & unoccupied(kernels, device, workers), constants["cpu.sibling"], 1.0))


def unoccupied(kernels: CpuKernels, device: Cpu, workers: Array) -> NDArray[np.bool_]:
    """Whether a kernel has no work for more threads than there are cores, [D, V]: a serial loop, or as few images.

    workers < count, or 0 < parts <= count; workers: cores at work, [D, V]

    >>> from types import SimpleNamespace as some
    >>> unoccupied(some(parts=4.0), some(core=some(count=4.0)), 4.0).item()
    True
    """
    return np.asarray((workers < device.core.count) | ((kernels.parts > 0) & (kernels.parts <= device.core.count)))


def register_blocks(kernels: CpuKernels, device: Cpu) -> Array:
    """Register blocks of the results of all products of one launch, those at the edges counted whole.

    ceil(m / rows) ceil(n / columns) count, [D, V]; rows, columns: `micro_tile`, [D, 1]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> register_blocks(kernels(m=10.0, n=49.0, count=1.0), find("i7_6700k").device).item()  # 4 x 16 results each
    12.0
    """
    block_m, block_n = micro_tile(device)
    return np.asarray(np.ceil(kernels.m / block_m) * np.ceil(kernels.n / block_n) * kernels.count)


def busiest_clocks(
    kernels: CpuKernels, device: Cpu, precision: str, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Clocks of the busiest core for one launch, its copying of operands into panels included [clk].

    core_clocks share + (pack copied + pack_simd copied_simd) share, [D, V]; without `parts` all cores copy alike

    share: share of the busiest core
    packing: clocks of all copying, `cpu.pack_clk` for each value, `cpu.pack_simd_clk` by SIMD instructions [clk]
    copying: clocks of its own [clk]
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.stack.stack import LOOP
    >>> from types import SimpleNamespace as some
    >>> one = np.ones(1)
    >>> loop = some(constants=("full",), efficiency=np.array([0]), matrix=0 * one, parts=0 * one, grain=0 * one, copied=0 * one,
    ...             copied_simd=0 * one, flop=one, vector=one, dense=0 * one, pipe=np.inf * one, m=one, n=one, k=one, count=one,
    ...             work=one, steps=1e6 * one, **dict.fromkeys(LOOP[1:], 0 * one))
    >>> cpu, of = find("i7_6700k").device, default().with_values({"loop.steps_clk": 4.0})
    >>> busiest_clocks(loop, cpu, "fp32", 4.0, 4.0, of).item()
    1000000.0
    """
    share = busiest_share(kernels, device, workers, threads)
    packing = constants["cpu.pack_clk"] * kernels.copied + constants["cpu.pack_simd_clk"] * kernels.copied_simd
    copying = packing * np.where(kernels.parts > 0, share, 1.0 / workers)
    return np.asarray(core_clocks(kernels, device, precision, constants) * share + copying)


def loop_clocks(kernels: CpuKernels, constants: Calibration) -> Array:
    """Clocks of what a library does value by value, in scalar code, summed over cores [clk].

    sum over steps, branches, divisions, exps, pows, gathers and transitions of count c, [V]

    plain, called, fetched: clocks of steps and branches, of functions, of operands that are fetched or divided [clk]
    count: of one launch, from the loop's source code (`loops` of the stack) [1], [V]
    c: clocks of each, `loop.steps_clk` and so on [clk] (A. Fog, Instruction tables, 2022)

    >>> from archsim.calibration.constants import default
    >>> from archsim.stack.stack import LOOP
    >>> from types import SimpleNamespace as kernels
    >>> of = default().with_values({"loop.steps_clk": 3.0, "loop.exps_clk": 60.0})
    >>> loop_clocks(kernels(**{**dict.fromkeys(LOOP, 0.0), "steps": 100.0, "exps": 10.0}), of)
    900.0
    """
    plain = kernels.steps * constants["loop.steps_clk"] + kernels.branches * constants["loop.branches_clk"]
    called = kernels.exps * constants["loop.exps_clk"] + kernels.pows * constants["loop.pows_clk"]
    fetched = kernels.gathers * constants["loop.gathers_clk"] + kernels.divisions * constants["loop.divisions_clk"]
    return plain + called + fetched + kernels.transitions * constants["loop.transitions_clk"]


def core_clocks(kernels: CpuKernels, device: Cpu, precision: str, constants: Calibration) -> Array:
    """Clocks of the arithmetic of one launch, summed over cores [clk].

    block_macs / (rate family) + loop of a product; max(loop, flop / per_clock) of an element-wise kernel, [D, V]

    family: efficiency of the kernel's family
    peak: multiply-accumulates per clock of a core's SIMD units [FMA/clk]
    rate: multiply-accumulates per clock that the library's instructions start [FMA/clk]
    block_macs: multiply-accumulates in whole register blocks, with the ramp of each
    loop: clocks of what the library does value by value, `loop_clocks` [clk]
    simple: arithmetic in each clock of a loop of which nothing is known: vectorised, or a step for each operation [OP/clk]
    per_clock: the same, or that at the rate of a product [OP/clk]

    A product issues whole register blocks, and k grows by the ramp of one block, `cpu.ramp`. An element-wise kernel runs the
    framework's loop, or, where nothing is known of it, arithmetic that is vectorised or one step for each operation.

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.stack.stack import LOOP
    >>> from types import SimpleNamespace as some
    >>> one = np.ones(1)
    >>> product = some(constants=("full",), efficiency=np.array([0]), matrix=one, flop=one, vector=one,
    ...                **dict.fromkeys(LOOP, 0 * one), dense=0 * one, pipe=np.inf * one,
    ...                m=8 * one, n=16 * one, k=50 * one, count=one, work=one)
    >>> core_clocks(product, find("i7_6700k").device, "fp32", default().with_values({"cpu.ramp": 10.0})).item()  # 2 blocks of 64
    480.0
    """
    block_m, block_n = micro_tile(device)
    family = family_efficiency(kernels, constants)
    peak = device.pipe(precision)
    rate = np.minimum(peak, kernels.pipe)
    block_macs = register_blocks(kernels, device) * block_m * block_n * (kernels.k + constants["cpu.ramp"]) * kernels.work
    loop = loop_clocks(kernels, constants)
    simple = np.where(kernels.vector > 0, constants["cpu.vector_flop"], 1.0 / constants["loop.steps_clk"])
    per_clock = np.where(kernels.dense > 0, 2.0 * rate * family, simple)
    return np.asarray(np.where(kernels.matrix > 0, block_macs / (rate * family) + loop,
                               np.maximum(loop, kernels.flop / per_clock)))  # fmt: skip


def busiest_share(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Share of a kernel that its busiest core gets: whole register blocks of a product, whole parts, else an even cut.

    ceil(pieces / workers) / pieces, or min(strip / n, 1) under a grain, [D, V]

    even: share where cores get whole pieces, or an even cut
    pieces: what is not divided: register blocks, or parts such as images
    lanes: fp32 values of a SIMD register
    strip: columns of one core: a strip for each thread, in whole registers
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    A library with a grain (OpenBLAS) cuts one side of a product into as many strips as there are threads, whatever the
    cores, and computes each in whole SIMD registers.

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> product = kernels(matrix=1.0, m=10.0, n=49.0, count=1.0, parts=0.0, grain=0.0)
    >>> busiest_share(product, find("i7_6700k").device, 5.0, 5.0).item()  # three of twelve blocks
    0.25
    """
    whole = np.where(kernels.matrix > 0, register_blocks(kernels, device), 0.0)
    pieces = np.where(kernels.parts > 0, kernels.parts, whole)
    even = np.where(pieces > 0, np.ceil(pieces / workers) / np.maximum(pieces, 1.0), 1.0 / workers)
    lanes = device.core.simd / LANE_BITS
    strip = np.ceil(np.ceil(kernels.n / threads) / lanes) * lanes * np.maximum(threads / device.core.count, 1.0)
    return np.asarray(np.where((kernels.grain > 0) & (workers > 1), np.minimum(strip / kernels.n, 1.0), even))


def fork_join(
    kernels: CpuKernels, workers: Array, threads: Array | float, panels: Array, constants: Calibration
) -> Array:  # fmt: skip
    """Waking and joining the threads of one parallel loop [s].

    barrier log2(workers); under a grain barrier log2(workers) (1 + panels) + wake (threads - 1), [D, V]

    tree: a barrier of all cores at work, `cpu.barrier_s` for each level of the tree [s]
    queue: waking one thread after the other, `cpu.wake_s` each [s]
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]
    panels: into which k is cut, [D, V]

    A library with a grain (OpenBLAS) wakes its threads one after the other, all that there are; they wait for each other
    again before each panel, which every core packs a part of.

    >>> from types import SimpleNamespace as kernels
    >>> fork_join(kernels(grain=0.0), 4.0, 8.0, 1.0, {"cpu.barrier_s": 2e-6, "cpu.wake_s": 1e-6}).item()
    4e-06
    """
    tree = constants["cpu.barrier_s"] * np.log2(np.maximum(workers, 1.0))
    queue = constants["cpu.wake_s"] * (threads - 1.0)
    return np.asarray(np.where((kernels.grain > 0) & (workers > 1), tree * (1.0 + panels) + queue, tree))


def work_done(kernels: CpuKernels, awake: Array) -> dict[str, Array]:
    """Operations of one launch that take energy [1], [V], and the cores whose clocks run, [D, V], those that wait spinning too.

    macs = flop / 2 of products        issues = flop / 2 of all else        units = awake

    awake: cores that are not asleep, [D, V]

    >>> from types import SimpleNamespace as kernels
    >>> [float(value) for value in work_done(kernels(matrix=0.0, dense=0.0, flop=2e6), 4.0).values()]
    [0.0, 1000000.0, 4.0]
    """
    product = (kernels.matrix > 0) | (kernels.dense > 0)
    half = 0.5 * kernels.flop
    return {"macs": np.where(product, half, 0.0), "issues": np.where(product, 0.0, half), "units": awake}
