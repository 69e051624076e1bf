"""The equations of a kernel on a CPU, in the order in which `archsim.cost.cpu` computes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archsim.cost.blocking import LANE_BITS
from archsim.cost.cpu import active_cores, sockets_used, unoccupied
from archsim.cost.traffic import RESIDENT_SHARE
from archsim.device.device import Cpu
from archsim.estimation.request import Request
from archsim.explain.equation import Equation, Quantities
from archsim.lower.kernel import CpuKernels

NARROW = Equation(name="narrow", unit="1", text="above(grain * threads_asked, min(m, n))",
                  meaning="1 if a side is too short to be cut for so many threads")  # fmt: skip
AWAKE = Equation(name="awake", unit="1", text="max(workers, min(threads_asked, core.count))",
                 meaning="cores that are not asleep: threads without work spin")  # fmt: skip
USED = Equation(name="used", unit="1", text="max(ceil(workers * core.sockets / core.count), 1)",
                meaning="sockets at work, filled one after the other")  # fmt: skip
LANES = Equation(name="lanes", unit="1", text="core.simd / lane32", meaning="fp32 values of a SIMD register")
PRODUCT = (
    Equation(name="columns", unit="1", text="2 * lanes", meaning="columns of the register block: two registers"),
    Equation(name="rows", unit="1", text="ceil(core.fma_latency * core.fma_ports * lanes / columns)",
             meaning="its rows, so that latency x ports results are in flight"),
    Equation(name="blocks", unit="1", text="ceil(m / rows) * ceil(n / columns) * count",
             meaning="register blocks, those at the edges counted whole"),
    Equation(name="macs", unit="1", text="blocks * rows * columns * (k + cpu.ramp) * work",
             meaning="multiply-accumulates, with the ramp of each block"),
    Equation(name="arithmetic", unit="clk", text="macs / (pipe * family)", meaning="clocks of the product, summed over cores"),
)  # fmt: skip
DEPTH = Equation(name="depth", unit="1", text="max(floor((l1.ways - 1) * l1.size / l1.ways / ((rows + columns) * operand_a)), 1)",
                 meaning="steps of k whose panels of both operands stay in the first cache level")  # fmt: skip
SECOND = Equation(name="block_rows", unit="1",
                  text="max(floor((l2.ways - 1 - ceil(depth * columns * operand_a / (l2.size / l2.ways))) * l2.size / l2.ways"
                       " / (depth * operand_a)), 1)",
                  meaning="rows of A that stay in the second level")  # fmt: skip
LAST = Equation(name="block_columns", unit="1",
                text="max(floor(max(l3.ways - 1 - ceil(depth * block_rows * operand_a * l3.shared_by / (l3.size / l3.ways)), 1)"
                     " * l3.size / l3.ways / (depth * operand_a)), 1)",
                meaning="columns of B that stay in the last level beside the rows of every core")  # fmt: skip
PANELS = Equation(name="panels", unit="1", text="ceil(k / depth)", meaning="panels into which k is cut")
REFILLS = Equation(name="l1", unit="s", text="blocks * rows * k * operand_a / (workers * l2.bandwidth * speed)",
                   meaning="panels of A, read from the second level once for each column of register blocks")  # fmt: skip
DENSE = Equation(name="arithmetic", unit="clk", text="flop / (2 * pipe * family)",
                 meaning="clocks at the rate of a product, summed over cores")  # fmt: skip
STREAM = Equation(name="arithmetic", unit="clk", text="flop / cpu.pointwise_flop",
                  meaning="clocks of loops that are barely vectorised, summed over cores")  # fmt: skip
VECTOR = Equation(name="arithmetic", unit="clk", text="flop / cpu.vector_flop",
                  meaning="clocks of vectorised loops, summed over cores")  # fmt: skip
STRIP = Equation(name="strip", unit="1",
                 text="ceil(ceil(n / threads_asked) / lanes) * lanes * max(threads_asked / core.count, 1)",
                 meaning="columns of one core: a strip for each thread, in whole registers")  # fmt: skip
ONE_CORE = Equation(name="one_core", unit="B/s", text="cpu.prefetch * core.miss_buffers * l1.line / memory.latency",
                    meaning="what one core draws, by Little's law")  # fmt: skip
DRAM = Equation(name="dram", unit="s", text="dram_bytes / bandwidth", meaning="memory traffic over bandwidth")
AGAIN = Equation(name="again", unit="B", text="(workers - 1) * operand_a * m * k * count",
                 meaning="the operand that is not cut, read whole by every further core")  # fmt: skip


def traits(query: Request, kernels: CpuKernels, v: int) -> frozenset[str]:
    """What decides which equations hold for kernel `v`."""
    device, threads = query.spec.device, query.threads or 1
    assert isinstance(device, Cpu)
    workers, count = float(np.ravel(active_cores(kernels, device, threads))[v]), float(device.core.count)
    product, serial, grain = bool(kernels.matrix[v]), not kernels.threaded[v], float(kernels.grain[v])
    crosses = device.core.link is not None and float(sockets_used(device, workers)) > 1
    own = {
        "product": product, "dense": kernels.dense[v], "scalar": not product and kernels.clocks[v], "serial": serial,
        "alone": workers == 1, "grain": product and grain and not serial,
        "narrow": product and not serial and min(kernels.m[v], kernels.n[v]) < grain * threads, "cut": grain and workers > 1,
        "parts": kernels.parts[v], "packed": kernels.packed[v], "limited": np.isfinite(kernels.pipe[v]),
        "sibling": kernels.spin[v] and threads > count and np.ravel(unoccupied(kernels, device, np.asarray(workers)))[v],
        "spin": kernels.spin[v], "gathered": product and kernels.clocks[v],
        "vector": kernels.vector[v] and not product and not kernels.dense[v], "local": kernels.local[v],
        "sockets": float(device.core.sockets) > 1, "crosses": crosses, "l3": device.l3 is not None,
    }  # fmt: skip
    return frozenset(name for name, value in own.items() if value)


def equations(of: frozenset[str]) -> tuple[Equation, ...]:
    """All of one kernel with these traits."""
    return (*_cores(of), *_clocks(of), _compute(of), *_panels(of), *_memory(of), *_cache(of), _launch(of))


def _cores(of: frozenset[str]) -> tuple[Equation, ...]:
    """Who works, and how fast."""
    pieces = "parts" if "parts" in of else "items"
    text = "1" if of & {"serial", "narrow"} else f"min(threads_asked, core.count, max(1, {pieces}))"
    why = ": the loop is serial" if "serial" in of else ": the library leaves the product to one" if "narrow" in of else ""
    sibling, awake = "sibling" in of, "awake" if "spin" in of else "workers"
    idle = Equation(name="idle", unit="1", text=f"max(1 - ({awake} - 1) / max(core.count / core.sockets - 1, 1), 0)",
                    meaning="room for turbo: 1 with one core awake, 0 with all of a socket")  # fmt: skip
    speed = "clock + max(clock.boost - clock, 0) * idle"
    return (
        *[NARROW] * ("grain" in of),
        Equation(name="workers", unit="1", text=text, meaning="cores at work" + why),
        *[AWAKE] * ("spin" in of),
        idle,
        Equation(name="speed", unit="Hz", text=f"({speed}) * cpu.sibling" if sibling else speed,
                 meaning="their clock" + ", less what threads that spin on their hyper-threads take" * sibling),
        *[USED] * ("sockets" in of),
    )  # fmt: skip


def _clocks(of: frozenset[str]) -> tuple[Equation, ...]:
    """Clocks of the arithmetic, and the share of the busiest core."""
    peak = "core.simd / lane * core.fma_ports"
    limited = "limited" in of
    pipe = Equation(name="pipe", unit="FMA/clk", text=f"min({peak}, multiply_adds)" if limited else peak,
                    meaning="multiply-accumulates per clock and core" + " of the library's code" * limited)  # fmt: skip
    body: tuple[Equation, ...] = (LANES, pipe, *PRODUCT)
    if "gathered" in of:
        *before, last = body
        body = (*before, replace(last, text=f"{last.text} + clocks", meaning=f"{last.meaning}, and of fetching its operands"))
    if "product" not in of:
        body = (pipe, DENSE) if "dense" in of else (VECTOR if "vector" in of else STREAM,)
    if "scalar" in of:
        *before, last = body
        loop = Equation(name="arithmetic", unit="clk", text=f"max(clocks, {last.text})",
                        meaning="clocks of the framework's own loop, summed over cores")  # fmt: skip
        body = (*before, loop)
    return (*body, *_share(of))


def _share(of: frozenset[str]) -> tuple[Equation, ...]:
    if "alone" in of:
        return ()
    if "cut" in of:
        return (STRIP, Equation(name="share", unit="1", text="min(strip / n, 1)", meaning="share of the busiest core"))
    whole = "parts" if "parts" in of else "blocks" if "product" in of else ""
    return (
        Equation(name="share", unit="1", text=f"ceil({whole} / workers) / {whole}" if whole else "1 / workers",
                 meaning=f"share of the busiest core: whole {whole}" if whole else "share of each core"),
    )  # fmt: skip


def _compute(of: frozenset[str]) -> Equation:
    alone, packed = "alone" in of, "packed" in of
    clocks = "arithmetic" + " * share" * (not alone)
    if packed:
        clocks = f"({clocks} + cpu.pack_clk * packed" + ("" if alone else " * share" if "parts" in of else " / workers") + ")"
    who = "the one core" if alone else "the busiest core"
    return Equation(name="compute", unit="s", text=f"{clocks} / speed",
                    meaning=f"arithmetic of {who}" + ", and its copying of operands into panels" * packed)  # fmt: skip


def _panels(of: frozenset[str]) -> tuple[Equation, ...]:
    """Panels of a product in the caches of its core."""
    blocks = (DEPTH, PANELS, SECOND, *[LAST] * ("l3" in of))
    return (*(blocks if "packed" in of else ()), *[REFILLS] * ("product" in of))


def _memory(of: frozenset[str]) -> tuple[Equation, ...]:
    """Memory traffic and bandwidth; each socket has a last-level cache and a memory of its own."""
    level, sockets, local = _level(of), "sockets" in of, "local" in of
    reach = "memory.bandwidth * memory.achievable" + " / core.sockets" * sockets
    reach += " * (1 + (used - 1) * local)" * (sockets and local)
    where = (" from the memories of the sockets in use" if local else " from one socket, whose thread touched it first") * sockets
    return (
        Equation(name="last_level", unit="B",
                 text=f"{level}.size * max(1, core.count / {level}.shared_by)" + " * used / core.sockets" * sockets,
                 meaning="the last cache level, " + ("of the sockets in use" if sockets else "all its instances")),
        Equation(name="fresh", unit="1", text="above(b_bytes + c_bytes, kept_share * last_level)",
                 meaning="1 if activations come from memory, 0 if the op before has left them in the cache"),
        Equation(name="dram_bytes", unit="B", text=f"a_bytes + fresh * (b_bytes + {_results(of)})",
                 meaning="memory traffic; a written line is read first" + ", and again for each panel" * ("packed" in of)),
        ONE_CORE,
        Equation(name="bandwidth", unit="B/s", text=f"min(workers * one_core, {reach})",
                 meaning="what the cores at work draw" + where),
        DRAM,
    )  # fmt: skip


def _cache(of: frozenset[str]) -> tuple[Equation, ...]:
    """Traffic through the last cache level, and what of it crosses from one socket to another."""
    cut, packed = "cut" in of, "packed" in of
    rows = "(ceil(n / block_columns) - 1) * m + " if "l3" in of else ""
    body = (
        *[AGAIN] * cut,
        *[Equation(name="repeats", unit="B", text=f"({rows}(ceil(m / block_rows) - 1) * n) * k * count * operand_a",
                   meaning="what further blocks of the product read again")] * packed,
        Equation(name="l2_bytes", unit="B",
                 text=f"a_bytes + b_bytes + {_results(of)}" + " + again" * cut + " + repeats" * packed,
                 meaning="traffic through that cache"),
        Equation(name="l2", unit="s", text=f"l2_bytes / (workers * {_level(of)}.bandwidth * speed)",
                 meaning="that traffic over the bandwidth of the level"),
    )  # fmt: skip
    if "crosses" not in of:
        return body
    local = "local" in of
    link = "(core.link * (1 + local))" if local else "core.link"
    where = "both ways, as pages lie on every socket" if local else "one way, as pages lie on one socket"
    return (*body, Equation(name="link", unit="s", text=f"l2_bytes * (used - 1) / used / {link}",
                            meaning=f"what sockets read from each other, {where}"))  # fmt: skip


def _launch(of: frozenset[str]) -> Equation:
    text, meaning = "cpu.barrier_s * log2(workers)", "waking and joining the threads of one loop"
    if "cut" in of:
        rounds = "panels" if "packed" in of else "1"
        text = f"{text} * (1 + {rounds}) + cpu.wake_s * (threads_asked - 1)"
        meaning += ", one after the other, and waiting for all before each panel"
    return Equation(name="launch", unit="s", text=text, meaning=meaning)


def _results(of: frozenset[str]) -> str:
    """Bytes of the results of a kernel, read and written: once, or once for each panel of a packed product."""
    return "2 * c_bytes * panels" if "packed" in of else "2 * c_bytes"


def _level(of: frozenset[str]) -> str:
    return "l3" if "l3" in of else "l2"


def quantities(query: Request, kernels: CpuKernels, v: int) -> tuple[Quantities, dict[str, str]]:
    """What the equations name beside kernel, spec and constants; on a CPU no name stands for another."""
    lane = 2.0 * LANE_BITS if query.precision == "fp64" else float(LANE_BITS)
    return {"lane": (lane, "bit"), "lane32": (float(LANE_BITS), "bit"), "kept_share": (RESIDENT_SHARE, "1"),
            "threads_asked": (float(query.threads or 1), "1"),
            "multiply_adds": (float(kernels.pipe[v]), "FMA/clk")}, {}  # fmt: skip
