"""One SM that runs a kernel given in words: what it issues, what stalls it, what it draws from each level of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from archsim.base.errors import ArgumentError, UnknownName, nearest
from archsim.calibration.constants import Calibration, default
from archsim.cost.cost import Array, Cost
from archsim.cost.energy import COMPONENTS, spent
from archsim.cost.switched import node_energy, voltage
from archsim.cost.units import unit_energies
from archsim.cycle import layout
from archsim.cycle.attention import COPIERS, AttentionTile, attend
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import Rows, element_wise, row_sums
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import FP32, INT, SPECIAL, TENSOR, Program, Source
from archsim.cycle.run import Prepared, SmRun, prepared, run
from archsim.cycle.stalls import StalledInstruction, achieved_occupancy, executed, issue_use, occupancy, pipe_use, stalled
from archsim.cycle.tensor import on_tensor_cores
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.device.variant import first_of
from archsim.estimation.clock import at_memory_clock, memory_clock_share

SCHEMA = "archsim-sm/1"
STALLED = 5  # instructions that are named
WORDS: dict[str, dict[str, float]] = {  # of each kernel: what it takes, with what it is if not given
    "gemm": {"threads": 256, "registers": 120, "stages": 2, "bytes": 4, "l2": 1.0},
    "attention": {"d": 128, "threads": 128, "registers": 255, "bytes": 2, "overlapped": 0, "l2": 1.0},
    "norm": {"row": 1024, "piece": 0, "passes": 2, "arrays": 1, "bytes": 4, "load": 4, "flop": 4, "special": 0, "registers": 32,
             "l1": 0.0, "l2": 0.0},
    "stream": {"read": 1, "write": 1, "bytes": 4, "loads": 1, "flop": 0, "special": 0, "threads": 256, "registers": 32,
               "l1": 0.0, "l2": 0.0},
}
TILED = {"gemm": "rows, columns and depth up to 1024, like 128x128x8", "attention": "queries and keys up to 1024, like 128x64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSm:
    """A run of a kernel on one SM.

    kernel: as it was asked for; clock_hz: core clock [Hz]; scheduler: gto or lrr
    occupancy: warps at once over those that the SM can hold; achieved_occupancy: on average
    stalled: the instructions at which warps wait most
    issue_use: issue slots that issued; pipe_use: of each pipe, the share of its clocks that were taken, at most 1
    peak_share: multiply-accumulates over what the pipe that multiplies could have done; None where nothing is multiplied
    bandwidth_bps: bytes per second of one SM by level [B/s]
    energy_j: of one SM by component, with its share of what all SMs draw together [J]
    """

    hardware: str
    kernel: str
    clock_hz: float
    scheduler: str
    machine: Machine
    program: Program
    result: SmRun
    occupancy: float
    achieved_occupancy: float
    issue_use: float
    pipe_use: Mapping[str, float]
    stalled: tuple[StalledInstruction, ...]
    peak_share: float | None
    bandwidth_bps: Mapping[str, float]
    energy_j: Mapping[str, float]
    sms: int

    @property
    def begins(self) -> float:
        """The clock of the first instruction."""
        return self.result.record[0][0] if self.result.record else 0.0

    @property
    def time_s(self) -> float:
        """Time of the simulated CTAs [s]."""
        return self.result.clocks / self.clock_hz

    @property
    def power_w(self) -> float:
        """Power of the device if all SMs do the same, and no limit lowers the clock [W]."""
        return sum(self.energy_j.values()) * self.sms / self.time_s


ONE = ("threads", "registers", "bytes", "loads", "stages", "d", "row", "passes", "arrays", "load")  # words of at least 1
MOST = {"row": 1 << 24, "piece": 1 << 24, "d": 1024, "passes": 16, "arrays": 16, "load": 64}  # else 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelInWords:
    """A kernel for one SM. shape: sides of its tile, 1 for one that it does not have; depth: k of a product, keys of an attention
    """

    name: str
    shape: tuple[int, int, int]
    words: Mapping[str, float]
    depth: int

    def whole(self, word: str) -> int:
        """A word that counts."""
        return int(self.words[word])

    @property
    def source(self) -> Source:
        """Where operands come from, by the shares that the caches have."""
        return Source(past_l1=1.0 - min(1.0, self.words.get("l1", 0.0)), past_l2=1.0 - min(1.0, self.words["l2"]))

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
    device = at_memory_clock(spec.device, memory_clock_share(spec, memory_clock))
    if not isinstance(device, Gpu):
        raise ArgumentError(f"hw {spec.identity.id}: is a {spec.kind.upper()}, which has no SM")
    asked = parsed(kernel, depth)
    tensor = asked.name in TILED and asked.shape[0] > 1 and device.has_tensor(precision)
    rate = float(device.pipe(precision)) if tensor else 0.0
    machine = machine_of(device, clock, tensor_rate=rate)
    program = KERNELS[asked.name](machine, asked, rate)
    on = prepared(machine, program)
    if on.held < 1:
        raise ArgumentError(f"kernel {kernel}: no CTA fits an SM of {spec.identity.id}")
    result = run(on, waves * on.held, greedy=scheduler == "gto", record=record, fast=fast)
    macs, seconds = result.ctas * asked.macs, result.clocks / clock
    levels = {"shared memory": result.shared, "L1": result.l1, "L2": result.l2, "memory": result.dram}
    return SimulatedSm(
        hardware=spec.identity.id, kernel=kernel, clock_hz=clock, scheduler=scheduler, machine=machine, program=program,
        result=result, occupancy=occupancy(on, result), achieved_occupancy=achieved_occupancy(on, result),
        issue_use=issue_use(on, result), pipe_use=pipe_use(on, result), stalled=stalled(program, result, STALLED),
        peak_share=macs / (result.clocks * (rate or float(device.rate.fp32))) if macs else None,
        bandwidth_bps={level: size / seconds for level, size in levels.items() if size}, sms=int(float(device.sm.count)),
        energy_j=_energy(device, on, result, clock, precision, default()),
    )  # fmt: skip


def parsed(kernel: str, depth: int = 512) -> KernelInWords:
    """The kernel of a text.

    >>> parsed("gemm 128x64x8 threads=128").shape
    (128, 64, 8)
    """
    name, *rest = kernel.split() or [""]
    if name not in KERNELS:
        raise UnknownName("kernel", name, list(KERNELS), hint="like 'gemm 128x128x8 threads=256' or 'stream read=1 write=1'")
    shape, words = (1, 1, 1), dict(WORDS[name])
    for part in rest:
        key, equals, text = part.partition("=")
        if not equals and name in TILED:
            shape = _tile(part, kernel, TILED[name])
        elif key not in words:
            near = ", ".join(nearest(key, words) or words)
            raise ArgumentError(f"kernel {kernel}: no word {key!r}; nearest: {near}")
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
        if least <= (value := float(text)) <= most:
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
    return element_wise(
        machine, reads=k.whole("read"), writes=k.whole("write"), lane_bytes=k.whole("bytes"), per_thread=k.whole("loads"),
        arithmetic=k.whole("flop"), special=k.whole("special"), threads=k.whole("threads"), registers=k.whole("registers"),
        sources=(k.source,),
    )  # fmt: skip


def _attention(machine: Machine, k: KernelInWords, rate: float) -> Program:
    (queries, keys, _), overlapped, size, wide = k.shape, k.words["overlapped"] > 0, k.words["bytes"], k.whole("d")
    tile = AttentionTile(
        m=queries, n=wide, k=keys, threads=k.whole("threads") + COPIERS * overlapped, registers=k.whole("registers"),
        shared=(queries + 2 * (1 + overlapped) * keys) * wide * size, blocks=-(-k.depth // keys), operand=size,
        keys=k.source, overlapped=overlapped, direct=overlapped, copies=machine.copies != "none",
    )  # fmt: skip
    return attend(machine, tile, rate)


def _norm(machine: Machine, k: KernelInWords, rate: float) -> Program:
    rows = Rows(
        row=k.whole("row"), piece=int(k.words["piece"] or k.words["row"]), value=k.words["bytes"], lane=k.whole("load"),
        arrays=k.whole("arrays"), passes=k.whole("passes"), arithmetic=k.whole("flop"), special=k.whole("special"),
        warp=machine.warp, again=k.source,
    )  # fmt: skip
    return row_sums(machine, rows, registers=k.whole("registers"))


KERNELS: dict[str, Callable[[Machine, KernelInWords, float], Program]] = {
    "gemm": _gemm, "attention": _attention, "norm": _norm, "stream": _stream,
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
