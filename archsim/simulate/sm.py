"""One SM that runs a kernel given in words: what it issues, what stalls it, what it draws from each level of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np

from archsim.base.errors import ArgumentError, UnknownName, near_words
from archsim.base.values import quantity
from archsim.cache.access import Accesses, chunks
from archsim.cache.hierarchy import Hierarchy, hierarchy_of
from archsim.cache.layers import launch_traffic
from archsim.cache.simulate import Simulation
from archsim.cache.tiles import A, B, C, Product, by_columns, matrix_result
from archsim.calibration.constants import Calibration, default
from archsim.cost.cost import Array, Cost
from archsim.cost.energy import COMPONENTS, spent
from archsim.cost.switched import node_energy, voltage
from archsim.cost.units import unit_energies
from archsim.cycle import layout
from archsim.cycle.attention import COPIERS, AttentionTile, attend
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import Rows, element_wise, row_sums, rows_of_cta
from archsim.cycle.patterns import warp_access
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import FP32, INT, SPECIAL, TENSOR, Program, Source
from archsim.cycle.run import Prepared, SmRun, prepared, resident, run
from archsim.cycle.stalls import SmUse, executed, use_of
from archsim.cycle.tensor import on_tensor_cores
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.device.variant import changes, first_of
from archsim.estimation.clock import at_memory_clock, memory_clock_share

SCHEMA = "archsim-sm/1"
STALLED = 5  # instructions that are named
WORDS: dict[str, dict[str, float]] = {  # of each kernel: what it takes, with what it is if not given; nan: as the caches have it
    "gemm": {"threads": 256, "registers": 120, "stages": 2, "bytes": 4, "m": 0, "n": 0, "l2": nan},
    "attention": {"d": 128, "threads": 128, "registers": 255, "bytes": 2, "overlapped": 0, "l2": 1.0},
    "norm": {"row": 1024, "piece": 0, "passes": 2, "arrays": 1, "bytes": 4, "load": 4, "flop": 4, "special": 0, "registers": 32,
             "l1": nan, "l2": nan},
    "stream": {"read": 1, "write": 1, "bytes": 4, "loads": 1, "flop": 0, "special": 0, "threads": 256, "registers": 32,
               "stride": 1, "set": 0, "l1": nan, "l2": nan},
}
EXAMPLE = "like 'gemm 128x128x8 threads=256' or 'stream read=1 write=1'"
TILED = {"gemm": "rows, columns and depth up to 1024, like 128x128x8", "attention": "queries and keys up to 1024, like 128x64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSm(SmUse):
    """A run of a kernel on one SM.

    kernel: as it was asked for; clock_hz: core clock [Hz]; scheduler: gto or lrr; ctas: that ran, in `time_s` [s]
    peak_share: multiply-accumulates over what the pipe that multiplies could have done; None where nothing is multiplied
    energy_j: of one SM by component, with its share of what all `sms` draw together [J]
    power_w: of the device if all SMs do the same, and no limit lowers the clock [W]
    hits: the share of the requests to each level that hit it; addresses: what an access of a warp of a stream touches
    unread: changed keys of caches that nothing reads, as the words of the kernel give the hits
    """

    hardware: str
    kernel: str
    clock_hz: float
    scheduler: str
    on: Prepared
    result: SmRun
    ctas: int
    time_s: float
    peak_share: float | None
    energy_j: Mapping[str, float]
    power_w: float
    sms: int
    hits: Mapping[str, float]
    addresses: Mapping[str, int]
    unread: tuple[str, ...]


DEEP = 1024  # of a product: deeper ones go on alike
BEYOND = 4  # times the lines of a cache: of more, read in turn, none is found again
ONE = ("threads", "registers", "bytes", "loads", "stages", "d", "row", "passes", "arrays", "load", "level",
       "stride")  # words of at least 1  # fmt: skip
MOST = {"row": 1 << 24, "piece": 1 << 24, "d": 1024, "passes": 16, "arrays": 16, "load": 64, "level": 4, "shared": 1 << 24,
        "set": 1 << 40}  # fmt: skip
SIZES = ("shared", "set")  # words that may have a unit
CACHES = tuple(f"{level}.{key}" for level in ("l1", "l2") for key in ("size", "ways"))  # keys that hits by hand leave out


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelInWords:
    """A kernel for one SM.

    shape: sides of its tile, 1 for one that it does not have; depth: k of a product, keys of an attention
    derived: levels whose share of hits is that of simulated caches
    """

    name: str
    shape: tuple[int, int, int]
    words: Mapping[str, float]
    depth: int
    derived: tuple[str, ...] = ()

    def whole(self, word: str) -> int:
        """A word that counts."""
        return int(self.words[word])

    @property
    def source(self) -> Source:
        """Where operands come from, by the shares that the caches have."""
        return Source(past_l1=1.0 - min(1.0, self.words.get("l1", 0.0)), past_l2=1.0 - min(1.0, self.words["l2"]))

    def access(self, machine: Machine) -> dict[str, int]:
        """What an access of a warp touches."""
        return warp_access(machine.warp, self.whole("stride"), self.whole("bytes"), machine.sector)

    @property
    def macs(self) -> float:
        """Multiply-accumulates of a CTA: of one product, or of the two of an attention."""
        if self.name not in TILED:
            return 0
        step = self.shape[1 if self.name == "attention" else 2]
        side = 2 * self.words["d"] if self.name == "attention" else self.shape[1]
        return self.shape[0] * side * (-(-self.depth // step) * step)


def simulate_sm(spec: Spec, kernel: str, *, clock: float, depth: int = 512, waves: int = 2, precision: str = "fp32",
                scheduler: str = "gto", record: int = 0, fast: bool | None = None,
                memory_clock: float | None = None) -> SimulatedSm:  # fmt: skip
    """Run `waves` waves of CTAs of a kernel on one SM.

    kernel: `gemm 128x128x8 threads=256`, `attention 128x64 d=128`, `norm row=4096` or `stream read=1 write=1 bytes=16`; the words
    are those of `WORDS`
    clock: core clock [Hz]; depth: k of a product, keys of an attention; precision: of their operands
    scheduler: gto (greedy, then the warp that issued longest ago) or lrr
    record: instructions to keep, from the first on; memory_clock: the usual one if not given [Hz]

    Raises ArgumentError for words that make no kernel, Unsupported for a device without the keys of its SM.
    """
    device, asked = sm_of(spec, memory_clock), parsed(kernel, depth)
    tensor = asked.name in TILED and asked.shape[0] > 1 and device.has_tensor(precision)
    rate = float(device.pipe(precision)) if tensor else 0.0
    machine = machine_of(device, clock, tensor_rate=rate, covered=asked.words.get("set", 0.0))
    asked = with_hits(device, machine, asked, rate)
    program = KERNELS[asked.name](machine, asked, rate)
    on = prepared(machine, program)
    if on.held < 1:
        raise ArgumentError(f"kernel {kernel}: no CTA fits an SM of {spec.identity.id}")
    result = run(on, waves * on.held, greedy=scheduler == "gto", record=record, fast=fast)
    macs, seconds, sms = result.ctas * asked.macs, result.clocks / clock, int(float(device.sm.count))
    energy = _energy(device, on, result, clock, precision, default())
    return SimulatedSm(
        **use_of(on, result, seconds, STALLED), hardware=spec.identity.id, kernel=kernel, clock_hz=clock, scheduler=scheduler,
        on=on, result=result, ctas=result.ctas, time_s=seconds, sms=sms, energy_j=energy,
        peak_share=macs / (result.clocks * (rate or float(device.rate.fp32))) if macs else None,
        power_w=sum(energy.values()) * sms / seconds,
        hits={level.upper(): asked.words[level] for level in ("l1", "l2") if level in asked.words},
        addresses=asked.access(machine) if "stride" in asked.words else {},
        unread=tuple(key for key in CACHES if key in changes(spec) and key[:2] not in asked.derived),
    )  # fmt: skip


def sm_of(spec: Spec, memory_clock: float | None) -> Gpu:
    """The device of a spec at a memory clock [Hz], which must have SMs."""
    device = at_memory_clock(spec.device, memory_clock_share(spec, memory_clock))
    if not isinstance(device, Gpu):
        raise ArgumentError(f"hw {spec.identity.id}: is a {spec.kind.upper()}, which has no SM")
    return device


def parsed(kernel: str, depth: int = 512, table: Mapping[str, Mapping[str, float]] = WORDS, hint: str = EXAMPLE) -> KernelInWords:
    """The kernel of a text, or what else a `table` has: words by name, with what they are if not given.

    >>> parsed("gemm 128x64x8 threads=128").shape
    (128, 64, 8)
    """
    name, *rest = kernel.split() or [""]
    if name not in table:
        raise UnknownName("kernel" if table is WORDS else "curve", name, list(table), hint=hint)
    shape, words = (1, 1, 1), dict(table[name])
    for part in rest:
        key, equals, text = part.partition("=")
        if not equals and name in TILED:
            shape = _tile(part, kernel, TILED[name])
        elif key not in words:
            raise ArgumentError(f"kernel {kernel}: no word {key!r}; nearest: {near_words(key, words) or 'none'}")
        else:
            words[key] = _number(text, key, kernel)
    if name in TILED and shape == (1, 1, 1):
        raise ArgumentError(f"kernel {kernel}: {name} has a tile of {TILED[name]}")
    return KernelInWords(name=name, shape=shape, words=words, depth=depth)


def _tile(text: str, kernel: str, form: str) -> tuple[int, int, int]:
    """The sides of a tile; 1 for one that its form does not have."""
    sides, wanted = text.split("x"), form.rpartition(" ")[2].count("x") + 1
    if len(sides) != wanted or not all(side.isdecimal() and 0 < int(side) <= 1024 for side in sides):
        raise ArgumentError(f"kernel {kernel}: {text!r} is no tile of {form}")
    rows, columns, depth = map(int, (*sides, "1")[:3])
    return rows, columns, depth


def _number(text: str, key: str, kernel: str) -> float:
    least, most = int(key in ONE), MOST.get(key, 65536)
    with suppress(ValueError):
        if least <= (value := quantity(text, "B") if key in SIZES and text[-1:] == "B" else float(text)) <= most:
            return value
    raise ArgumentError(f"kernel {kernel}: {key}={text} is no number from {least} to {most}")


def _gemm(machine: Machine, k: KernelInWords, rate: float) -> Program:
    (rows, columns, depth), stages, size = k.shape, k.whole("stages"), k.words["bytes"]
    tile = TiledProduct(
        m=rows, n=columns, k=depth, threads=k.whole("threads"), registers=k.whole("registers"), operand=size,
        shared=(rows + columns) * depth * size * stages, depth=k.depth, a=k.source, b=k.source, stages=stages,
    )  # fmt: skip
    return on_tensor_cores(machine, tile) if rate else on_lanes(machine, tile)


def _stream(machine: Machine, k: KernelInWords, rate: float) -> Program:
    program, access = element_wise(
        machine, reads=k.whole("read"), writes=k.whole("write"), lane_bytes=k.whole("bytes"), per_thread=k.whole("loads"),
        arithmetic=k.whole("flop"), special=k.whole("special"), threads=k.whole("threads"), registers=k.whole("registers"),
        sources=(k.source,),
    ), k.access(machine)  # fmt: skip
    if k.words["stride"] == 1.0:
        return program
    size, turns = access["sectors"] * machine.sector, max(access["bank turns"], access["tag turns"])
    far = {layout.LOAD: max(turns, size / machine.l1_bandwidth), layout.STORE: -1.0}
    return replace(program, instructions=tuple(replace(i, size=size, port=far[i.kind]) if i.kind in far else i
                                               for i in program.instructions))  # fmt: skip


def _attention(machine: Machine, k: KernelInWords, rate: float) -> Program:
    (queries, keys, _), overlapped, size, wide = k.shape, k.words["overlapped"] > 0, k.words["bytes"], k.whole("d")
    tile = AttentionTile(
        m=queries, n=wide, k=keys, threads=k.whole("threads") + COPIERS * overlapped, registers=k.whole("registers"),
        shared=(queries + 2 * (1 + overlapped) * keys) * wide * size, blocks=-(-k.depth // keys), operand=size,
        keys=k.source, overlapped=overlapped, direct=overlapped, copies=machine.copies != "none",
    )  # fmt: skip
    return attend(machine, tile, rate)


def _rows(machine: Machine, k: KernelInWords) -> Rows:
    return Rows(
        row=k.whole("row"), piece=int(k.words["piece"] or k.words["row"]), value=k.words["bytes"], lane=k.whole("load"),
        arrays=k.whole("arrays"), passes=k.whole("passes"), arithmetic=k.whole("flop"), special=k.whole("special"),
        warp=machine.warp, again=k.source,
    )  # fmt: skip


def with_hits(device: Gpu, machine: Machine, k: KernelInWords, rate: float) -> KernelInWords:
    """The kernel with the shares of hits that its words leave open: those of its set, which all SMs read again and again, of the
    rows of a norm, of which each SM has its own, or of the operands of a whole product of m x n.
    """
    derived = tuple(level for level in ("l1", "l2") if isnan(k.words.get(level, 0.0)))
    if not derived:
        return k
    usual = replace(k, words={**k.words, **dict.fromkeys(derived, float(k.name == "gemm"))})
    if not (k.name == "norm" or k.words.get("set") or k.words.get("m")):
        return usual
    held, sms, size = resident(machine, KERNELS[k.name](machine, usual, rate)), int(float(device.sm.count)), k.words["bytes"]
    if k.name == "gemm":
        m, n = (max(k.whole(word), side) for word, side in zip("mn", k.shape, strict=False))
        rows, columns, _ = k.shape
        depth, each = min(k.depth, DEEP), int(size)
        product = Product(m=m, n=n, k=depth, count=1, tile_m=rows, tile_n=columns, a=by_columns(A, m, depth, rows, each),
                          b=by_columns(B, n, depth, columns, each), result=matrix_result(C, m, n, rows, columns, each))
        found = launch_traffic(product, max(1, held) * sms, hierarchy_of(device, sms), n * depth * size)
        hits = {"l2": 1.0 - found.dram_read / (found.l2_bytes - m * n * size)}  # what is written passes the L1
    elif k.name == "norm":
        r = _rows(machine, usual)
        hits = walked(hierarchy_of(device, sms), held * rows_of_cta(r) * r.row * r.value * r.arrays, size)
    else:
        hits = walked(hierarchy_of(device), k.words["set"], size * k.words["stride"])
    return replace(k, words={**k.words, **{level: hits[level] for level in derived}}, derived=derived)


def walked(hierarchy: Hierarchy, size: float, step: float) -> dict[str, float]:
    """The share of the requests to each level that hit it in the second round over a set of each core, from address to address.

    size: of a set [B]; step: between two addresses [B]
    """
    grain = hierarchy.line if step <= hierarchy.sector else hierarchy.sector
    most = max(BEYOND * level.lines // hierarchy.instances(i) for i, level in enumerate(hierarchy.levels))
    place = np.arange(min(most, -(-size // max(grain, step))), dtype=np.int64) * int(max(grain, step))
    own, cores = int(-(-size // hierarchy.line) * hierarchy.line), np.arange(hierarchy.cores)
    around = Accesses(address=(place[:, None] + own * cores).ravel(), size=grain, core=np.tile(cores, len(place)))
    state, counts = Simulation(hierarchy), []
    for _ in range(2):
        for part in chunks([around]):
            state.feed(part)
        counts.append(state.counts)
    return {after.name.lower(): 1.0 - (after.misses - before.misses) / max(1, after.requests - before.requests)
            for before, after in zip(*counts, strict=True)}  # fmt: skip


KERNELS: dict[str, Callable[[Machine, KernelInWords, float], Program]] = {
    "gemm": _gemm, "attention": _attention, "stream": _stream,
    "norm": lambda machine, k, rate: row_sums(machine, _rows(machine, k), registers=k.whole("registers")),
}  # fmt: skip


def _energy(device: Gpu, on: Prepared, result: SmRun, clock: float, precision: str, constants: Calibration) -> dict[str, float]:
    """Energy of one SM by component [J], with its share of the board's idle power and leakage while all SMs do the same.

    clock: core clock [Hz]; precision: of the operands of tensor cores

    Multiply-accumulates of tensor cores have the energy of their format, with registers and shared memory in it. Instructions of
    the lanes for fp32, integers and special functions have that of a lane for each thread, and the bytes of shared memory that
    feed lanes, of the L2 and of memory their own: so a product on lanes with smaller tiles of a thread takes more for each
    multiply-accumulate. No power limit lowers the clock.
    """
    machine, sms = on.machine, first_of(device.sm.count)
    counts = executed(on, result)
    threads = {pipe: machine.warp * sum(count for count, i in counts if i.pipe == pipe) for pipe in (FP32, INT, SPECIAL)}
    whole = machine.mma is not None and machine.mma.issue == "thread"  # one product takes the cores of all partitions
    rates = {layout.DEFERRED: machine.tensor_rate} if whole else {}
    macs = sum(count * i.clocks * rates.get(i.kind, machine.lanes[TENSOR]) for count, i in counts if i.pipe == TENSOR)
    volt = voltage(clock, device, constants)
    one = unit_energies(device, volt, node_energy(device, constants), constants)
    fed = 0.0 if macs else result.shared * one["shared"] + threads.pop(FP32) * one["fp32"] if result.shared else 0.0
    cost = Cost(
        bounds={}, busy_s=_one(result.clocks / clock), overhead_s=_one(0.0), dram_bytes=_one(sms * result.dram),
        cache_bytes=_one(sms * result.l2),
        work={"macs": _one(sms * macs), "issues": _one(sms * sum(threads.values())), "units": _one(sms)},
    )  # fmt: skip
    parts = spent(cost, device, precision, clock, np.inf, constants)
    found = {name: parts[name].item() / sms for name in COMPONENTS}
    return found | {"arithmetic": found["arithmetic"] + first_of(fed)}


def _one(value: float) -> Array:
    return np.full((1, 1), value)
