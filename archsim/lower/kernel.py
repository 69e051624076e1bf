"""What lowering produces: kernels, the options an op can run as, and their form as columns for the cost layer.

    op ──► one or more options (algorithms) ──► each a chain of kernels ──► each in one or more variants (tiles, splits)

Costs are computed for every variant at once; the fastest variant runs a kernel, the fastest option runs an op. Nothing
here depends on a device or on a fitted constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.lower.columns import Columns, CpuColumns, CpuRuntime, GpuColumns, Role, TileColumns, column, columns_of
from archsim.stack.loop import LOOP, UNKNOWN, ScalarLoop
from archsim.stack.menu import Menu, Tile
from archsim.trace.trace import BoundOp

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Kernel(Columns[float]):
    """One kernel, launched `repeat` times in a row: a matrix kernel where it has a `menu` of tiles, else an element-wise one.

    `name` is for people. `efficiency` names the constant of its family. `values` are those that a loop of a CPU works through in
    one launch, where they are not its `items`.
    `cta` says what a CTA of an element-wise kernel occupies. `cpu` is there once a CPU's software has taken the kernel over,
    whose scalar loop is `loop`. `trips`: of its innermost loop, 0 where it is as long as the tensor; `window`: values from
    which it takes each result.
    """

    name: str
    role: Role
    efficiency: str
    menu: str = ""
    values: float = 0
    gpu: GpuColumns[float] = GpuColumns()
    cta: TileColumns[float] = TileColumns()
    cpu: CpuColumns[float] | None = None
    loop: ScalarLoop = UNKNOWN
    trips: float = 0
    window: float = 1


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
    nested: float = 0  # calls that these dispatch in their turn
    synchronous: float = 0  # 1: the device stands still while the host calls and launches

    def with_kernels(self, change: Callable[[tuple[Kernel, ...]], Iterable[Kernel]]) -> Plan:
        """The plan with other kernels in each option, made of those that it has."""
        return replace(self, options=tuple([replace(option, kernels=tuple(change(option.kernels))) for option in self.options]))


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
class Kernels(Columns[Array]):
    """The variants of all kernels of many plans as columns of length V, and how they nest.

    `kernel_start[K]`, `option_start[P]`, `plan_start[O]` are offsets: variants of kernel i begin at `kernel_start[i]`,
    kernels of option j at `option_start[j]`, options of plan o at `plan_start[o]`.
    """

    matrix: Array = column(0, "1", "1 for matrix kernels, 0 for element-wise ones")
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
    nested: Array  # [O]
    synchronous: Array  # [O]
    round_bytes: Array | float = inf  # [V] what is touched before the same operands come again [B]; infinite: they do not
    reread_bytes: Array | float = inf  # [V] the same where all calls of a round write their results to one place [B]
    call_bytes: Array | float = inf  # [V] what one call touches, after which the next writes there again [B]
    run_bytes: Array | float = inf  # [V] what one of many equal runs touches [B]; infinite: too much for any cache, or not known
    short_lived: Array | float = 0.0  # [V] 1: the memory of the results is used for others once they were read
    ops: tuple[BoundOp, ...] = ()  # [O] an op of each plan, whose sizes the addresses of its kernels follow; none: not known

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

    def places(self, option: int) -> range:
        """Positions of the kernels of an option among all `kernels`."""
        first = int(self.option_start[option])
        return range(first, first + len(self.options[option].kernels))


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuKernels(Kernels, GpuColumns[Array], TileColumns[Array]):
    """Kernels as a GPU runs them, in all variants of their tiles."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CpuKernels(Kernels, CpuColumns[Array]):
    """Kernels as a CPU's software runs them; each has one variant, since its library blocks by the caches of the machine."""

    runtime: CpuRuntime

    @cached_property
    def counts(self) -> Mapping[str, Array]:
        """What the scalar loops do in one launch: name of a field of `ScalarLoop` -> how often, [V]."""
        each = np.array([_LOOP(self.kernels[kernel].loop) for kernel in self.kernel_of.tolist()]).T
        return dict(zip(LOOP, each * self.values, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class TpuKernels(Kernels):
    """Kernels as a TPU runs them; each has one variant, since its compiler cuts products by the arrays of the machine."""


_TILE, _LOOP = attrgetter(*columns_of(TileColumns)), attrgetter(*LOOP)


def pack_gpu(plans: Sequence[Plan], menus: Mapping[str, Menu], architecture: str = "") -> GpuKernels:
    """The columns of `plans`: a variant for each tile and split that the kernel's menu offers on an architecture. Every plan
    needs an option, every option a kernel."""
    kernels = _kernels(plans)
    chosen = [_variants(menus[kernel.menu], kernel, architecture) if kernel.menu else (kernel.cta,) for kernel in kernels]
    tiles = np.array([_TILE(variant) for variants in chosen for variant in variants], dtype=float).T
    counts = np.array([len(variants) for variants in chosen], dtype=np.intp)
    tiled = dict(zip(columns_of(TileColumns), tiles, strict=True))
    return GpuKernels(**_packed(plans, kernels, counts, GpuColumns, "gpu"), **tiled)


def pack_cpu(plans: Sequence[Plan], runtime: CpuRuntime) -> CpuKernels:
    """The columns of `plans`, every kernel of which has its part of a CPU. Every plan needs an option, every option a kernel."""
    kernels = _kernels(plans)
    return CpuKernels(runtime=runtime, **_packed(plans, kernels, np.ones(len(kernels), dtype=np.intp), CpuColumns, "cpu"))


def pack_tpu(plans: Sequence[Plan]) -> TpuKernels:
    """The columns of `plans`. Every plan needs an option, every option a kernel."""
    kernels = _kernels(plans)
    return TpuKernels(**_packed(plans, kernels, np.ones(len(kernels), dtype=np.intp)))


def _kernels(plans: Sequence[Plan]) -> tuple[Kernel, ...]:
    return tuple([kernel for plan in plans for option in plan.options for kernel in option.kernels])


def _packed(
    plans: Sequence[Plan], kernels: tuple[Kernel, ...], counts: Index, own: type[Any] | None = None, part: str = "",
) -> dict[str, Any]:  # fmt: skip
    """All but the tiles: the columns of any kernel and of its `part`, and how `counts` variants of each kernel nest."""
    options = tuple([option for plan in plans for option in plan.options])
    kernel_of = np.repeat(np.arange(len(kernels)), counts)
    further = () if own is None else tuple(columns_of(own))
    names = (*columns_of(Columns), *further)
    read = attrgetter(*columns_of(Columns), *[f"{part}.{name}" for name in further])
    table = np.array([read(kernel) for kernel in kernels], dtype=float).T
    constants = tuple(dict.fromkeys(kernel.efficiency for kernel in kernels))
    position = {name: i for i, name in enumerate(constants)}
    return {
        **dict(zip(names, table[:, kernel_of], strict=True)),
        "matrix": np.array([kernel.menu != "" for kernel in kernels], dtype=float)[kernel_of],
        "efficiency": np.array([position[kernel.efficiency] for kernel in kernels], dtype=np.intp)[kernel_of],
        "constants": constants,
        "kernel_start": _starts(counts.tolist()),
        "option_start": _starts([len(option.kernels) for option in options]),
        "plan_start": _starts([len(plan.options) for plan in plans]),
        "kernel_of": kernel_of,
        "kernels": kernels,
        "options": options,
        "read_bytes": np.array([plan.read_bytes for plan in plans]),
        "write_bytes": np.array([plan.write_bytes for plan in plans]),
        "host_ops": np.array([plan.host_ops for plan in plans]), "nested": np.array([plan.nested for plan in plans]),
        "synchronous": np.array([plan.synchronous for plan in plans]),
    }


def _variants(menu: Menu, kernel: Kernel, architecture: str) -> list[TileColumns[float]]:
    """The tiles and splits that the library considers for a product of this size; all that it has where it considers none."""
    here = menu.on(architecture)
    fitting = [tile for tile in here if tile.serves(kernel.m, kernel.n, kernel.k)] or here
    tiles = [tile for tile in fitting if tile.file == fitting[0].file]
    if kernel.exps:
        tiles = _whole_heads(tiles, kernel.n)
    splits = [split for split in menu.split_k if split == 1 or _splits(menu, kernel, split)]
    chained = [(split, menu.split_launches if split > 1 else 1) for split in splits or menu.split_k]
    return [_tile_columns(tile, split, chain) for tile in tiles for split, chain in chained
            if split == 1 or not tile.whole]  # fmt: skip


def _whole_heads(tiles: list[Tile], features: float) -> list[Tile]:
    """Of attention's tiles the narrowest that hold all features of a head, whose scores need them; all where none does."""
    width = min((tile.n for tile in tiles if tile.n >= features), default=0)
    return [tile for tile in tiles if tile.n == width] or tiles


def _splits(menu: Menu, kernel: Kernel, parts: int) -> bool:
    """Whether the library would cut k into so many parts.

    Each part has at least `split_least_k` terms, `split_wide_least` those of a product of more than `split_wide_side` rows and
    columns; where that would have more than `split_wide` parts, at least `split_wide_part`.
    """
    wide = min(kernel.m, kernel.n) > menu.split_wide_side
    least = (wide and menu.split_wide_least) or menu.split_least_k
    many = wide and menu.split_wide and parts > menu.split_wide
    return kernel.k >= parts * (menu.split_wide_part if many else least)


@lru_cache(maxsize=4096)
def _tile_columns(tile: Tile, split: int, chain: int) -> TileColumns[float]:
    return TileColumns(
        tile_m=tile.m, tile_n=tile.n, tile_k=tile.k, split=split, threads=tile.threads, registers=tile.registers,
        shared=tile.shared, cluster=tile.cluster, score_slots=tile.score_slots, overlapped=tile.overlapped,
        warp_mma=tile.warp_mma, persistent=tile.persistent, chain=chain,
    )  # fmt: skip


def _starts(lengths: Iterable[int]) -> Index:
    """Offsets at which consecutive groups of these lengths begin."""
    return np.array([0, *accumulate(lengths)][:-1], dtype=np.intp)
