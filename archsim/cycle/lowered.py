"""From a variant of a lowered kernel to the program that a GPU runs for it, and the CTAs of its launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

import numpy as np

from archsim.cost import sm, traffic
from archsim.cost.gpu import GpuTerms
from archsim.cycle.attention import AttentionTile, attend
from archsim.cycle.machine import Machine, machine_of, missing
from archsim.cycle.passes import Rows, Window, element_wise, row_sums, rows_of_cta, windows
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import FP32, Program, Source
from archsim.cycle.run import resident
from archsim.cycle.tensor import on_tensor_cores
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel

STEPS = 64  # to which shares of hits are rounded, so that kernels that hardly differ are simulated once
MOST_ARITHMETIC = 64  # instructions of a thread between its loads and its stores
EXPONENTIALS = ("softmax",)  # ops with one of each value in each pass
POWERS, POWER = ("lrn",), 2  # ops that raise each result to a power: a logarithm and an exponential


@dataclass(frozen=True, slots=True, kw_only=True)
class GridProgram:
    """What the CTAs of a launch run. memory: traffic below which no launch can be [B]"""

    machine: Machine
    program: Program
    ctas: int
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelVariant:
    """One variant of one kernel: column `column` of the V variants, row `row` of the D devices."""

    terms: GpuTerms
    column: int
    row: int

    def of(self, name: str) -> float:
        """A column of the kernel."""
        return float(getattr(self.terms.kernels, name)[self.column])

    def at(self, values: object) -> float:
        """An element of a quantity [D, V], [D, 1] or [V]."""
        wide = np.atleast_2d(np.asarray(values, dtype=float))
        return float(wide[min(self.row, wide.shape[0] - 1), min(self.column, wide.shape[1] - 1)])

    @property
    def name(self) -> str:
        """That of its kernel."""
        return self._kernel.name

    @property
    def role(self) -> Role:
        """What it does in its op."""
        return self._kernel.role

    @property
    def _kernel(self) -> Kernel:
        k = self.terms.kernels
        return k.kernels[int(k.kernel_of[self.column])]

    @property
    def tensor_rate(self) -> float:
        """Multiply-accumulates per clock of the tensor cores of an SM [FMA/clk]; 0 where the kernel does not use them."""
        device, precision = self.terms.device, self.terms.precision
        tensor = bool(sm.on_tensor(self.terms.kernels, device, precision)[self.column])
        return self.at(device.pipe(precision)) if tensor else 0.0

    @property
    def operands(self) -> Source:
        """Where the operands of tiles are that all CTAs load."""
        loaded = self.at(self.terms.ctas) * self.at(traffic.loaded_bytes(self.terms.kernels, self.terms.depth))
        return Source(past_l2=rounded(self.at(self.terms.reads) / max(loaded, 1.0)))

    @property
    def results(self) -> Source:
        """Where results go: what the L2 holds until it is read, or written again, never leaves it."""
        left = self.at(self.terms.written) * (1.0 - self.at(self.terms.write_back_avoided))
        return Source(past_l2=rounded(left / max(self.of("c_bytes"), 1.0)))

    @property
    def cta(self) -> dict[str, Any]:
        """What a CTA computes and occupies, as its tile has it."""
        sides = {side: int(self.of(f"tile_{side}")) for side in ("m", "n", "k")}
        return {**sides, **self.thread, "shared": self.of("shared")}

    @property
    def thread(self) -> dict[str, Any]:
        """Threads of a CTA, and registers of each."""
        return {name: int(self.of(name)) for name in ("threads", "registers")}

    @property
    def clock(self) -> float:
        """Core clock [Hz]."""
        return self.at(self.terms.clock)

    @property
    def sms(self) -> int:
        """SMs of the device."""
        return int(self.at(self.terms.device.sm.count))

    def machine(self, ctas: float, tensor_rate: float = 0.0) -> Machine:
        """One SM, of as many as would have all CTAs if each had as many as the busiest: others end sooner."""
        busiest = ceil(max(1.0, ctas) / self.sms)
        covered = self.of("a_bytes") + self.of("b_bytes") + self.of("c_bytes")
        sharing = max(1.0, ctas) / busiest
        return machine_of(self.terms.device, self.clock, tensor_rate=tensor_rate, sharing=sharing, covered=covered)


def grid_program(terms: GpuTerms, column: int, row: int = 0) -> GridProgram | None:
    """The program of a variant and the CTAs that run it; None for a kernel that has no program yet."""
    v = KernelVariant(terms=terms, column=column, row=row)
    return next(build(v) for applies, build in BUILDERS if applies(v))


def _none(v: KernelVariant) -> None:
    """No program yet: pooling takes 45 issue slots for a value of a window on Pascal, of which its loop explains some 17."""
    return None


def _product(v: KernelVariant) -> GridProgram:
    terms, ctas, rate, source = v.terms, v.at(v.terms.ctas), v.tensor_rate, v.operands
    machine, (packed, share) = v.machine(ctas, rate), (1.0, 1.0) if rate else _results_on_lanes(v)
    machine = replace(machine, lanes=tuple(n * share if i == FP32 else n for i, n in enumerate(machine.lanes)))
    tile = TiledProduct(
        **v.cta, depth=int(v.at(terms.depth)), operand=v.of("operand_a"),
        operand_b=v.of("operand_b"), points=v.of("work") if v.role is Role.WINOGRAD else 1.0, packed=packed,
        gathered=v.role is Role.CONVOLUTION, a=source, b=source, c=v.results,
        stages=max(2, min(6, round(v.of("shared") / max(1.0, _block(v))))),
        asked=_asked(v),
    )  # fmt: skip
    program = _tensor(machine, tile) if rate else _lanes(machine, tile)
    return GridProgram(machine=machine, program=program, ctas=int(ctas), memory=v.at(terms.dram_bytes))


def _attention(v: KernelVariant) -> GridProgram:
    """A tile of queries; `exps` is the share of the keys that a mask leaves, once for each product that is computed anew."""
    terms, ctas = v.terms, v.at(v.terms.ctas)
    rate = v.tensor_rate if v.of("tile_m") > 1 else 0.0
    machine = v.machine(ctas, rate)
    tile = AttentionTile(
        **v.cta, operand=v.of("operand_b") / v.of("work"),
        blocks=max(1, round(v.at(terms.depth) / v.of("tile_k") * v.of("exps"))),
        keys=v.operands, results=v.results, overlapped=v.of("overlapped") > 0,
        direct=v.of("overlapped") > 0, copies=machine.copies != "none",
    )  # fmt: skip
    if tile.m == 1:  # a lone query has the keys of its head divided among the SMs that are free
        parts = min(tile.blocks, max(1, v.sms // int(ctas)))
        tile, ctas = replace(tile, blocks=ceil(tile.blocks / parts)), ctas * parts
        machine = v.machine(ctas, rate)
    return GridProgram(machine=machine, program=_attend(machine, tile, rate), ctas=int(ctas), memory=v.at(terms.dram_bytes))


def _results_on_lanes(v: KernelVariant) -> tuple[float, float]:
    """Results of an instruction, two of halves and four of dp4a, and the share of the lanes that take its operands."""
    device, product = v.terms.device, bool(sm.is_product(v.terms.kernels)[v.column])
    packed = sm.packed(device, v.terms.precision) if product else 1.0
    return packed, v.at(device.pipe(v.terms.precision)) / v.at(device.rate.fp32) / packed if product else 1.0


def _asked(v: KernelVariant) -> tuple[float, float]:
    """The shares of a tile's rows and columns that a CTA asks the L2 for, as `traffic.loaded_bytes` counts them."""
    rows, columns = (min(1.0, v.of(side) / v.of(f"tile_{side}")) for side in ("m", "n"))
    from_a, from_b = rows * v.of("tile_m") * v.of("operand_a"), columns * v.of("tile_n") * v.of("operand_b")
    shared = v.of("cluster")
    return (rows / shared, columns) if from_a > from_b else (rows, columns / shared)


def _block(v: KernelVariant) -> float:
    """Bytes of one stage of A and B in shared memory."""
    return (v.of("tile_m") * v.of("operand_a") + v.of("tile_n") * v.of("operand_b")) * v.of("tile_k")


remembered = lru_cache(maxsize=4096)  # each of these has its own
_tensor, _attend, _lanes = remembered(on_tensor_cores), remembered(attend), remembered(on_lanes)
_element_wise, _window_program, _row_sums = remembered(element_wise), remembered(windows), remembered(row_sums)


def _pass(v: KernelVariant) -> GridProgram:
    """A load of each tensor for a thread; in a product of one row those that the SMs hold at once go through the whole matrix."""
    items, lane, loads = v.of("items"), max(1.0, v.of("operand_b")), v.at(v.terms.ctas)
    ctas = min(loads, v.at(v.terms.in_slots)) if v.of("dense") else loads
    machine = v.machine(ctas)
    read, written = (v.of("a_bytes") + v.of("b_bytes")) / items, v.of("c_bytes") / items
    fetched = v.at(v.terms.reads)
    source = Source(past_l2=rounded(fetched / max(1.0, read * items)))
    program = _element_wise(
        machine, reads=round(read / lane), writes=round(written / lane), lane_bytes=int(lane),
        arithmetic=min(MOST_ARITHMETIC, round(0.5 * v.of("flop") / items)), threads=int(v.of("threads")),
        sources=(source, v.results), trips=ceil(loads / ctas),
    )  # fmt: skip
    return GridProgram(machine=machine, program=program, ctas=int(ctas), memory=v.at(v.terms.dram_bytes))


def _rows(v: KernelVariant) -> GridProgram:
    """Rows that fit a cache beside those of all other CTAs are found there when they are read again."""
    device = v.terms.device
    passes = max(1.0, v.of("row_reads"))
    size = v.of("b_bytes") / passes  # of all arrays that are read, once
    values = v.of("row_count") * v.of("row") or v.of("c_bytes") * v.of("repeat") / v.of("operand_a")
    count = max(1, round(values / v.of("row")))
    arrays = max(1, round(size / (values * v.of("operand_a"))))
    cache = v.at(device.l2.size)
    first = Source(past_l2=1.0 if size > traffic.RESIDENT_SHARE * cache else 0.0)
    rows = Rows(
        row=int(v.of("row")), piece=int(v.of("row_piece")), value=v.of("operand_a"), lane=int(v.of("operand_b")), arrays=arrays,
        passes=round(passes), arithmetic=ceil(0.5 * v.of("flop") * v.of("repeat") / values), first=first,
        stored=Source(past_l2=rounded(first.past_l2 * min(1.0, v.of("c_bytes") / (values * v.of("operand_a"))))),
        special=1 if v.name in EXPONENTIALS else 0, warp=int(v.at(device.sm.warp or 32)),
    )  # fmt: skip
    ctas = ceil(count / rows_of_cta(rows))
    machine = v.machine(ctas)
    own = rows_of_cta(rows) * rows.row * rows.value * arrays
    held = min(resident(machine, _row_sums(machine, rows)), ceil(ctas / v.sms))
    ways = None if device.l2.ways is None else v.at(device.l2.ways)
    again = Source(past_l1=rounded(missing(held * own, v.at(device.l1.size))),
                   past_l2=rounded(missing(min(ctas, held * v.sms) * own, cache, ways=ways)))  # fmt: skip
    program = _row_sums(machine, replace(rows, again=again))
    repeated = (round(passes) - 1) * again.past_l1 * again.past_l2
    memory = size * (first.past_l2 + repeated) + v.of("c_bytes")
    return GridProgram(machine=machine, program=program, ctas=ctas, memory=memory)


def _windows(v: KernelVariant) -> GridProgram:
    """A window for each result; what neighbours have read of it is in the L1."""
    covered = v.of("checked") + v.of("unrolled")
    return _window(v, v.of("operand_a"), covered, checked=v.of("checked") > 0,
                   combine=max(1, round(0.5 * v.of("flop") / covered)), special=POWER if v.name in POWERS else 0)  # fmt: skip


def _depthwise(v: KernelVariant) -> GridProgram:
    """A thread sums the taps of its result (depthwise convolution): values and weights from the L1, all of them under way."""
    return _window(v, v.of("operand_b"), 0.5 * v.of("flop"), checked=False, weights=True)


def _window(v: KernelVariant, lane: float, covered: float, **words: Any) -> GridProgram:
    """covered: values of all windows; lane: bytes of each [B]"""
    results = max(1.0, v.of("c_bytes") / lane)
    # values between the windows of neighbours: their square is the input over the result
    step = max(1.0, sqrt(v.of("b_bytes") / max(1.0, v.of("c_bytes"))))
    window = Window(values=max(1, round(covered / results)), lane=int(lane), step=step, **words, **v.thread)
    read = v.of("a_bytes") + v.of("b_bytes")
    fetched = v.at(v.terms.reads)
    loaded = results * window.values * window.lane * window.step
    ctas = ceil(results / window.threads)
    machine = v.machine(ctas)
    held = min(resident(machine, _window_program(machine, window)), ceil(ctas / v.sms))
    own = held * window.threads * window.lane * window.step**2  # of the CTAs that an SM holds: it has to fit the L1 with them
    first = read / max(1.0, loaded)
    past_l1 = first + (1.0 - first) * missing(own, v.at(v.terms.device.l1.size)) if first < 1.0 else 1.0
    inputs = Source(past_l1=rounded(past_l1), past_l2=rounded(fetched / max(1.0, read, past_l1 * loaded)))
    program = _window_program(machine, replace(window, inputs=inputs, results=v.results))
    return GridProgram(machine=machine, program=program, ctas=ctas, memory=v.at(v.terms.dram_bytes))


def rounded(share: float) -> float:
    """A share of hits in whole steps."""
    return min(1.0, ceil(share * STEPS) / STEPS)


# The first whose condition holds writes the program.
BUILDERS: tuple[tuple[Callable[[KernelVariant], bool], Callable[[KernelVariant], GridProgram | None]], ...] = (
    (lambda v: v.of("exps") > 0 and v.of("matrix") > 0, _attention),
    (lambda v: v.of("matrix") > 0, _product),
    (lambda v: v.of("row") > 0, _rows),
    (lambda v: v.of("checked") + v.of("unrolled") > 0 and v.name in POWERS, _windows),
    (lambda v: v.of("checked") + v.of("unrolled") > 0, _none),
    (lambda v: v.name == "depthwise", _depthwise),
    (lambda v: True, _pass),
)
