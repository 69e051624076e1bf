"""The programs of lowered kernels, and their time on a GPU: a few CTAs of one SM are simulated, the grid follows by waves."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from archsim.cost import sm, traffic
from archsim.cost.cost import family_efficiency
from archsim.cost.gpu import GpuTerms
from archsim.cycle.element_wise import element_wise
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.product import TiledProduct, on_lanes, on_tensor_cores
from archsim.cycle.program import Program, Source
from archsim.cycle.run import Prepared, prepared, run

TRIPS = 6, 14  # of a loop: time grows by the same for every further trip
Known = MutableMapping[bytes, float]  # clocks by program, machine, CTAs and trips
STEPS = 64  # to which shares of hits are rounded, so that kernels that hardly differ are simulated once
MOST_ARITHMETIC = 64  # instructions of a thread between its loads and its stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """How many CTAs run a program, and on how many SMs."""

    ctas: int
    sms: int

    @property
    def busiest(self) -> int:
        """CTAs of the SM that has most."""
        return ceil(self.ctas / self.sms)


def kernel_clocks(on: Prepared, grid: Grid, known: Known) -> float:
    """Clocks of a launch: those of the busiest SM.

    first wave + (waves - 1) further wave + tail [clk]

    Each is a difference between simulations of one wave, of two, and of one with the tail behind it, of which loops run 6 and 14
    times; further trips take what these eight took each.
    """
    held = max(1, min(on.held, grid.busiest))
    waves, tail = divmod(grid.busiest, held)
    first = _clocks(on, held, known)
    if grid.busiest == held:
        return first
    total = first
    if waves > 1:
        total += (waves - 1) * (_clocks(on, 2 * held, known) - first)
    if tail:
        total += _clocks(on, held + tail, known) - first
    return total


def _clocks(on: Prepared, ctas: int, known: Known) -> float:
    few, more = TRIPS
    trips = on.program.trips
    if trips <= more:
        return simulated(on, ctas, trips, known)
    short, long = simulated(on, ctas, few, known), simulated(on, ctas, more, known)
    return long + (trips - more) * (long - short) / (more - few)


def simulated(on: Prepared, ctas: int, trips: int, known: Known) -> float:
    """Clocks of some CTAs on one SM, each loop `trips` times; what is simulated is added to what is `known`."""
    key = on.key + bytes(f"{ctas},{trips}", "ascii")
    if key not in known:
        known[key] = run(on, ctas, trips=trips).clocks
    return known[key]


def simulated_busy(terms: GpuTerms, known: Known, column: int, row: int = 0) -> float | None:
    """Time of one launch of a variant [s], launch gaps left out; None for a kernel that has no program yet.

    known: clocks of what was simulated before, to which new ones are added
    column: of the V variants; row: of the D devices
    """
    kernels, device = terms.kernels, terms.device
    if kernels.exps[column] > 0 or (kernels.matrix[column] == 0 and _has_loop_of_its_own(terms, column)):
        return None
    clock = _at(terms.clock, row, column)
    ctas = int(_at(terms.ctas, row, column))
    sms = int(_at(device.sm.count, row, 0))
    matrix = kernels.matrix[column] > 0
    tensor = bool(sm.on_tensor(kernels, device, terms.precision)[column]) if matrix else False
    rate = _at(device.pipe(terms.precision), row, 0) if tensor else 0.0
    machine = machine_of(device, clock, tensor_rate=rate, sharing=min(sms, ctas))
    if matrix:
        program = _product(terms, column, row, machine, tensor, rate)
    else:
        program = _pass(terms, column, row, machine)
        ctas = ceil(_at(kernels.items, 0, column) / program.threads)
    clocks = kernel_clocks(prepared(machine, program), Grid(ctas=max(1, ctas), sms=sms), known)
    efficiency = family_efficiency(kernels, terms.constants)[column] if matrix else 1.0
    return clocks / clock / efficiency


def _has_loop_of_its_own(terms: GpuTerms, column: int) -> bool:
    """Whether an element-wise kernel reads its input twice, or goes through windows."""
    k = terms.kernels
    family = family_efficiency(k, terms.constants)[column]
    return bool(family < 1.0 or k.checked[column] > 0 or k.unrolled[column] > 0 or k.dense[column] > 0)


def _product(terms: GpuTerms, column: int, row: int, machine: Machine, tensor: bool, rate: float) -> Program:
    k, cache = terms.kernels, terms.device.l2.size
    loaded = float(_at(terms.ctas, row, column) * _at(traffic.loaded_bytes(k, terms.depth), row, column))
    read = float(_at(traffic.bytes_read(k, terms.in_slots, cache), row, column))
    source = Source(past_l2=_rounded(read / max(loaded, 1.0)))
    tile = TiledProduct(
        m=int(k.tile_m[column]), n=int(k.tile_n[column]), k=int(k.tile_k[column]), threads=int(k.threads[column]),
        registers=int(k.registers[column]), shared=float(k.shared[column]), depth=int(_at(terms.depth, row, column)),
        operand=float(k.operand_a[column]), a=source, b=source,
        stages=max(2, min(6, round(float(k.shared[column]) / max(1.0, _block(terms, column))))),
    )  # fmt: skip
    architecture = terms.device.identity.architecture
    return _tensor(machine, tile, architecture, rate) if tensor else _lanes(machine, tile)


def _block(terms: GpuTerms, column: int) -> float:
    """Bytes of one stage of A and B in shared memory."""
    k = terms.kernels
    return float((k.tile_m[column] * k.operand_a[column] + k.tile_n[column] * k.operand_b[column]) * k.tile_k[column])


@lru_cache(maxsize=4096)
def _tensor(machine: Machine, tile: TiledProduct, architecture: str, rate: float) -> Program:
    return on_tensor_cores(machine, tile, architecture, rate)


@lru_cache(maxsize=4096)
def _lanes(machine: Machine, tile: TiledProduct) -> Program:
    return on_lanes(machine, tile)


def _pass(terms: GpuTerms, column: int, row: int, machine: Machine) -> Program:
    k, cache = terms.kernels, terms.device.l2.size
    items, lane = float(k.items[column]), max(1.0, float(k.operand_b[column]))
    read, written = float(k.a_bytes[column] + k.b_bytes[column]) / items, float(k.c_bytes[column]) / items
    fetched = float(_at(traffic.bytes_read(k, terms.in_slots, cache), row, column))
    source = Source(past_l2=_rounded(fetched / max(1.0, read * items)))
    arithmetic = min(MOST_ARITHMETIC, round(0.5 * float(k.flop[column]) / items))
    reads, writes = round(read / lane), round(written / lane)
    return _element_wise(machine, reads, writes, int(lane), arithmetic, int(k.threads[column]), source)


@lru_cache(maxsize=4096)
def _element_wise(machine: Machine, reads: int, writes: int, lane: int, arithmetic: int, threads: int, source: Source) -> Program:
    return element_wise(machine, reads=reads, writes=writes, lane_bytes=lane, arithmetic=arithmetic, threads=threads,
                        sources=(source,))  # fmt: skip


def _rounded(share: float) -> float:
    return min(1.0, ceil(share * STEPS) / STEPS)


def _at(values: object, row: int, column: int) -> float:
    wide = np.atleast_2d(np.asarray(values, dtype=float))
    return float(wide[min(row, wide.shape[0] - 1), min(column, wide.shape[1] - 1)])
