"""Bytes of one launch of any kernel between the levels of a device's caches.

Products of a GPU are simulated: their CTAs, some waves of them, address by address. All other kernels go by the stack distances
of their loop nests, which need no simulation.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from types import ModuleType

from archsim.base.machine_code import digest
from archsim.cache import access, distance, hierarchy, inclusion, kernel, layers, simulate, tiles
from archsim.cache.access import LoopNest
from archsim.cache.cpu_products import cpu_nest
from archsim.cache.hierarchy import GPU_WAYS, hierarchy_of
from archsim.cache.layers import launch_traffic, product_of
from archsim.cache.reuse import CacheView, moved
from archsim.cache.roles import KernelShape, nest_of
from archsim.device.device import Cpu, Gpu
from archsim.lower.columns import Role

WAVES = 3  # of a product that are simulated in an estimate: the first, and two that are like all others
ENOUGH = 300_000  # accesses after which two waves have to do
MOST_SECTORS = 16  # of a line that a simulated cache tells apart
SOURCES: tuple[ModuleType, ...] = (access, distance, hierarchy, inclusion, kernel, layers, simulate, tiles)
SIMULATED = ("l2", "dram_read", "dram_written")  # numbers that the memo keeps of a product


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelBytes:
    """Bytes of one launch [B].

    core: between the L1 and the L2 of a core; 0 on a GPU
    shared: between the cores and the last level, of a GPU between the SMs and the L2
    dram_read, dram_written: of memory
    """

    core: float = 0.0
    shared: float = 0.0
    dram_read: float = 0.0
    dram_written: float = 0.0

    @property
    def dram(self) -> float:
        """Memory traffic [B]."""
        return self.dram_read + self.dram_written


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """How a GPU runs a kernel: the tile of a CTA, parts of k, CTAs that an SM holds."""

    m: int = 1
    n: int = 1
    split: int = 1
    resident: int = 1


def of_cpu(shape: KernelShape, device: Cpu, workers: float) -> LevelBytes:
    """The traffic of a kernel on so many cores of a CPU; `device` has numbers, not columns.

    >>> from archsim.device.catalog import find
    >>> from archsim.lower.kernel import Kernel
    >>> from archsim.trace.op import KINDS
    >>> from archsim.trace.trace import BoundOp
    >>> copy = Kernel(name="copy", role=Role.FILL, efficiency="full", c_bytes=2.0**26)
    >>> op = BoundOp(name="x", kind=KINDS["relu"](), inputs=(), input_shapes=((1,),), shape=(1,))
    >>> found = of_cpu(KernelShape(op=op, kernel=copy, element=4, gpu=False), find("i7_6700k").device, 1.0)
    >>> found.dram / 2**20  # 64 MiB, fetched before they are written
    128.0
    """
    nest = cpu_nest(shape, device, workers)
    if not nest.body:
        return LevelBytes()
    parts = [part for part in (device.l1, device.l2, device.l3) if part is not None]
    views = [CacheView(size=float(part.size), ways=float(part.ways), line=int(part.line), sector=int(part.line),
                       sharers=float(part.shared_by)) for part in parts]  # fmt: skip
    found = moved(nest, views, workers)
    return LevelBytes(core=found[0].total, shared=found[-2].total, dram_read=found[-1].read, dram_written=found[-1].written)


def of_gpu(shape: KernelShape, device: Gpu, tiling: Tiling, memo: MutableMapping[bytes, float]) -> LevelBytes:
    """The traffic of a kernel on a GPU; `device` has numbers, not columns. `memo` keeps what was simulated, by a key."""
    product = shape.kernel.menu != "" and shape.kernel.role is not Role.ATTENTION
    return _of_product(shape, device, tiling, memo) if product else _of_nest(nest_of(shape), device, tiling.resident)


def views_of(device: Gpu, resident: float) -> tuple[CacheView, CacheView]:
    """The L1 of an SM, through which its CTAs write, and the L2 of all."""
    slots = float(device.sm.count) * resident
    l1, l2 = (
        CacheView(size=float(part.size), ways=float(part.ways or GPU_WAYS), line=int(part.line), sector=int(part.sector),
                  hashed=True, fetch=False, settled=False) for part in (device.l1, device.l2)
    )  # fmt: skip
    return replace(l1, sharers=resident, allocate=False, warm=False), replace(l2, sharers=slots)


def _of_nest(nest: LoopNest, device: Gpu, resident: float) -> LevelBytes:
    if not nest.body:
        return LevelBytes()
    l1, l2 = moved(nest, views_of(device, resident), float(device.sm.count) * resident, dealt=True)
    return LevelBytes(shared=l1.total, dram_read=l2.read, dram_written=l2.written)


def _of_product(shape: KernelShape, device: Gpu, tiling: Tiling, memo: MutableMapping[bytes, float]) -> LevelBytes:
    """The waves of a tiled product; its second kernel, where k is split; the additions of a scattered one."""
    key = _key(shape, device, tiling)
    try:
        l2, read, written = (memo[key + name.encode()] - 1.0 for name in SIMULATED)
    except KeyError:
        l2, read, written = _simulated(shape, device, tiling)
        for name, value in zip(SIMULATED, (l2, read, written), strict=True):
            memo[key + name.encode()] = value + 1.0  # no number is kept that is not above zero
    kernel = shape.kernel
    below = views_of(device, tiling.resident)[1]
    if kernel.role is Role.SCATTER:  # each addition reads what it writes
        images = kernel.c_bytes / 2.0
        return LevelBytes(shared=l2 + kernel.m * kernel.n * shape.element, dram_written=written,
                          dram_read=read + images * (1.0 - below.hits(images / below.line)))  # fmt: skip
    if tiling.split == 1:
        return LevelBytes(shared=l2, dram_read=read, dram_written=written)
    parts = tiling.split * kernel.c_bytes
    gone = parts * (1.0 - below.hits((parts + kernel.c_bytes) / below.line))
    return LevelBytes(shared=l2 + parts + kernel.c_bytes, dram_read=read + gone, dram_written=kernel.c_bytes + gone)


def _simulated(shape: KernelShape, device: Gpu, tiling: Tiling) -> tuple[float, float, float]:
    product = product_of(shape.op, shape.kernel, (tiling.m, tiling.n), shape.element, tiling.split)
    slots = int(device.sm.count) * tiling.resident
    seen = launch_traffic(product, slots, hierarchy_of(whole(device), int(device.sm.count)), shape.kernel.b_bytes,
                          most_waves=WAVES, enough=ENOUGH)  # fmt: skip
    return seen.l2_bytes, seen.dram_read, seen.dram_written


def whole(device: Gpu) -> Gpu:
    """The device with caches of whole sets, as near as they come: a knob may ask for any size."""
    def sized(part: object) -> object:
        ways = int(part.ways or 0) or next(w for w in range(GPU_WAYS, 0, -1) if part.size % (part.line * w) == 0 or w == 1)  # type: ignore[attr-defined]
        line = 1 << max(2, round(float(part.line)).bit_length() - 1)  # type: ignore[attr-defined]
        sector = max(line // MOST_SECTORS, min(line, 1 << (round(float(part.sector)).bit_length() - 1)))  # type: ignore[attr-defined]
        sets = max(1, round(float(part.size) / (line * ways)))  # type: ignore[attr-defined]
        return replace(part, size=sets * line * ways, ways=ways, line=line, sector=sector)  # type: ignore[type-var]

    return replace(device, l1=sized(device.l1), l2=sized(device.l2))  # type: ignore[arg-type]


def _key(shape: KernelShape, device: Gpu, tiling: Tiling) -> bytes:
    """Equal for equal shapes of a kernel on equal caches."""
    kernel, op = shape.kernel, shape.op
    sizes = tuple([getattr(kernel, name) for name in ("m", "n", "k", "count", "work", "operand_b", "b_bytes")])
    caches = tuple([(part.size, part.ways, part.line, part.sector) for part in (device.l1, device.l2)])
    text = repr((version(), kernel.role.value, sizes, op.signature, shape.element, tiling, int(device.sm.count), caches, WAVES,
                 ENOUGH))  # fmt: skip
    return b"traffic-" + blake2b(text.encode(), digest_size=20).digest()


@lru_cache(maxsize=1)
def version() -> str:
    """Equal for equal code of the simulation and of the streams."""
    return digest(*SOURCES)
