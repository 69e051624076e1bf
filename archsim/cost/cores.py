"""What the cores of a CPU do with a kernel: at which clock, for how many clocks."""

from __future__ import annotations

import numpy as np

from archsim.base.errors import Unsupported
from archsim.calibration.constants import Calibration
from archsim.cost.blocking import LANE_BITS, LANE_BYTES, block_step, library_rate, micro_tile, narrow_clocks
from archsim.cost.cost import Array, family_efficiency
from archsim.cost.team import busiest_share, last_of, overlapped, tiles_of
from archsim.device.cpu_core import FORMS, turbo_knots
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels


def active_clock(device: Cpu, awake: Array | float, clock: Array | float) -> Array:
    """Clock with so many cores awake: from the turbo of one down to `clock` with all of a socket [Hz].

    clock + max(boost - clock, 0) room, [D, V]

    room: what of the turbo is left, `turbo_room`: 1 with one core awake, 0 with all of a socket
    awake: cores that are not asleep, [D, V]
    clock: of SIMD code on all cores [Hz], a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> cpu = some(core=some(count=16.0, sockets=2.0), clock=some(boost=3.2e9, turbo=None))
    >>> active_clock(cpu, 4.5, 2.6e9).item()
    2900000000.0
    """
    return np.asarray(clock + np.maximum(device.clock.boost - clock, 0.0) * turbo_room(device, awake))


def turbo_room(device: Cpu, awake: Array | float) -> Array:
    """What of the turbo of one core is left with so many awake [1].

    (T(awake) - T(per)) / (T(1) - T(per)), [D, V], T the turbo table `clock.turbo`; even steps where none is published

    per: cores of a socket [1], a float or [D, 1]
    evenly: what is left after even steps from one core to all of a socket [1]
    highest, lowest, now: clocks of one core, of a full socket, and with so many awake, by the table [Hz]
    span: what the table falls from one core to a full socket [Hz]
    falls: what is left by the table [1]
    awake: cores that are not asleep, [D, V]

    Tables are of scalar code; that of wider code has lower clocks at its ends and is taken to fall alike.

    >>> from types import SimpleNamespace as some
    >>> cpu = some(core=some(count=16.0, sockets=2.0), clock=some(turbo="2: 3.4 GHz, 3: 3.2 GHz, 8: 3.0 GHz"))
    >>> turbo_room(cpu, np.array([1.0, 2.0, 2.5, 3.0, 4.0, 16.0])).round(3).tolist()
    [1.0, 1.0, 0.75, 0.5, 0.0, 0.0]
    """
    per = device.core.count / device.core.sockets
    evenly = np.asarray(np.maximum(1.0 - (awake - 1.0) / np.maximum(per - 1.0, 1.0), 0.0))
    if device.clock.turbo is None:
        return evenly
    cores, clocks = turbo_knots(device.clock.turbo)
    lowest = np.interp(per, cores, clocks)
    highest, now = clocks[0], np.interp(awake, cores, clocks)
    span = highest - lowest  # none where a what-if leaves no more cores than run at the highest clock
    falls = np.maximum(now - lowest, 0.0) / np.where(span > 0.0, span, 1.0)
    return np.asarray(np.where(span > 0.0, falls, evenly))


def busiest_clocks(
    kernels: CpuKernels, device: Cpu, precision: str, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Clocks of the busiest core for one launch, its copying of operands into panels included [clk].

    (core_clocks share + copying) late, [D, V]

    late: time of the last thread as a multiple of their mean, `last_of` [1]
    share: share of the busiest core
    overlap: clocks of scalar code with hyper-threads at work, as a share of those without
    copying: `copy_clocks` [clk]
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuRuntime
    >>> from archsim.stack.loop import LOOP
    >>> from types import SimpleNamespace as some
    >>> one = np.ones(1)
    >>> flags = dict.fromkeys(("matrix", "channels", "min_rows_per_thread", "copied", "dense", "packed", "rewritten",
    ...                        "subnormal", "tiled"), 0 * one)
    >>> sizes = dict.fromkeys(("flop", "m", "n", "k", "count", "work", "items"), one)
    >>> loop = some(constants=("full",), efficiency=np.array([0]), operand_a=4 * one, **flags, **sizes,
    ...             counts={**dict.fromkeys(LOOP, 0 * one), "steps": 1e6 * one}, runtime=CpuRuntime(vectorised=1.0))
    >>> cpu, of = find("i7_6700k").device, default().with_values({"loop.steps_clk": 4.0})
    >>> busiest_clocks(loop, cpu, "fp32", 4.0, 4.0, of).item()
    1000000.0
    """
    share = busiest_share(kernels, device, workers, threads)
    overlap = overlapped(kernels, device, workers, threads, constants)
    copying = copy_clocks(kernels, device, workers, threads, constants)
    late = last_of(kernels, workers, constants)
    return np.asarray((core_clocks(kernels, device, precision, overlap, constants) * share + copying) * late)


def copy_clocks(
    kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Clocks in which the busiest core copies operands into panels before it multiplies [clk].

    each copied share, [D, V]; share: `copy_share`

    each: of one value: `cpu.pack_clk`, or `cpu.pack_simd_clk` by SIMD instructions, and less where it is narrow [clk]
    narrower: share of a register that a value takes, of what fp32 takes, at most 1
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> of = {"cpu.pack_clk": 2.5, "cpu.pack_simd_clk": 0.5}
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuRuntime
    >>> kernel = some(copied=1000.0, matrix=1.0, channels=0.0, min_rows_per_thread=0.0, tiled=0.0, m=12.0, n=16.0,
    ...               count=1.0, packed=1.0, operand_a=4.0, runtime=CpuRuntime(scalar_copies=1.0))
    >>> copy_clocks(kernel, find("i7_6700k").device, 2.0, 2.0, of).item()
    1250.0
    """
    narrower = np.minimum(kernels.operand_a / LANE_BYTES, 1.0)
    scalar = kernels.runtime.scalar_copies > 0
    each = np.where(scalar, constants["cpu.pack_clk"], constants["cpu.pack_simd_clk"] * narrower)
    return np.asarray(each * kernels.copied * copy_share(kernels, device, workers, threads))


def copy_share(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Share of the copies of operands that the busiest core makes: all copy alike, or each for its own blocks.

    `busiest_share` where there are `channels`, else 1 / workers; ceil(tiles / workers) / tiles of `tiled` images, [D, V]

    shared: the share where copies divide as the product does, or freely [1]
    tiles: `tiles_of` [1]
    workers: cores at work, [D, V]
    threads: threads that were asked for, a float or [D, 1]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> shape = {"m": 12.0, "n": 16.0, "count": 1.0, "channels": 0.0, "min_rows_per_thread": 0.0, "tiled": 0.0}
    >>> kernel = some(matrix=1.0, packed=1.0, runtime=CpuRuntime(), **shape)
    >>> copy_share(kernel, find("i7_6700k").device, 4.0, 4.0).item()
    0.25
    """
    shared = np.where(kernels.channels > 0, busiest_share(kernels, device, workers, threads), 1.0 / workers)
    tiles = np.maximum(tiles_of(kernels, device), 1.0)
    return np.asarray(np.where(kernels.tiled > 0, np.ceil(tiles / workers) / tiles, shared))


def loop_clocks(kernels: CpuKernels, constants: Calibration) -> Array:
    """Clocks of what a library does value by value, in scalar code, summed over cores [clk].

    sum over all that it does of count c, [V]

    counts: what the loop does in one launch, `ScalarLoop` [1], [V]
    counted, inferred: clocks of values one by one, by their instructions and from times [clk]
    window, called, fetched: clocks of values of windows, of functions, of operands that are fetched or divided [clk]
    c: clocks of each, `loop.steps_clk` and so on [clk], bounds tests as steps (A. Fog, Instruction tables, 2022); of elements,
        operations, windows and functions those of their programs on the core, which `archsim simulate kernels --derive` runs

    >>> from archsim.calibration.constants import default
    >>> from archsim.stack.loop import LOOP
    >>> from types import SimpleNamespace as kernels
    >>> of = default().with_values({"loop.steps_clk": 3.0, "loop.exps_clk": 60.0})
    >>> loop_clocks(kernels(counts={**dict.fromkeys(LOOP, 0.0), "steps": 100.0, "exps": 10.0}), of)
    900.0
    """
    counts = kernels.counts
    counted = counts["elements"] * constants["loop.elements_clk"] + counts["operations"] * constants["loop.operations_clk"]
    inferred = (counts["steps"] + counts["tests"]) * constants["loop.steps_clk"]
    window = counts["adds"] * constants["loop.adds_clk"] + counts["compares"] * constants["loop.compares_clk"]
    called = counts["exps"] * constants["loop.exps_clk"] + counts["pows"] * constants["loop.pows_clk"]
    fetched = counts["gathers"] * constants["loop.gathers_clk"] + counts["divisions"] * constants["loop.divisions_clk"]
    return counted + inferred + window + called + fetched


def core_clocks(
    kernels: CpuKernels, device: Cpu, precision: str, overlap: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Clocks of the arithmetic of one launch, summed over cores [clk].

    second + (multiplied / family + loads) work + loop + assists of a product
    second + faults + max(loop, flop / per_clock) of others

    assists: clocks of microcode where values are subnormal, `assist_clocks` [clk]
    family: efficiency of the kernel's family
    rate: multiply-adds per clock that the library's instructions start, `library_rate` [FMA/clk]
    multiplied: clocks of all steps, `block_step` (k + 1); of narrow operands, `narrow_clocks` [clk]
    loads: clocks of a core in order that loads operands, `load_clocks` [clk]
    products: clocks of both [clk]
    loop: clocks of what the library does value by value, `loop_clocks`, with its hyper-threads at work, and of its loops over
        whole registers, whose SIMD instructions start as multiply-adds do [clk]
    overlap: clocks of scalar code with them, as a share of those without, a float or [D, V]
    simple: arithmetic in each clock of a loop of which nothing is known: vectorised, or a step for each operation [OP/clk]
    per_clock: the same, or that at the rate of a product [OP/clk]
    second: clocks of a second loop over rows of the result that were just written, `second_clocks` [clk]

    A product issues register blocks; adding one to the result in memory takes as long as one more step. An element-wise kernel
    runs the framework's loop, or, where nothing is known of it, arithmetic that is vectorised or one step for each operation.

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuRuntime
    >>> from archsim.stack.loop import LOOP
    >>> from types import SimpleNamespace as some
    >>> one = np.ones(1)
    >>> product = some(constants=("full",), efficiency=np.array([0]), matrix=one, flop=one, counts=dict.fromkeys(LOOP, 0 * one),
    ...                rewritten=0 * one, dense=0 * one, m=8 * one, n=16 * one, k=50 * one, count=one, work=one, packed=one,
    ...                subnormal=0 * one, runtime=CpuRuntime())
    >>> core_clocks(product, find("i7_6700k").device, "fp32", 1.0, default()).item()  # blocks of 6 and 2 rows: 6 and 4 clocks
    510.0
    """
    family = family_efficiency(kernels, constants)
    rate = library_rate(kernels, device, precision)
    if precision in FORMS:
        multiplied = narrow_clocks(kernels, device, rate, precision)
    else:
        multiplied = block_step(kernels, device, rate) * (kernels.k + 1.0)
    loop = loop_clocks(kernels, constants) * overlap + kernels.counts["vectors"] / rate
    simple = np.where(kernels.runtime.vectorised > 0, constants["cpu.vector_flop"], 1.0 / (constants["loop.steps_clk"] * overlap))
    loads = load_clocks(kernels, device)
    per_clock = np.where(kernels.dense > 0, 2.0 * rate * family, simple)
    second = second_clocks(kernels, device, constants)
    assists = assist_clocks(kernels, device)
    products = multiplied / family + loads
    return np.asarray(np.where(kernels.matrix > 0, products * kernels.work + loop + assists,
                               np.maximum(loop, kernels.flop / per_clock)) + second)  # fmt: skip


def second_clocks(kernels: CpuKernels, device: Cpu, constants: Calibration) -> Array:
    """Clocks of a second loop over rows of the result that were just written: activations, scaling back to int8, summed [clk].

    rewritten / (lanes share), [D, V]

    rewritten: arithmetic of that loop [FLOP]; lanes: values of fp32 that the core's units multiply at once [1]
    share: of its lanes that the loop keeps busy, `cpu.second` [1]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> loop, of = some(rewritten=64.0), {"cpu.second": 0.5}
    >>> [second_clocks(loop, find(name).device, of).item() for name in ("i7_6700k", "raspberry_pi_4")]
    [8.0, 32.0]
    """
    return np.asarray(kernels.rewritten / (constants["cpu.second"] * device.pipe("fp32")))


def load_clocks(kernels: CpuKernels, device: Cpu) -> Array | float:
    """Clocks in which cores that run their program in order load the operands of products from the first level, summed [clk].

    m n k count element (1 / rows + 1 / columns) / B, [D, V]; depthwise m n k count element / B; 0 for cores out of order

    rows, columns: of a register block of values of this size [1], [D, V]
    element: size of a value [B]; B: bandwidth of the first level [B/clk], a float or [D, 1]

    A load of a whole SIMD register does not start beside a multiply-add of one (Arm, Cortex-A53 Software Optimization Guide), and
    nothing behind it overtakes it. Where each channel has filters of its own every tap loads its pixels.

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> product = some(m=14.0, n=8.0, k=100.0, count=1.0, operand_a=4.0, depthwise=0.0)
    >>> round(load_clocks(product, find("raspberry_pi_3").device).item())  # 22 values of 4 B for each step
    1100
    """
    if device.pipeline is None or device.pipeline.order != "in":
        return 0.0
    block_m, block_n = micro_tile(device)
    element = np.maximum(kernels.operand_a, 1.0)
    columns = block_n * LANE_BYTES / element
    each = np.where(np.asarray(kernels.depthwise) > 0, 1.0, 1.0 / block_m + 1.0 / columns)
    return np.asarray(kernels.m * kernels.n * kernels.k * kernels.count * element * each / device.l1.bandwidth)


def assist_clocks(kernels: CpuKernels, device: Cpu) -> Array | float:
    """Clocks in which microcode multiplies for the pipes, as an operand has subnormal values, summed over cores [clk].

    m n k count work / lanes (1 - (1 - s)^lanes) assist, [D, V]; 0 without such values

    s: share of the operand's values that are subnormal, spread evenly [1], [V]
    lanes: values of a register of the library's instructions [1], [D, V]
    products: multiply-adds of one launch [1], [V]
    assist: clocks of one instruction with at least one of them, `core.assist` [clk], a float or [D, 1]

    One such lane sends all of its instruction to microcode, and the pipeline starts anew behind it, so that nothing overlaps.
    Raises Unsupported for a core of which `assist` is not known.

    >>> import numpy as np
    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> product = some(subnormal=np.array([0.01]), m=80.0, n=10.0, k=100.0, count=1.0, work=1.0, runtime=CpuRuntime(simd=256.0))
    >>> round(assist_clocks(product, find("i7_3820").device).item())  # 7.7 % of 10,000 instructions, 160 clocks each
    123608
    """
    if not np.any(kernels.subnormal):
        return 0.0
    if device.core.assist is None:
        raise Unsupported("an operand has subnormal numbers, and the spec has no core.assist; "
                          '--set core.assist="160 clk" gives one')  # fmt: skip
    lanes = np.minimum(kernels.runtime.simd, device.core.simd) / LANE_BITS
    products = kernels.m * kernels.n * kernels.k * kernels.count * kernels.work
    return np.asarray(products / lanes * (1.0 - (1.0 - kernels.subnormal) ** lanes) * device.core.assist)


def work_done(kernels: CpuKernels, awake: Array) -> dict[str, Array]:
    """Operations of one launch that take energy [1], [V], and the cores whose clocks run, [D, V], those that wait spinning too.

    macs = flop / 2 of products        issues = flop / 2 of all else + values copied into panels        units = awake
    held = awake where idle threads wait spinning, else 1: cores awake before and after the parallel loop

    awake: cores that are not asleep, [D, V]

    >>> from types import SimpleNamespace as kernels
    >>> from archsim.lower.columns import CpuRuntime
    >>> loop = kernels(matrix=0.0, dense=0.0, flop=2e6, copied=0.0, runtime=CpuRuntime(spin=0.0))
    >>> [float(value) for value in work_done(loop, 4.0).values()]
    [0.0, 1000000.0, 4.0, 1.0]
    """
    product = (kernels.matrix > 0) | (kernels.dense > 0)
    half = 0.5 * kernels.flop
    return {"macs": np.where(product, half, 0.0), "issues": np.where(product, 0.0, half) + kernels.copied, "units": awake,
            "held": np.where(kernels.runtime.spin > 0, awake, np.minimum(awake, 1.0))}  # fmt: skip
