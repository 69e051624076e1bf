"""The loop nest of every kernel that is no tiled product, by its role: which bytes it loads and stores, in which order.

A nest is written for the CTAs of a GPU (`wide` results of one CTA side by side) or for the loops of a core. Arrays: `a`
parameters, `b` what the op before has written, `c` the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod

from archsim.cache.access import LOAD, STORE, UPDATE, LoopNest, NestedLoop, Ref, dealt, loop
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel
from archsim.lower.layer import Layer, layer_of, untransposed
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp

CTA = 256  # results of one CTA of an element-wise kernel
PIECE = 512  # B that a core reads of one array before it goes on to the next: some unrolled iterations of a loop
SIDE = 32  # rows and columns of the tile through which a transpose goes
ROWS = 4  # rows of a matrix that a matrix-vector product multiplies together
DEPTH = 512  # B of each of them at a time
LANES = 16  # channels of a block of a direct convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelShape:
    """A kernel of an op, as its addresses depend on it. element: size of a value [B]; gpu: whether CTAs run it"""

    op: BoundOp
    kernel: Kernel
    element: int
    gpu: bool

    @property
    def layer(self) -> Layer | None:
        """The geometry of a convolution."""
        plain = untransposed(self.op)
        return layer_of(plain, self.element) if plain.kind.op == "conv2d" else None

    @property
    def piece(self) -> int:
        """Bytes of an array that a CTA or a core reads at a time [B]."""
        return int(CTA * max(1.0, self.kernel.operand_b)) if self.gpu else PIECE


Write = Callable[[KernelShape], LoopNest]


def nest_of(shape: KernelShape) -> LoopNest:
    """The loop nest of a kernel, with what ops before have left in the caches.

    Parameters come from memory. On a CPU the buffer of the result was in use before the tensor that is read; on a GPU, whose
    stores fetch nothing, it does not matter.
    """
    nest = NESTS[shape.kernel.role](shape)
    return LoopNest(body=nest.body, warm=touched_before(shape, nest))


def touched_before(shape: KernelShape, nest: LoopNest) -> tuple[tuple[str, float], ...]:
    """What ops before have touched of the arrays of a nest, with sizes [B], the last one last.

    Tables, the optimiser's tensors, and gradients of parameters that one launch writes were not in use just before.
    """
    kernel, used = shape.kernel, set(nest.arrays)
    if kernel.role is Role.UPDATE:
        return ()
    own = shape.op.phase == "backward_filter" and kernel.repeat <= 1
    sizes = {"c": 0.0 if shape.gpu or own else kernel.c_bytes, "b": 0.0 if kernel.role is Role.GATHER else kernel.b_bytes}
    return tuple([(name, float(size)) for name, size in sizes.items() if name in used and size > 0])


def stream(shape: KernelShape) -> LoopNest:
    """Every tensor once, from its begin to its end: all arrays advance together, each by its share."""
    kernel = shape.kernel
    sizes = {"a": kernel.a_bytes, "b": kernel.b_bytes, "c": kernel.c_bytes}
    return _streams(sizes, shape.piece, in_place=kernel.role in (Role.BIAS, Role.UPDATE))


def _streams(sizes: dict[str, float], piece: int, in_place: bool = False) -> LoopNest:
    """Arrays of these sizes [B] side by side. In place the result is written where as much of the input was read."""
    if in_place and sizes["b"] >= sizes["c"] > 0:
        sizes = {"a": sizes["a"], "c": sizes["b"] - sizes["c"], "b": sizes["c"]}
        modes = {"a": LOAD, "b": UPDATE, "c": LOAD}
    else:
        modes = {"a": LOAD, "b": LOAD, "c": UPDATE if in_place else STORE}
    largest = max(sizes.values())
    if largest <= 0:
        return LoopNest(body=())
    trips = max(1, ceil(largest / piece))
    runs = {name: max(1, round(size / trips)) for name, size in sizes.items() if size > 0}
    refs = tuple([Ref(array=name, run=run, strides=(("i", run),), mode=modes[name]) for name, run in runs.items()])
    return dealt("i", trips, *refs)


def passes(shape: KernelShape) -> LoopNest:
    """An op over its tensors: windows of pixels or channels, rows that are read again, or a plain stream."""
    op, kernel = shape.op, shape.kernel
    if op.phase == FORWARD and hasattr(op.kind, "kernel") and len(op.shape) == 4:
        return _pooled(shape)
    if op.phase == FORWARD and hasattr(op.kind, "size") and len(op.shape) == 4:
        return _across_channels(shape)
    if kernel.gpu.row > 0 and kernel.gpu.row_reads > 1 and kernel.c_bytes > 0:
        return _rows(shape)
    if not shape.gpu and kernel.b_bytes == 0 and kernel.c_bytes > 0:  # its result is the line that it has read
        return _streams({"a": kernel.a_bytes, "b": 0.0, "c": kernel.c_bytes}, shape.piece, in_place=True)
    return stream(shape)


def _windowed(
    shape: KernelShape, planes: int, size: tuple[int, int], out: tuple[int, int], taps: int, weights: int = 0
) -> LoopNest:
    """Windows of `taps` rows over planes of pixels; a CTA has some rows of results, a core takes row after row.

    weights: bytes of the filter of each plane [B]
    """
    element, (h, w), (ho, wo) = shape.element, size, out
    rows = max(1, min(ho, CTA // wo)) if shape.gpu else 1
    blocks = ceil(ho / rows)
    pitch, down = w * element, min(taps, h)
    step = max(0, (h - down) * pitch // max(1, ho - 1)) if ho > 1 else 0  # between rows of results
    plane = Ref(array="b", run=pitch, strides=(("plane", h * pitch), ("block", rows * step), ("tap", pitch), ("row", step)))
    reads = loop("tap", down, loop("row", rows, plane))
    written = Ref(array="c", run=rows * wo * element, mode=STORE,
                  strides=(("plane", ho * wo * element), ("block", rows * wo * element)))  # fmt: skip
    filters = [Ref(array="a", run=weights, strides=(("plane", weights),))] if weights else []
    inner = loop("block", blocks, *filters, reads, written)
    if not shape.gpu or blocks == 1:
        return dealt("plane", planes, inner)
    return _flat(inner, planes, blocks)


def _flat(inner: NestedLoop, planes: int, blocks: int) -> LoopNest:
    """The blocks of all planes as CTAs of one grid: a loop over both, each of whose steps is the mean of a plane's."""
    def flat(node: NestedLoop | Ref) -> NestedLoop | Ref:
        if isinstance(node, NestedLoop):
            return loop(node.name, node.trips, *map(flat, node.body))
        strides = tuple([(name, stride) for name, stride in node.strides if name not in ("plane", "block")])
        return Ref(array=node.array, run=node.run, begin=node.begin, mode=node.mode,
                   strides=(("cta", max(1, node.stride("plane") // blocks)), *strides))  # fmt: skip

    return dealt("cta", planes * blocks, *map(flat, inner.body))


def _pooled(shape: KernelShape) -> LoopNest:
    op = shape.op
    n, c, h, w = op.input_shapes[0]
    return _windowed(shape, n * c, (h, w), (op.shape[2], op.shape[3]), int(op.kind.kernel[0]))  # type: ignore[attr-defined]


def _across_channels(shape: KernelShape) -> LoopNest:
    """Windows of channels (LRN): each result reads the same pixel of `size` channels."""
    n, c, h, w = shape.op.input_shapes[0]
    size, plane = int(shape.op.kind.size), h * w * shape.element  # type: ignore[attr-defined]
    pieces = ceil(plane / shape.piece)
    run = ceil(plane / pieces)
    strides = (("cta", c * run), ("channel", run))  # channels of a piece side by side: as many lines, in the same order
    read = loop("tap", min(size, c), Ref(array="b", run=run, strides=(*strides, ("tap", run))))
    body = loop("channel", c, read, Ref(array="c", run=run, strides=strides, mode=STORE))
    return dealt("cta", n * pieces, body)


def _rows(shape: KernelShape) -> LoopNest:
    """Rows that are read a second time and more, when their sums are known (normalisation, softmax)."""
    kernel = shape.kernel
    row, piece = kernel.gpu.row * shape.element, kernel.gpu.row_piece * shape.element
    reads = max(1, round(kernel.gpu.row_reads))
    arrays = max(1, round(kernel.b_bytes / kernel.gpu.row_reads / kernel.c_bytes))
    count = max(1, round(kernel.c_bytes / row))
    pieces = max(1, round(row / piece))
    apart = count * piece if pieces > 1 else row  # of a channel the images lie apart, of an axis nothing does
    run = max(1, min(int(piece), shape.piece))
    inside = ceil(piece / run)
    strides = (("row", int(piece if pieces > 1 else row)), ("image", int(apart)), ("j", run))

    def read(*refs: Ref) -> NestedLoop:
        return loop("image", pieces, loop("j", inside, *refs))

    inputs = tuple([Ref(array="b", run=run, strides=strides, begin=int(i * kernel.c_bytes)) for i in range(arrays)])
    again = [loop("pass", reads - 1, read(*inputs))] if reads > 1 else []
    last = read(*inputs, Ref(array="c", run=run, strides=strides, mode=STORE))
    return dealt("row", count, *again, last)


def depthwise(shape: KernelShape) -> LoopNest:
    """Sums of taps, one channel each. A gradient of filters is a stream: it reads both tensors once."""
    layer = shape.layer
    if layer is None or layer.phase == "backward_filter":
        return stream(shape)
    size, out = ((layer.ho, layer.wo), (layer.h, layer.w)) if layer.phase == "backward_data" else (
        (layer.h, layer.w), (layer.ho, layer.wo))  # fmt: skip
    planes = max(1, round(layer.batch * layer.groups / shape.kernel.repeat))
    return _windowed(shape, planes, size, out, layer.kh, weights=layer.taps * layer.element)


def unfolded(shape: KernelShape) -> LoopNest:
    """im2col: for each channel and tap a matrix row of pixels; col2im adds such rows to the image."""
    layer, kernel = shape.layer, shape.kernel
    if layer is None:
        return stream(shape)
    element, channels, folds = layer.element, layer.groups * layer.ci, kernel.role is Role.COL2IM
    image = max(1, round((kernel.c_bytes if folds else kernel.b_bytes) / (channels * layer.h * layer.w * element)))
    pitch, width = layer.w * element, layer.ho * layer.wo * element
    run = min(pitch, layer.wo * layer.sw * element)
    name, column = ("c", "b") if folds else ("b", "c")
    pixels = Ref(array=name, run=run, mode=UPDATE if folds else LOAD,
                 strides=(("plane", layer.h * pitch), ("ty", pitch), ("tx", element), ("y", layer.sh * pitch)))  # fmt: skip
    matrix = Ref(array=column, run=layer.wo * element, mode=LOAD if folds else STORE, strides=(
        ("plane", layer.taps * width), ("ty", layer.kw * width), ("tx", width), ("y", layer.wo * element)))  # fmt: skip
    down = max(1, min(layer.ho, ceil(layer.h / layer.sh)))
    inner = loop("y", down, *((matrix, pixels) if folds else (pixels, matrix)))
    for tap, trips in (("tx", layer.kw), ("ty", layer.kh)):
        inner = loop(tap, trips, inner)
    return dealt("plane", image * channels, inner)


def transposed(shape: KernelShape) -> LoopNest:
    """A copy from one layout to another, tile by tile: rows of pixels are read, rows of channels written."""
    kernel, element = shape.kernel, shape.element
    channels = shape.op.input_shapes[0][1] if len(shape.op.input_shapes[0]) > 1 else 1
    pixels = prod(shape.op.input_shapes[0][2:])
    size = min(kernel.b_bytes, kernel.c_bytes)
    wide, deep = min(SIDE, pixels), min(SIDE, channels)
    if wide < SIDE // 4 or deep < SIDE // 4 or kernel.b_bytes != kernel.c_bytes:
        return stream(shape)
    across, down = ceil(pixels / wide), ceil(channels / deep)
    images = max(1, round(size / (channels * pixels * element)))
    read = Ref(array="b", run=wide * element, strides=(
        ("image", channels * pixels * element), ("down", deep * pixels * element), ("across", wide * element),
        ("r", pixels * element)))  # fmt: skip
    written = Ref(array="c", run=deep * element, mode=STORE, strides=(
        ("image", channels * pixels * element), ("across", wide * channels * element), ("down", deep * element),
        ("r", channels * element)))  # fmt: skip
    inner = loop("down", down, loop("r", deep, read), loop("r", wide, written))
    return shared(("image", images), ("across", across), inner)


def shared(one: tuple[str, int], other: tuple[str, int], *body: NestedLoop | Ref) -> LoopNest:
    """Two loops around a body, the longer one outside, whose iterations are shared."""
    outer, inner = (one, other) if one[1] >= other[1] else (other, one)
    return dealt(*outer, loop(*inner, *body))


def gathered(shape: KernelShape) -> LoopNest:
    """Rows looked up in a table, in no order: every second row here, so that none shares a line with the one before."""
    kernel, row = shape.kernel, int(shape.op.shape[-1]) * shape.element
    trips = max(1, round(kernel.c_bytes / row))
    refs = (Ref(array="b", run=row, strides=(("i", 2 * row),)), Ref(array="c", run=row, strides=(("i", row),), mode=STORE))
    return dealt("i", trips, *refs)


def matrix_vector(shape: KernelShape) -> LoopNest:
    """Some rows of the matrix at a time, each value once; the vectors are read again for every such block of rows."""
    kernel = shape.kernel
    big, small = ("a", "b") if kernel.a_bytes >= kernel.b_bytes else ("b", "a")
    size, vector = max(kernel.a_bytes, kernel.b_bytes), min(kernel.a_bytes, kernel.b_bytes)
    if size <= 0 or vector <= 0 or kernel.c_bytes <= 0:
        return stream(shape)
    thin = max(1.0, round((vector * kernel.c_bytes / size) ** 0.5 / shape.element))  # vectors: k n m n / (m k) = n^2
    depth = vector / thin
    rows = max(1, round(size / depth))
    block, run = min(ROWS, rows), int(min(DEPTH, depth))
    steps, blocks = max(1, round(depth / run)), ceil(rows / block)
    matrix = loop("r", block, Ref(array=big, run=run, strides=(("rows", int(block * depth)), ("r", int(depth)), ("k", run))))
    vectors = loop("v", int(thin), Ref(array=small, run=run, strides=(("v", int(depth)), ("k", run))))
    out = max(1, round(kernel.c_bytes / blocks))
    result = Ref(array="c", run=out, strides=(("rows", out),), mode=STORE)
    return dealt("rows", blocks, loop("k", steps, matrix, vectors), result)


def nothing(shape: KernelShape) -> LoopNest:
    """A kernel that touches no tensor of its own."""
    return LoopNest(body=())


def attention(shape: KernelShape) -> LoopNest:
    """Tiles of queries, each of which meets the keys and values of its head, block by block."""
    kernel = shape.kernel
    element = shape.element
    heads, queries, keys, features = (max(1, int(size)) for size in (kernel.count, kernel.m, kernel.k, kernel.n))
    side = min(64, queries)
    tiles = ceil(queries / side)
    block = min(64, keys)
    row = features * element
    groups = max(1, round(heads * 2 * keys * row / max(1.0, kernel.a_bytes)))  # heads that share keys
    head = 2 * keys * row // groups
    strides = ("head", head), ("block", block * row)
    loads = loop("block", ceil(keys / block), *[Ref(array="a", run=block * row, strides=strides, begin=begin)
                                                for begin in (0, keys * row)])  # fmt: skip
    own = (("head", queries * row), ("tile", side * row))
    return dealt("head", heads, loop("tile", tiles, Ref(array="b", run=side * row, strides=own), loads,
                                     Ref(array="c", run=side * row, strides=own, mode=STORE)))  # fmt: skip


# how a kernel without tiles addresses its tensors; a kernel on a CPU that multiplies has its own (`archsim.cache.cpu_products`)
NESTS: dict[Role, Write] = {
    Role.PRODUCT: stream, Role.CONVOLUTION: stream, Role.SCATTER: stream, Role.WINOGRAD: stream, Role.ATTENTION: attention,
    Role.MATRIX_VECTOR: matrix_vector, Role.DEPTHWISE: depthwise, Role.SOFTMAX: nothing, Role.GATES: stream,
    Role.TRANSFORM: stream, Role.IM2COL: unfolded, Role.COL2IM: unfolded, Role.LAYOUT: transposed, Role.FILL: stream,
    Role.BIAS: stream, Role.BIAS_GRADIENT: stream, Role.QUANTISE: stream, Role.STORE: stream, Role.GATHER: gathered,
    Role.UPDATE: stream, Role.PASS: passes,
}  # fmt: skip
