"""What the caches of a device do with a program's addresses, or with those of one layer of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from archsim.base.errors import ArgumentError, UnknownName, Unsupported
from archsim.cache.access import Accesses, NestedLoop, addresses, chunks, runs_of
from archsim.cache.cpu_products import blocked_product, blocks_of, cpu_nest
from archsim.cache.distance import MissCurve, StackDistances
from archsim.cache.hierarchy import Hierarchy, hierarchy_of
from archsim.cache.kernel import CLEAN_VICTIM
from archsim.cache.layers import WAVES, product_of
from archsim.cache.roles import KernelShape, nest_of
from archsim.cache.simulate import LevelCount, Simulation
from archsim.cache.tiles import waves
from archsim.cache.trace_file import read
from archsim.cycle.core.misses import ProgramTime
from archsim.device.device import PRECISION_BYTES, Cpu, Device, Gpu, with_caches
from archsim.device.spec import Spec
from archsim.device.variant import device_fields
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request
from archsim.explain.simulated import ProgramClock
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel

T = TypeVar("T")
Tell = Callable[[float], None] | None  # hears the share of the work that is done
SCHEMA = "archsim-cache/1"
FOLLOWED = 256  # accesses of a picture of sets and ways
LONGEST = 4_000_000  # runs of bytes of a nest that are simulated
MOST_ACCESSES = 10_000_000_000  # some minutes of a compiled simulation, hours of a plain one


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLevel:
    """One level: what it counted, how often it missed and why, and what it asked of the level below.

    `cold`, `capacity` and `conflict` add up to the misses; a negative conflict says that a fully associative cache of this size
    would miss more. They are None where a line is not fetched whole, and for a level of several instances.
    """

    name: str
    size: int
    ways: int
    line: int
    instances: int
    count: LevelCount
    miss_rate: float
    cold: int | None
    capacity: int | None
    conflict: int | None
    bytes_per_access: float
    demand_Bps: float
    bandwidth_Bps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A line in its place of the L1, from the access `since` that brought it until the one that took its place, or the last one.

    address: of its first byte; accesses are counted from 0
    """

    set: int
    way: int
    address: int
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """The whole answer. `curve` has (capacity [B], misses of a fully associative LRU cache, misses to be expected in sets of as
    many ways as it has) of what level `curve_of`, the first of a single instance, is asked.

    `demand_Bps` of a level is its traffic with the one below over `time_s`: that which the model predicts for the kernel, or one
    access a clock for a program's trace, or `timing` where that is asked for.
    """

    source: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    cores: int
    accesses: int
    simulated: float
    time_s: float
    timed_by: str
    levels: tuple[CacheLevel, ...]
    dram_bytes: float
    curve_of: str
    curve: tuple[tuple[int, int, float], ...]
    uses: int
    notes: tuple[str, ...]
    timing: ProgramTime | None = None
    stays: tuple[Stay, ...] = ()


def of_trace(
    spec: Spec, path: str | Path, *, policy: str = "lru", instructions: bool = False, curve: bool = True, timed: bool = False,
    sets: bool = False, fast: bool | None = None, tell: Tell = None,
) -> CacheReport:  # fmt: skip
    """A program's trace through the caches of one core; `instructions`, if wanted, through those of a second one.

    timed: whether to say how long a core takes for it, too; sets: which lines the L1 holds during the first `FOLLOWED` accesses

    Raises MissingFile, InputError; with `timed` ArgumentError for a GPU, Unsupported for a core without its pipeline's keys.
    """
    hierarchy = hierarchy_of(spec.device, 2 if instructions else 1, policy)
    clock = ProgramClock(spec) if timed else None
    parts = read(path, instructions, tell) if clock is None else clock.data(read(path, True, tell), instructions)
    state, watches = _through(hierarchy, parts, curve, fast, clock)
    timing = None if clock is None else clock.time()
    time_s = state.accesses / float(spec.device.default_clock) if timing is None else timing.time_s
    by = "one access a clock" if timing is None else "accesses overlap within the reorder buffer"
    notes = ["time: one access a clock, the most that a program can ask for"] if timing is None else list(_timed(timing))
    report = _answer(spec, hierarchy, state, watches, source=str(path), time_s=time_s, timed_by=by, notes=notes)
    return replace(report, timing=timing, stays=stays(hierarchy, read(path, instructions)) if sets else ())


def stays(hierarchy: Hierarchy, stream: Iterable[Accesses]) -> tuple[Stay, ...]:
    """Which line lies in which set and way of the L1 during the first `FOLLOWED` accesses, by set and way.

    A line takes the place of the one that leaves its set for it, or else the first that is free.

    >>> from archsim.cache.hierarchy import Level
    >>> one = Hierarchy(levels=(Level(name="L1", size=128, ways=1),))
    >>> [(stay.set, stay.address, stay.since, stay.until) for stay in stays(one, [Accesses(address=np.array([0, 64, 128, 0]))])]
    [(0, 0, 0, 2), (0, 128, 2, 3), (0, 0, 3, 4), (1, 64, 1, 4)]
    """
    state, there, found = Simulation(hierarchy, False), dict[tuple[int, int], tuple[int, int]](), []
    singly = islice((part for accesses in stream for part in chunks([accesses], 1)), FOLLOWED)
    for at, one in enumerate(singly):
        state.feed(one)
        tags = state.cells(0)[:, 0]
        held = {(int(s), int(tags[s, i])) for s, i in np.argwhere(tags >= 0)}
        for s, line in [place for place in there if place not in held]:
            way, since = there.pop((s, line))
            found.append(Stay(set=s, way=way, address=line * hierarchy.line, since=since, until=at))
        for s, line in held - there.keys():
            taken = {way for (other, _), (way, _) in there.items() if other == s}
            there[s, line] = next(way for way in count() if way not in taken), at
    found += [Stay(set=s, way=way, address=line * hierarchy.line, since=since, until=state.accesses)
              for (s, line), (way, since) in there.items()]  # fmt: skip
    return tuple(sorted(found, key=lambda stay: (stay.set, stay.way, stay.since)))


def _timed(timing: ProgramTime) -> Iterator[str]:
    """What the time of a program takes for granted."""
    yield "time: no access needs what another one loads, no branch is mispredicted, instructions are in the L1"
    if not timing.counted:
        yield "time: the trace has no instructions; one for each access"


def of_layer(
    request: Request, layer: str, *, policy: str = "lru", curve: bool = True, fast: bool | None = None,
    tell: Tell = None,
) -> CacheReport:  # fmt: skip
    """The longest kernel of an op, of its matrix products if it has any, as the chosen algorithm and tile address it.

    On a GPU, on all multiprocessors, at most the first `WAVES` waves of CTAs of a product; on a CPU one core. Raises UnknownName
    for an op that is not there, Unsupported for one that moves nothing, ArgumentError for one too long to simulate.
    """
    index = next((i for i, op in enumerate(request.trace.ops) if op.name == layer), None)
    if index is None:
        names = [op.name for op in request.trace.ops]
        raise UnknownName("layer", layer, names, f"`archsim show net {request.network}` prints all")
    device = with_caches(request.device, "caches")
    op, result = request.trace.ops[index], run(request)
    chosen = _moving(result, int(result.lowered.plan_of[index]))
    if not chosen:
        raise Unsupported(f"{layer} moves nothing in stack {request.stack.id}: it has no kernel that reads or writes")
    position, variant = max(chosen, key=lambda pair: float(result.cost.kernel_time_s[0, pair[0]]))
    kernel, element = result.lowered.kernels.kernels[position], PRECISION_BYTES[request.precision]
    time_s = float(result.cost.kernel_time_s[0, position]) / max(kernel.repeat, 1.0)
    work = kernel.m * kernel.n * kernel.k * kernel.count * element
    if kernel.menu and work / 64 > MOST_ACCESSES * 64:
        raise ArgumentError(f"{layer}: about {work / 64:.1g} accesses, more than {MOST_ACCESSES:.0g}; name a smaller --batch")
    shape = KernelShape(op=op, kernel=kernel, element=element, gpu=isinstance(device, Gpu))
    if _is_tiled(kernel):
        found = _of_tiles(result, shape, device, variant, tell) if isinstance(device, Gpu) else _of_blocks(shape, device, tell)
    else:
        found = _of_nest(shape, device, tell)
    hierarchy = hierarchy_of(device, found.cores, policy)
    state, watches = _through(hierarchy, found.parts, curve, fast)
    return _answer(request.spec, hierarchy, state, watches, source=f"{request.network} {layer}", time_s=time_s * found.simulated,
                   timed_by="predicted time of the kernel", notes=[found.note], simulated=found.simulated)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStream:
    """The accesses of a kernel, on how many cores, and which share of the whole they are."""

    parts: Iterable[Accesses]
    cores: int
    simulated: float
    note: str


def _is_tiled(kernel: Kernel) -> bool:
    """Whether a kernel multiplies two matrices in memory, tile by tile or from packed panels."""
    return kernel.menu != "" and kernel.role is not Role.ATTENTION and (kernel.cpu is None or kernel.cpu.packed > 0)


def _of_tiles(result: Any, shape: KernelShape, device: Gpu, variant: int, tell: Tell) -> KernelStream:
    """The first waves of a product on all SMs of a GPU."""
    kernels, kernel = result.lowered.kernels, shape.kernel
    tile = (int(kernels.tile_m[variant]), int(kernels.tile_n[variant]))
    product = product_of(shape.op, kernel, tile, shape.element, int(kernels.split[variant]))
    resident = np.broadcast_to(result.cost.variants.terms.resident, (1, len(kernels.m)))[0, variant]
    slots, cores = int(resident) * int(device.sm.count), int(device.sm.count)
    total = -(-product.ctas // slots)
    return KernelStream(
        parts=chain.from_iterable(_told(islice(waves(product, slots, cores), WAVES), tell, min(total, WAVES))), cores=cores,
        simulated=min(1.0, WAVES * slots / product.ctas),
        note=f"{kernel.name}: {product.ctas} CTAs of {tile[0]}x{tile[1]} in {total} waves, of which {min(total, WAVES)} ran",
    )  # fmt: skip


def _of_blocks(shape: KernelShape, device: Device, tell: Tell) -> KernelStream:
    """A product from packed panels on one core of a CPU."""
    assert isinstance(device, Cpu)
    blocks, kernel = blocks_of(device, shape.element), shape.kernel
    m, n, k = (int(size) for size in (kernel.m, kernel.n, kernel.k))
    steps = -(-n // blocks.columns) * -(-k // blocks.k) * -(-m // blocks.m)
    return KernelStream(
        parts=_told(blocked_product(m, n, k, blocks, shape.element), tell, steps), cores=1, simulated=1.0,
        note=f"{kernel.name}: one product of {m} x {n} x {k} on one core, blocks of {blocks.m} x {blocks.n} x {blocks.k}",
    )  # fmt: skip


def _of_nest(shape: KernelShape, device: Gpu | Cpu, tell: Tell) -> KernelStream:
    """Any other kernel: its loops, of which a long one runs for the first `LONGEST` runs of bytes."""
    nest = nest_of(shape) if isinstance(device, Gpu) else cpu_nest(shape, device, 1.0)
    share = min(1.0, LONGEST / max(1, runs_of(nest.body)))
    first, *others = nest.body
    if share < 1.0 and isinstance(first, NestedLoop):
        trips = max(1, int(first.trips * share))
        share, nest = trips / first.trips, replace(nest, body=(replace(first, trips=trips), *others))
    cores = int(device.sm.count) if isinstance(device, Gpu) else 1
    where = "all multiprocessors" if isinstance(device, Gpu) else "one core"
    short = "" if share == 1.0 else f", of which {100 * share:.2g} % ran"
    note = f"{shape.kernel.name}: the loops of a {shape.kernel.role.value} kernel on {where}{short}"
    parts = _told(addresses(nest, cores), tell, runs_of(nest.body), len)
    return KernelStream(parts=parts, cores=cores, simulated=share, note=note)


def _moving(result: Any, plan: int) -> list[tuple[int, int]]:
    """(kernel, variant) of the matrix kernels that a plan runs; where it has none, of those that move anything."""
    if plan < 0:
        return []
    kernels = result.lowered.kernels
    found = [(i, int(result.cost.choice.variant[0, i])) for i in kernels.places(int(result.cost.option[0, plan]))]
    matrix = [(i, v) for i, v in found if kernels.matrix[v]]
    return matrix or [(i, v) for i, v in found if kernels.kernels[i].a_bytes + kernels.kernels[i].b_bytes
                      + kernels.kernels[i].c_bytes > 0]  # fmt: skip


def _told(stream: Iterable[T], tell: Tell, whole: float, weight: Callable[[T], float] = lambda part: 1.0) -> Iterator[T]:
    """The parts of a stream, after each of which `tell` hears the share of the whole that is done."""
    done = 0.0
    for part in stream:
        yield part
        done += weight(part)
        if tell is not None:
            tell(min(1.0, done / whole))


def _through(
    hierarchy: Hierarchy, parts: Iterable[Accesses], curve: bool, fast: bool | None, clock: ProgramClock | None = None
) -> tuple[Simulation, list[StackDistances | None]]:
    """Run everything; watch the stack distances of every level of one instance, if the curve is wanted, and time it."""
    state = Simulation(hierarchy, fast, watched=clock is not None)
    watches: list[StackDistances | None] = [
        StackDistances(fast) if curve and hierarchy.instances(i) == 1 else None for i in range(len(hierarchy.levels))
    ]
    for part in chunks(parts):
        steps = state.feed(part)
        if clock is not None:
            clock.take(steps)
        for watch, asked in zip(watches, steps, strict=False):
            if watch is not None:
                wanted = asked.kind != CLEAN_VICTIM
                watch.feed(asked.line[wanted], asked.count[wanted])
    return state, watches


def _answer(
    spec: Spec, hierarchy: Hierarchy, state: Simulation, watches: list[StackDistances | None], *, source: str, time_s: float,
    timed_by: str, notes: list[str], simulated: float = 1.0,
) -> CacheReport:  # fmt: skip
    curves = [None if watch is None else watch.curve for watch in watches]
    first, level = next(((c, level) for c, level in zip(curves, hierarchy.levels, strict=True) if c is not None), (None, None))
    levels = tuple([
        _level(i, hierarchy, count, curve, state.accesses, time_s, spec)
        for i, (count, curve) in enumerate(zip(state.counts, curves, strict=True))
    ])  # fmt: skip
    last = state.counts[-1]
    return CacheReport(
        source=source, **device_fields(spec), cores=hierarchy.cores, accesses=state.accesses, simulated=simulated,
        time_s=time_s, timed_by=timed_by, levels=levels, dram_bytes=float(last.bytes_read + last.bytes_written),
        curve=() if first is None or level is None else tuple([
            (lines * hierarchy.line, misses, first.misses_in_sets(max(1.0, lines / level.ways), min(lines, level.ways)))
            for lines, misses in first.points()
        ]), curve_of="" if level is None else level.name, uses=0 if first is None else first.uses,
        notes=(*notes, *hierarchy.assumed),
    )  # fmt: skip


def _level(
    i: int, hierarchy: Hierarchy, count: LevelCount, curve: MissCurve | None, accesses: int, time_s: float, spec: Spec
) -> CacheLevel:
    level, moved = hierarchy.levels[i], count.bytes_read + count.bytes_written
    whole = curve is not None and level.sector in (0, level.line) and level.allocate
    cold = capacity = conflict = None
    if whole and curve is not None:
        cold, ideal = curve.cold, curve.misses(level.lines)
        capacity, conflict = ideal - cold, count.misses - ideal
    return CacheLevel(
        name=level.name, size=level.size, ways=level.ways, line=level.line, instances=hierarchy.instances(i), count=count,
        miss_rate=count.misses / max(count.requests, 1), cold=cold, capacity=capacity, conflict=conflict,
        bytes_per_access=moved / max(accesses, 1), demand_Bps=moved / time_s if time_s else 0.0,
        bandwidth_Bps=_below(spec, i, hierarchy),
    )  # fmt: skip


def _below(spec: Spec, i: int, hierarchy: Hierarchy) -> float:
    """Bandwidth of what is below a level [B/s]: of the next cache at the default clock, or of memory."""
    device = spec.device
    if i + 1 == len(hierarchy.levels):
        return float(device.memory.bandwidth * device.memory.achievable)
    part = getattr(device, f"l{i + 2}")
    return float(part.bandwidth * device.default_clock) * (1 if isinstance(device, Gpu) else hierarchy.cores)

