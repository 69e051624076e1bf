"""Products of a CPU: addresses of one that is blocked for its caches from packed panels, and loop nests of all of them.

The five loops around a micro-kernel of Goto and van de Geijn (2008), with the block sizes of `archsim.cost.blocking`. A, B and C
are row-major in memory; a packed panel is contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from archsim.cache.access import STORE, UPDATE, Accesses, LoopNest, Ref, dealt, loop
from archsim.cache.roles import LANES, KernelShape, attention, depthwise, nest_of, shared, touched_before
from archsim.cost.blocking import LANE_BITS, block_columns, block_rows, micro_tile, panel_depth
from archsim.device.device import Cpu
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel

# ------------------------------------------------------------------------------------------------------------ addresses

REGION = 1 << 36  # B between the tensors and panels
A, B, C, PACKED_A, PACKED_B = (i * REGION for i in range(5))
UNBOUNDED = 1 << 30  # columns of a block where there is no third level to hold them


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Block sizes [elements]: `rows` x `columns` in registers, `k` x `columns` in L1, `m` x `k` in L2, `k` x `n` in the last
    level.
    """

    rows: int
    columns: int
    m: int
    n: int
    k: int


def blocks_of(device: Cpu, element: int) -> Blocks:
    """The block sizes [elements] that fit the caches of a device, for elements of `element` bytes.

    >>> from archsim.device.catalog import find
    >>> blocks = blocks_of(find("i7_6700k").device, 4)
    >>> blocks.rows * blocks.columns  # results that a core keeps in registers: 6 x 16
    96
    """
    rows, columns = (int(side) for side in micro_tile(device))
    m, n = (float(side(device, element)) for side in (block_rows, block_columns))
    return Blocks(
        rows=rows, columns=columns, k=int(panel_depth(device, element)), m=max(rows, int(m) // rows * rows),
        n=max(columns, int(min(n, UNBOUNDED)) // columns * columns),
    )  # fmt: skip


def blocked_product(m: int, n: int, k: int, blocks: Blocks, element: int) -> Iterator[Accesses]:
    """The accesses of C[m, n] += A[m, k] B[k, n], panel by panel; each item is one block of A, packed or multiplied.

    element: bytes of one value [B]
    """
    for jc in range(0, n, blocks.n):
        nb = min(blocks.n, n - jc)
        for pc in range(0, k, blocks.k):
            kb = min(blocks.k, k - pc)
            row = np.arange(pc, pc + kb)
            yield _copied(B + (row * n + jc) * element, nb * element, PACKED_B)
            for ic in range(0, m, blocks.m):
                mb = min(blocks.m, m - ic)
                yield _copied(A + (np.arange(ic, ic + mb) * k + pc) * element, kb * element, PACKED_A)
                for jr in range(0, nb, blocks.columns):
                    yield _strip(ic, jc + jr, jr, mb, min(blocks.columns, nb - jr), kb, n, blocks, element)


def _copied(begin: np.ndarray, size: int, target: int) -> Accesses:
    """Rows read one after the other, each written behind the one before."""
    address = np.stack([begin, target + np.arange(len(begin)) * size], axis=1).ravel()
    return Accesses(address=address, size=np.full(len(address), size), store=np.tile([0, 1], len(begin)))


def _strip(
    ic: int, column: int, jr: int, mb: int, wide: int, kb: int, n: int, blocks: Blocks, element: int
) -> Accesses:
    """One panel of B times all panels of A of a block: each time both panels are read, then the tile of C is read and written."""
    address, size, store = [], [], []
    for ir in range(0, mb, blocks.rows):
        rows = np.arange(ic + ir, ic + min(ir + blocks.rows, mb))
        tile = C + (rows * n + column) * element
        address += [PACKED_A + ir * kb * element, PACKED_B + jr * kb * element, *np.tile(tile, 2).tolist()]
        size += [len(rows) * kb * element, wide * kb * element, *[wide * element] * (2 * len(rows))]
        store += [0, 0, *[0] * len(rows), *[1] * len(rows)]
    return Accesses(address=np.array(address), size=np.array(size), store=np.array(store))


# ----------------------------------------------------------------------------------------------------------- loop nests

ABREAST = 4  # blocks of output channels that use a loaded pixel together
KEPT = 0.5  # of the second level that the filters of a direct convolution may fill. A choice.
TILES = 64  # patches of Winograd's algorithm that a core transforms and multiplies at a time. A choice.


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """Names of the left [m, k] and right [k, n] operand, and whether the products of a batch share either of them."""

    left: str
    right: str
    left_shared: bool
    right_shared: bool


def operands_of(kernel: Kernel) -> Operands:
    """Which tensor is on the left: A, the parameters, unless a library counts them as columns (`archsim.lower.processor`)."""
    left, right = (side * kernel.k * kernel.operand_a for side in (kernel.m, kernel.n))
    batch = kernel.count

    def gap(a: float, b: float) -> float:
        return min(abs(kernel.a_bytes - a), abs(kernel.a_bytes - a * batch)) + min(
            abs(kernel.b_bytes - b), abs(kernel.b_bytes - b * batch))  # fmt: skip

    names = ("a", "b") if gap(left, right) <= gap(right, left) else ("b", "a")
    sizes = {"a": kernel.a_bytes, "b": kernel.b_bytes}
    return Operands(left=names[0], right=names[1], left_shared=batch > 1 and sizes[names[0]] < 1.5 * left,
                    right_shared=batch > 1 and sizes[names[1]] < 1.5 * right)  # fmt: skip


def cpu_nest(shape: KernelShape, device: Cpu, workers: float) -> LoopNest:
    """The loop nest of any kernel on a CPU on which so many cores share it."""
    kernel = shape.kernel
    if not kernel.menu:
        return nest_of(shape)
    if kernel.role is Role.ATTENTION:
        nest = attention(shape)
    elif kernel.cpu is not None and kernel.cpu.packed > 0:
        nest = packed_product(kernel, blocks_of(device, max(1, int(kernel.operand_a))), int(kernel.operand_a), workers)
    elif kernel.role is Role.CONVOLUTION and shape.layer is not None and shape.layer.phase != "backward_filter":
        nest = depthwise(shape) if shape.layer.ci == 1 < shape.layer.groups else direct(shape, device)
    else:
        nest = unpacked_product(kernel)
    return LoopNest(body=nest.body, warm=touched_before(shape, nest))


def packed_product(kernel: Kernel, blocks: Blocks, element: int, workers: float) -> LoopNest:
    """The five loops of Goto and van de Geijn (2008) with both packings; blocks are as even as whole panels allow.

    Threads take whole products of a batch where they are blocks of channels, otherwise each a strip of the columns.
    """
    operands, batch = operands_of(kernel), int(kernel.count)
    strips = 1 if (kernel.cpu is not None and kernel.cpu.channels > 0) or batch >= workers > 1 else max(1, int(workers))
    n, m, k = max(1, ceil(kernel.n / strips)), int(kernel.m), int(kernel.k)
    blocks_n, blocks_k, blocks_m = ceil(n / blocks.n), ceil(k / blocks.k), ceil(m / blocks.m)
    nb, kb, mb = ceil(n / blocks_n), ceil(k / blocks_k), ceil(m / blocks_m)
    rows, columns = min(blocks.rows, mb), min(blocks.columns, nb)
    whole = int(kernel.n) * element
    z_left, z_right = (0 if shared else size * element for shared, size in (
        (operands.left_shared, m * k), (operands.right_shared, k * int(kernel.n))))  # fmt: skip
    own = ("core", 1 << 32)  # packed panels of each core

    pack_b = loop(
        "row", kb, Ref(array=operands.right, run=nb * element, strides=(
            ("core", z_right if strips == 1 else n * element), ("z", z_right), ("jc", nb * element), ("pc", kb * whole),
            ("row", whole))),
        Ref(array="packed_right", run=nb * element, strides=(own, ("row", nb * element)), mode=STORE))  # fmt: skip
    pack_a = loop(
        "row", mb, Ref(array=operands.left, run=kb * element, strides=(
            ("core", z_left if strips == 1 else 0), ("z", z_left), ("ic", mb * k * element), ("pc", kb * element),
            ("row", k * element))),
        Ref(array="packed_left", run=kb * element, strides=(own, ("row", kb * element)), mode=STORE))  # fmt: skip
    result = loop(
        "row", rows, Ref(array="c", run=columns * element, mode=UPDATE, strides=(
            ("core", m * whole if strips == 1 else n * element), ("z", m * whole), ("jc", nb * element), ("ic", mb * whole),
            ("jr", columns * element), ("ir", rows * whole), ("row", whole))))  # fmt: skip
    tile = loop(
        "ir", ceil(mb / rows), Ref(array="packed_left", run=rows * kb * element, strides=(own, ("ir", rows * kb * element))),
        Ref(array="packed_right", run=columns * kb * element, strides=(own, ("jr", columns * kb * element))),
        result)  # fmt: skip
    block = loop("ic", blocks_m, pack_a, loop("jr", ceil(nb / columns), tile))
    panel = loop("jc", blocks_n, loop("pc", blocks_k, pack_b, block))
    return dealt("core", batch, panel) if strips == 1 else dealt("core", strips, loop("z", batch, panel))


def direct(shape: KernelShape, device: Cpu) -> LoopNest:
    """A convolution over blocks of channels: for each row of results of some output channels, the input channels of a part.

    Images lie in blocks of as many channels as a register has lanes, so that a row of pixels of a block is contiguous; `ABREAST`
    blocks of output channels are computed together. A part has so many input channels that their filters stay in half of the
    second level while the rows pass (Georganas et al. 2018, section II).
    """
    layer, kernel = shape.layer, shape.kernel
    assert layer is not None
    element, back = layer.element, layer.phase == "backward_data"
    ci, co = (layer.co, layer.ci) if back else (layer.ci, layer.co)
    (h, w), (ho, wo) = ((layer.ho, layer.wo), (layer.h, layer.w)) if back else ((layer.h, layer.w), (layer.ho, layer.wo))
    lanes = max(1, int(device.core.simd) // LANE_BITS)
    into, out = min(lanes, ci), min(ABREAST * lanes, co)
    blocks_in, blocks_out = ceil(ci / into), ceil(co / out)
    pitch, wide = w * into * element, wo * out * element
    step = max(0, (h - min(layer.kh, h)) * pitch // max(1, ho - 1))
    filters = layer.taps * into * out * element
    parts = min(blocks_in, ceil(blocks_in * filters / (KEPT * float(device.l2.size))))
    each = ceil(blocks_in / parts)
    channel = loop(
        "ci", each, loop("tap", min(layer.kh, h), Ref(array="b", run=pitch, strides=(
            ("image", blocks_in * h * pitch), ("part", each * h * pitch), ("y", step), ("ci", h * pitch), ("tap", pitch)))),
        Ref(array="a", run=filters, strides=(
            ("co", blocks_in * filters), ("part", each * filters), ("ci", filters))))  # fmt: skip
    row = loop("y", ho, channel, Ref(array="c", run=wide, mode=UPDATE if parts > 1 else STORE, strides=(
        ("image", blocks_out * ho * wide), ("co", ho * wide), ("y", wide))))  # fmt: skip
    images = max(1, round(layer.batch * layer.groups / kernel.repeat))
    return shared(("image", images), ("co", blocks_out), loop("part", parts, row))


def unpacked_product(kernel: Kernel) -> LoopNest:
    """A product from operands in blocks, as Winograd's: for some columns at a time all rows, each against the whole of k."""
    operands, batch, m, n = operands_of(kernel), int(kernel.count), int(kernel.m), int(kernel.n)
    left, right, out = (size / max(1, batch) / length for size, length in (
        (kernel.a_bytes if operands.left == "a" else kernel.b_bytes, m),
        (kernel.a_bytes if operands.right == "a" else kernel.b_bytes, n), (kernel.c_bytes, n)))  # fmt: skip
    wide, deep = min(TILES, n), min(LANES, m)
    runs = [max(1, round(size)) for size in (deep * left, wide * right, wide * out)]
    rows = loop(
        "i", ceil(m / deep), Ref(array=operands.left, run=runs[0], strides=(("z", ceil(m / deep) * runs[0]), ("i", runs[0]))),
        Ref(array=operands.right, run=runs[1], strides=(("z", ceil(n / wide) * runs[1]), ("j", runs[1]))))  # fmt: skip
    result = Ref(array="c", run=runs[2], strides=(("z", ceil(n / wide) * runs[2]), ("j", runs[2])), mode=STORE)
    return shared(("j", ceil(n / wide)), ("z", batch), rows, result)
