"""`CoreMachine`: one core of a CPU in numbers, and what each kind of operation takes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from archsim.base.errors import Unsupported
from archsim.cost.cpu_traffic import sockets_bandwidth
from archsim.device.device import Cpu
from archsim.device.pipeline import FALLBACK, CorePipeline, Cracked, Hold, Latency, Port

if TYPE_CHECKING:
    from archsim.device.cpu_core import Core
    from archsim.device.part import Number

WIDEST = 512  # bit from which on `port512` counts
HALVED = ("rename", "retire", "fetch", "decode", "window", "load_queue", "store_queue")  # of hyper-threads that both run
SMALL_PAGE = 4096.0  # B
ENTRY_B = 8.0  # of a page in the tables that translate addresses, as x86-64 and AArch64 have them
DIVIDER = ("divide", "root")  # kinds that share one unit behind their port


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMachine:
    """One core: widths per clock, entries, ports by kind of operation, latencies [clk], and the memory behind it.

    ports: names; masks, wide: a bit for each port, by kind, and the same for operations of 512 bit
    latency, hold: clocks by kind; cracked: micro-operations by kind
    page: piece of memory that prefetchers stay in [B]
    tlb: pages that it translates, their size [B], and clocks of a miss where they are known, else 0
    near: (bytes per clock, latency) of the L2, the L3 and memory [B/clk, clk]; sizes: of the caches, as one core sees them [B]
    back: what dirty lines write into each of these beside reads [B/clk]; 0 where both share the bandwidth, as of memory
    """

    name: str
    pipeline: CorePipeline
    ports: tuple[str, ...]
    masks: Mapping[str, int]
    wide: Mapping[str, int]
    latency: Mapping[str, float]
    hold: Mapping[str, float]
    cracked: Mapping[str, float]
    load: float
    line: int
    read: float
    write: float
    near: tuple[tuple[float, float], ...]
    back: tuple[float, ...]
    sizes: tuple[float, ...]
    registers: int
    width: int
    buffers: int
    far_buffers: int
    ahead: int
    far_ahead: int
    page: float
    tlb: tuple[float, float, float]

    @property
    def page_lines(self) -> int:
        """Lines of a page that prefetchers stay in."""
        return max(1, int(self.page) // self.line)

    def translation_clocks(self, footprint: float) -> float:
        """Clocks in which an address somewhere in so many bytes [B] that the TLB does not have is translated.

        The latency of the cache that holds the last tables, footprint / page entries of 8 B, unless the spec states the time: the
        tables above them are in caches of their own, and one line is read (J. McCalpin: 10 clk from the L2 of a Nehalem,
        25 from its L3, 200 from memory). In a virtual machine the host's tables come on top.

        >>> from archsim.device.catalog import find
        >>> zen = core_machine(find("epyc_9655").device, 4e9)
        >>> [zen.translation_clocks(size * 2**20) for size in (16, 64)]  # tables of 32 kB are in the L1, of 128 kB in the L2
        [4.0, 14.0]
        """
        _, page, stated = self.tlb
        tables = footprint / page * ENTRY_B
        level = sum(tables > size for size in self.sizes)
        return stated or (self.near[level - 1][1] if level else self.load)

    def ports_of(self, kind: str, width: int) -> int:
        """A bit for each port that takes operations of a kind and width [bit]."""
        found = _of_kind(kind, self.wide if width >= WIDEST else {}, self.masks)
        if found is not None:
            return int(found)
        raise Unsupported(f"{self.name}: no port takes operations of kind {kind}; --set port.{kind}=\"...\" gives one")

    def latency_of(self, kind: str) -> float:
        """Clocks from the operands of an operation to its result."""
        found = _of_kind(kind, self.latency)
        return 1.0 if found is None else found


def _of_kind(kind: str, *tables: Mapping[str, float]) -> float | None:
    """What the first of some tables that knows a kind, or a kind that it stands for, has for it."""
    for table in tables:
        name: str | None = kind
        while name is not None:
            if name in table:
                return table[name]
            name = FALLBACK.get(name)
    return None


def shared(machine: CoreMachine) -> CoreMachine:
    """What a core is for one of two hyper-threads that both run.

    The front end serves them in turn; the reorder buffer, the load queue and the store queue are cut in two; schedulers,
    registers, ports and caches take both as they come (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 2,
    Hyper-Threading Technology; AMD's guides for Zen have the same).
    """
    given = {name: getattr(machine.pipeline, name) for name in HALVED}
    halves: dict[str, Any] = {name: max(1, int(float(value) / 2)) for name, value in given.items() if value is not None}
    return replace(machine, pipeline=replace(machine.pipeline, **halves))


def delivered(pipeline: CorePipeline, slots: int) -> float:
    """Slots per clock that the front end delivers of a loop of some slots, replayed loops aside.

    `fetch` from the cache of decoded operations; `decode` where the loop is longer than that holds
    """
    usual = float(pipeline.fetch or pipeline.rename)
    if pipeline.op_cache is None or pipeline.decode is None or slots <= pipeline.op_cache:
        return usual
    return min(usual, float(pipeline.decode))


def core_machine(device: Cpu, clock: float, workers: float = 1.0, local: float = 1.0) -> CoreMachine:
    """One core of a CPU at a clock [Hz] beside others at work (`workers` with it); local: as `memory_bandwidth` has it.

    Raises Unsupported for a device whose spec says nothing of its pipeline.
    """
    pipeline, port = device.pipeline, device.port
    if pipeline is None or port is None:
        raise Unsupported(f"{device.identity.id}: the simulation of a core needs the tables [pipeline] and [port], which neither "
                          f"its spec has nor hwspecs/architectures/{device.identity.architecture}.toml")  # fmt: skip
    hold = _numbers(device.hold)
    words = dict.fromkeys(word for table in (port, device.port512) if table is not None
                          for _, text in _given(table) for word in str(text).split())  # fmt: skip
    names = tuple(words)
    masks, wide = _masks(port, names), {} if device.port512 is None else _masks(device.port512, names)
    widest = [wide, masks] if wide and float(device.core.simd) >= WIDEST else [masks, wide]
    names = _with_units(device.core, pipeline, names, widest, hold)
    latency = {"fma": float(device.core.fma_latency), "load": float(device.l1.latency), **_numbers(device.latency)}
    if device.tile is not None:
        latency["tile"] = float(device.tile.latency)
        hold["tile"] = float(device.tile.int8 or device.tile.bf16 or 1.0)
    share = float(sockets_bandwidth(device, workers, local)) / clock / workers
    last, slower = device.l2, clock / float(device.clock.uncore or clock)  # core clocks for each of the uncore
    far, levels = [(float(last.bandwidth), float(last.latency))], [level for level in (last, device.l3) if level is not None]
    for level in levels[1:]:
        far.append((float(level.bandwidth) / slower, far[0][1] + (float(level.latency) - far[0][1]) * slower))
    far.append((share, float(device.memory.latency) * clock))
    return CoreMachine(
        name=device.identity.id, pipeline=pipeline, ports=names, masks=masks, wide=wide, latency=latency, hold=hold,
        cracked=_numbers(device.cracked),
        load=float(device.l1.latency), line=int(device.l1.line), read=float(device.l1.bandwidth),
        write=float(device.l1.write_bandwidth or device.l1.bandwidth / 2.0), near=tuple(far),
        sizes=tuple(float(level.size) for level in (device.l1, *levels)),
        back=(*(float(level.write_bandwidth or 0.0) for level in levels), 0.0),
        registers=int(device.core.registers), width=int(device.core.simd),
        buffers=int(device.core.miss_buffers),
        far_buffers=int(last.miss_buffers or device.core.miss_buffers), ahead=int(device.l1.prefetched or 0),
        far_ahead=int(last.prefetched or 0), page=float(last.prefetch_page or max(SMALL_PAGE, last.tlb_page or 0.0)),
        tlb=(float(last.tlb_entries or 0), float(last.tlb_page or SMALL_PAGE), float(last.tlb_miss or 0.0)),
    )  # fmt: skip


def _with_units(core: Core, pipeline: CorePipeline, names: tuple[str, ...], tables: Sequence[dict[str, int]],
                hold: dict[str, float]) -> tuple[str, ...]:  # fmt: skip
    """The ports, as many more or fewer of them for multiply-adds, multiplications and additions as `core.fma_ports` asks for.

    fma_ports simd hold / min(datapath, simd) units of the width of the datapath; less than a whole one more or less is none

    tables: of masks, which are changed; the widest first
    """
    kinds = ("fma", "add", "mul")
    there = next(table[kind] for kind in ("fma", "mul") for table in tables if kind in table).bit_count()
    wanted = float(core.fma_ports) * float(core.simd) / min(float(pipeline.datapath), float(core.simd)) * hold.get("fma", 1.0)
    more = int(wanted - there)
    for table in tables:
        for kind in (kind for kind in kinds if kind in table):
            table[kind] |= ((1 << max(more, 0)) - 1) << len(names)
            for _ in range(min(-more, table[kind].bit_count() - 1)):
                table[kind] &= ~(1 << table[kind].bit_length() - 1)
    if wanted < 1.0:
        hold |= {kind: hold.get(kind, 1.0) / wanted for kind in kinds}
    return names + tuple(f"unit {at}" for at in range(more))


def _given(table: Port | Latency | Hold | Cracked) -> list[tuple[str, str | Number]]:
    return [(one.name, getattr(table, one.name)) for one in fields(table) if getattr(table, one.name) is not None]


def _masks(table: Port, names: tuple[str, ...]) -> dict[str, int]:
    place = {name: at for at, name in enumerate(names)}
    return {kind: sum(1 << place[word] for word in set(str(text).split())) for kind, text in _given(table)}


def _numbers(table: Latency | Hold | Cracked | None) -> dict[str, float]:
    return {} if table is None else {kind: float(value) for kind, value in _given(table)}
