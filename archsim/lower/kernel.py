"""What lowering produces: kernels, the options an op can run as, and their form as columns for the cost layer.

    op ──► one or more options (algorithms) ──► each a chain of kernels ──► each in one or more variants (tiles, splits)

Costs are computed for every variant at once; the fastest variant runs a kernel, the fastest option runs an op. Nothing
here depends on a device or on a fitted constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf

import numpy as np
from numpy.typing import NDArray

from archsim.stack.stack import Menu, Tile

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel, launched `repeat` times in a row.

    A matrix kernel (with a `menu`) computes `count` products C[m, n] = A[m, k] B[k, n] with `work` multiply-accumulates
    for each (m, n, k); `operand_a`, `operand_b` are the bytes that a tile loads for one element of A or B. `a_bytes`, `b_bytes`,
    `c_bytes` are the tensors themselves, each counted once: an unfolded convolution input is smaller than its matrix.
    B is what the op before may have left in cache. `row_bytes` is the length of a row of either operand where both are stored
    row by row along k (0: they are not). A streaming kernel (without a menu) reads a and b, writes c and does
    `flop` arithmetic in `items` independent threads.
    """

    name: str
    efficiency: str
    menu: str = ""
    m: float = 1
    n: float = 1
    k: float = 1
    count: float = 1
    work: float = 1
    exps: float = 0  # exponentials for each (m, k): a softmax between two products
    operand_a: float = 4
    operand_b: float = 4
    a_bytes: float = 0
    b_bytes: float = 0
    c_bytes: float = 0
    flop: float = 0
    items: float = 1
    cache_bytes: float = 0  # cache traffic beyond the tensors: results added up in the L2, windows that overlap
    row_bytes: float = 0
    slots: float = 0  # GPU: issue slots of a stream that takes more than its arithmetic
    single: float = 0  # 1: the product of a single image, between the kernels that unfold it
    repeat: float = 1
    threaded: float = 1  # CPU: 0 where the framework runs the loop on one thread
    dense: float = 0  # 1: a stream whose arithmetic runs at the rate of a product
    plain: float = 0  # GPU: 1 for a product that leaves the tensor cores idle and multiplies its narrow operands in fp32
    clocks: float = 0  # CPU: core clocks of a framework's own loop, all values
    packed: float = 0  # CPU: values that the library copies into panels before it multiplies
    parts: float = 0  # CPU: pieces that threads take whole, such as images; 0 where the work divides freely
    grain: float = 0  # CPU: rows and columns of a product that each thread must get, or one thread does it all
    local: float = 1  # CPU: 1 where threads of every socket touched the tensors first, 0 where one thread did
    vector: float = 0  # CPU: 1 where the loop of a stream is vectorised
    spin: float = 1  # CPU: 1 where threads that wait for this kernel spin, 0 where they sleep
    pipe: float = inf  # CPU: multiply-adds per clock that the library's instructions can start


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to run an op: a chain of kernels, with the workspace that they share [B]."""

    algorithm: str
    kernels: tuple[Kernel, ...]
    workspace: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All ways to run one op. `read_bytes` and `write_bytes` are what any implementation moves at least."""

    options: tuple[Option, ...]
    read_bytes: float
    write_bytes: float
    host_ops: float = 1  # how many framework calls the op is
    stalls: float = 0  # how many times the device waits for the host


THIN_TILE = 32  # rows or columns of the narrowest tiles of cuBLAS
LONG_PART = 4096  # of k, from which cuBLAS splits whatever the other sides (sgemm_largek)
_STREAM_TILE = Tile(m=1, n=1, k=1, threads=256, registers=32, shared=0)
_KERNEL_COLUMNS = (
    "m", "n", "k", "count", "work", "exps", "operand_a", "operand_b", "a_bytes", "b_bytes", "c_bytes", "flop", "items",
    "cache_bytes", "row_bytes", "slots", "single", "repeat", "threaded", "dense", "plain", "clocks", "packed", "parts", "grain",
    "local", "vector", "spin", "pipe",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Nest:
    """Where the variants of some kernels belong: the option and the plan of each, [V]; how many variants a kernel and options
    a plan has; the workspace of each option, [P].
    """

    option_of: Index
    plan_of: Index
    variants: Index  # of each kernel, [K]
    options: Index  # of each plan, [O]
    workspace: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernels:
    """The variants of all kernels of many plans as columns of length V, and how they nest.

    `kernel_start[K]`, `option_start[P]`, `plan_start[O]` are offsets: variants of kernel i begin at `kernel_start[i]`,
    kernels of option j at `option_start[j]`, options of plan o at `plan_start[o]`.
    """

    m: Array
    n: Array
    k: Array
    count: Array
    work: Array
    exps: Array
    operand_a: Array
    operand_b: Array
    a_bytes: Array
    b_bytes: Array
    c_bytes: Array
    flop: Array
    items: Array
    cache_bytes: Array
    row_bytes: Array
    slots: Array
    single: Array
    repeat: Array
    threaded: Array
    dense: Array
    plain: Array
    clocks: Array
    packed: Array
    parts: Array
    grain: Array
    local: Array
    vector: Array
    spin: Array
    pipe: Array
    matrix: Array  # 1 for matrix kernels, 0 for streams
    tile_m: Array
    tile_n: Array
    tile_k: Array
    split: Array
    threads: Array  # per CTA
    registers: Array  # per thread
    shared: Array  # B per CTA
    cluster: Array  # CTAs that load the longer side of their tiles together
    overlapped: Array  # 1: a group of warps takes exponentials while another multiplies
    chain: Array  # kernels that run one after the other: 2 where a second one adds up the parts of a split
    efficiency: Index  # position in `constants`
    constants: tuple[str, ...]
    kernel_start: Index
    option_start: Index
    plan_start: Index
    kernel_of: Index  # [V] kernel of each variant
    kernels: tuple[Kernel, ...]
    options: tuple[Option, ...]
    read_bytes: Array  # [O] at least, per plan
    write_bytes: Array  # [O]
    host_ops: Array  # [O]
    stalls: Array  # [O]

    @cached_property
    def nest(self) -> Nest:
        """How variants, options and plans belong together."""
        option = np.repeat(np.arange(len(self.options)), np.diff(self.option_start, append=len(self.kernels)))[self.kernel_of]
        plan = np.repeat(np.arange(len(self.plan_start)), np.diff(self.plan_start, append=len(self.options)))[option]
        workspace = np.array([option.workspace for option in self.options], dtype=float)
        variants = np.diff(self.kernel_start, append=self.m.size)
        options = np.diff(self.plan_start, append=len(self.options))
        return Nest(option_of=option, plan_of=plan, variants=variants, options=options, workspace=workspace)

    @property
    def launches(self) -> Array:
        """Kernel launches of each kernel, [K]."""
        return self.repeat[self.kernel_start]


def pack(plans: Sequence[Plan], menus: Mapping[str, Menu], tiled: bool) -> Kernels:
    """The columns of `plans`. Every plan needs an option, every option a kernel.

    `tiled` says whether a product's variants are tiles of a menu (GPU); a CPU library blocks by the machine's caches.
    """
    options = [option for plan in plans for option in plan.options]
    kernels = [kernel for option in options for kernel in option.kernels]
    chosen = [_variants(menus[kernel.menu], kernel) if kernel.menu and tiled else [(_STREAM_TILE, 1, 1)] for kernel in kernels]
    counts = np.array([len(variants) for variants in chosen], dtype=np.intp)
    kernel_of = np.repeat(np.arange(len(kernels)), counts)
    table = np.array([[getattr(kernel, name) for name in _KERNEL_COLUMNS] for kernel in kernels], dtype=float).T
    columns = dict(zip(_KERNEL_COLUMNS, table[:, kernel_of], strict=True))
    tiles = np.array([_tile_row(*row) for variants in chosen for row in variants], dtype=float).T
    tile_names = ("tile_m", "tile_n", "tile_k", "split", "threads", "registers", "shared", "cluster", "overlapped", "chain")
    matrix = np.array([kernel.menu != "" for kernel in kernels], dtype=float)[kernel_of]
    constants = tuple(dict.fromkeys(kernel.efficiency for kernel in kernels))
    position = {name: i for i, name in enumerate(constants)}
    return Kernels(
        **columns,
        **dict(zip(tile_names, tiles, strict=True)),
        matrix=matrix,
        efficiency=np.array([position[kernel.efficiency] for kernel in kernels], dtype=np.intp)[kernel_of],
        constants=constants,
        kernel_start=_starts(counts.tolist()),
        option_start=_starts([len(option.kernels) for option in options]),
        plan_start=_starts([len(plan.options) for plan in plans]),
        kernel_of=kernel_of,
        kernels=tuple(kernels),
        options=tuple(options),
        read_bytes=np.array([plan.read_bytes for plan in plans]),
        write_bytes=np.array([plan.write_bytes for plan in plans]),
        host_ops=np.array([plan.host_ops for plan in plans]),
        stalls=np.array([plan.stalls for plan in plans]),
    )


def _variants(menu: Menu, kernel: Kernel) -> list[tuple[Tile, int, int]]:
    """The variants that the library considers for a product of this size: all of them where none is meant for it."""
    tiles = [tile for tile in menu.tiles if kernel.m >= tile.least_m and kernel.n >= tile.least_n] or menu.tiles
    splits = [split for split in menu.split_k if split == 1 or _splits(menu, kernel, split)]
    chained = [(split, menu.split_launches if split > 1 else 1) for split in splits or menu.split_k]
    return [(tile, split, chain) for tile in tiles for split, chain in chained]


def _splits(menu: Menu, kernel: Kernel, parts: int) -> bool:
    """Whether the library would cut k into so many parts; into many only for thin products and very long parts."""
    many = menu.split_wide and parts > menu.split_wide and min(kernel.m, kernel.n) > THIN_TILE
    return kernel.k >= parts * (LONG_PART if many else menu.split_least_k)


def _tile_row(tile: Tile, split: int, chain: int) -> tuple[float, ...]:
    return (tile.m, tile.n, tile.k, split, tile.threads, tile.registers, tile.shared, tile.cluster, tile.overlapped, chain)


def _starts(lengths: Iterable[int]) -> Index:
    """Offsets at which consecutive groups of these lengths begin."""
    return np.array([0, *accumulate(lengths)][:-1], dtype=np.intp)
