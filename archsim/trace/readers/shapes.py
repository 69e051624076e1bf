"""Shapes of the results of ONNX's operators, by rules of our own: what an operator's text allows, checked."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from archsim.trace.dims import LARGEST, Shape, Shapes, show
from archsim.trace.readers.layer_shapes import ATTENDED, WINDOWS
from archsim.trace.readers.model import BROADCAST, REDUCTIONS, SAME, Call, Refusal, Unknown, axis_in, broadcast

ShapeRule = Callable[[Call], Shapes]


def shapes_of(call: Call) -> Shapes | None:
    """The shapes of all results; None for an operator that has no rule. Raises Refusal, or Unknown."""
    rule = RULES.get(call.node.kind)
    return None if rule is None else rule(call)


def _same(call: Call) -> list[Shape]:
    return [call.shape()] * max(1, len(call.node.outputs))


def _broadcast(call: Call) -> list[Shape]:
    if not len(call):
        raise Refusal("has no inputs")
    return [broadcast(*(call.shape(i) for i in range(len(call))))]


def _gemm(second: int, bias: int) -> ShapeRule:
    def rule(call: Call) -> list[Shape]:
        a, b = call.shape(0), call.shape(second)
        if len(a) != 2 or len(b) != 2:
            raise Refusal(f"multiplies {show(a)} by {show(b)}; both must have 2 dimensions")
        (made,) = _matmul(0, second)(call)
        if call.has(bias) and broadcast(call.shape(bias), made) != made:
            raise Refusal(f"adds {show(call.shape(bias))} to {show(made)}")
        return [made]

    return rule


def _matmul(first: int, second: int) -> ShapeRule:
    def rule(call: Call) -> list[Shape]:
        a, b = call.shape(first), call.shape(second)
        if not a or not b:
            raise Refusal(f"multiplies {show(a)} by {show(b)}")
        wide_a, wide_b = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
        wide_a, wide_b = ((*wide[:-2], *wide[:-3:-1]) if call.integer(flag, 0) else wide
                          for wide, flag in ((wide_a, "transA"), (wide_b, "transB")))  # fmt: skip
        if wide_a[-1] != wide_b[-2]:
            raise Refusal(f"multiplies {show(a)} by {show(b)}: the inner dimensions are {wide_a[-1]} and {wide_b[-2]}")
        lead = broadcast(wide_a[:-2], wide_b[:-2])
        return [(*lead, *(wide_a[-2:-1] if len(a) > 1 else ()), *(wide_b[-1:] if len(b) > 1 else ()))]

    return rule


def _reshape(call: Call) -> list[Shape]:
    data, wanted = call.shape(), call.integers("shape", at=1)
    if wanted is None:
        raise Refusal("does not say which shape it makes")
    zero = not call.integer("allowzero", 0)
    if zero and any(size == 0 and i >= len(data) for i, size in enumerate(wanted)):
        raise Refusal(f"keeps a dimension that {show(data)} does not have")
    sizes = [data[i] if size == 0 and zero else size for i, size in enumerate(wanted)]
    if sizes.count(-1) > 1 or any(size < -1 for size in sizes):
        raise Refusal(f"makes the shape {show(sizes)}, which no tensor has")
    known = math.prod(size for size in sizes if size != -1)
    total = math.prod(data)
    if -1 in sizes:
        if not known or total % known:
            raise Refusal(f"cannot turn {show(data)} into {show(sizes)}: {total} values do not divide by {known}")
        sizes[sizes.index(-1)] = total // known
    elif known != total:
        raise Refusal(f"cannot turn {show(data)} into {show(sizes)}: {total} and {known} values")
    return [tuple(sizes)]


def _flatten(call: Call) -> list[Shape]:
    data = call.shape()
    axis = call.integer("axis", 1)
    if not -len(data) <= axis <= len(data):
        raise Refusal(f"has the axis {axis}, but its input is {show(data)}")
    axis += len(data) if axis < 0 else 0
    return [(math.prod(data[:axis]), math.prod(data[axis:]))]


def _squeeze(call: Call) -> list[Shape]:
    data, axes = call.shape(), call.integers("axes", at=1)
    gone = {axis_in(axis, len(data)) for axis in axes} if axes is not None else {i for i, size in enumerate(data) if size == 1}
    if any(data[axis] != 1 for axis in gone):
        raise Refusal(f"takes out dimensions {sorted(gone)} of {show(data)}, not all of which are 1")
    return [tuple([size for i, size in enumerate(data) if i not in gone])]


def _unsqueeze(call: Call) -> list[Shape]:
    data, axes = call.shape(), call.integers("axes", (), at=1) or []
    rank = len(data) + len(axes)
    places = {axis_in(axis, rank) for axis in axes}
    if len(places) < len(axes):
        raise Refusal(f"puts in the dimensions {axes}, one of them twice")
    rest = iter(data)
    return [tuple([1 if i in places else next(rest) for i in range(rank)])]


def _transpose(call: Call) -> list[Shape]:
    data = call.shape()
    order = call.integers("perm", range(len(data))[::-1]) or []
    if sorted(order) != list(range(len(data))):
        raise Refusal(f"has the order {order}, which does not name each dimension of {show(data)} once")
    return [tuple([data[i] for i in order])]


def _concat(call: Call) -> list[Shape]:
    shapes = [call.shape(i) for i in range(len(call))]
    if not shapes:
        raise Refusal("has no inputs")
    axis = call.axis("axis", 1)
    if len({len(shape) for shape in shapes}) != 1 or len({(*s[:axis], *s[axis + 1 :]) for s in shapes}) != 1:
        raise Refusal(f"joins along axis {axis} inputs that differ elsewhere: {', '.join(map(show, shapes[:6]))}")
    first = shapes[0]
    return [(*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])]


def split_sizes(call: Call) -> tuple[int, list[int]]:
    """The axis of a split, and the sizes of its parts."""
    data, axis = call.shape(), call.axis()
    sizes = call.integers("split", at=1)
    if sizes is None:
        count = call.integer("num_outputs", len(call.node.outputs))
        if not 0 < count <= max(1, data[axis]):
            raise Refusal(f"makes {count} parts of {data[axis]} along axis {axis}")
        each = -(-data[axis] // count)
        sizes = [each] * (count - 1) + [data[axis] - each * (count - 1)]
    if sum(sizes) != data[axis] or any(size < 0 for size in sizes) or len(sizes) != len(call.node.outputs):
        raise Refusal(f"splits {data[axis]} along axis {axis} into parts of {sizes[:8]} for {len(call.node.outputs)} results")
    return axis, sizes


def _split(call: Call) -> list[Shape]:
    data, (axis, sizes) = call.shape(), split_sizes(call)
    return [(*data[:axis], size, *data[axis + 1 :]) for size in sizes]


def slice_ranges(call: Call) -> dict[int, tuple[int, int, int]]:
    """Of a slice, by axis: first index, number of indices, step."""
    data = call.shape()
    starts, ends = call.integers("starts", at=1), call.integers("ends", at=2)
    if starts is None or ends is None or len(starts) != len(ends):
        raise Refusal("does not say what it takes: starts and ends must be lists of one length")
    axes = call.integers("axes", range(len(starts)), at=3) or []
    steps = call.integers("steps", [1] * len(starts), at=4) or []
    if len(axes) != len(starts) or len(steps) != len(starts) or 0 in steps:
        raise Refusal("has axes or steps that do not fit its starts")
    found = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_in(axis, len(data))
        size = data[at]
        taken = range(*slice(start, end if step > 0 or end >= -size else None, step).indices(size))
        found[at] = (taken.start, len(taken), step)
    return found


def _slice(call: Call) -> list[Shape]:
    data, ranges = call.shape(), slice_ranges(call)
    return [tuple([ranges[i][1] if i in ranges else size for i, size in enumerate(data)])]


def _gather(call: Call) -> list[Shape]:
    data, axis = call.shape(), call.axis()
    if not data:
        raise Refusal("looks up in a single number")
    return [(*data[:axis], *call.shape(1), *data[axis + 1 :])]


def _gather_nd(call: Call) -> list[Shape]:
    data, indices, lead = call.shape(), call.shape(1), call.integer("batch_dims", 0)
    if not indices or not 0 <= lead < len(indices) or lead + indices[-1] > len(data):
        raise Refusal(f"looks up {show(indices)} in {show(data)}")
    return [(*indices[:-1], *data[lead + indices[-1] :])]


def pads_of(call: Call) -> tuple[list[int], list[int]]:
    """Padding before and after each dimension; negative where values are cut off."""
    data, pads = call.shape(), call.integers("pads", at=1)
    if pads is None:
        pads = call.integers("paddings")
    axes = [axis_in(axis, len(data)) for axis in call.integers("", range(len(data)), at=3) or []]
    if pads is None or len(pads) != 2 * len(axes):
        raise Refusal(f"has {len(pads or [])} paddings for the dimensions {axes} of {show(data)}")
    before, after = [0] * len(data), [0] * len(data)
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[place + len(axes)]
    return before, after


def _pad(call: Call) -> list[Shape]:
    before, after = pads_of(call)
    return [tuple([b + size + a for b, size, a in zip(before, call.shape(), after, strict=True)])]


def _expand(call: Call) -> list[Shape]:
    wanted = call.integers("shape", at=1)
    if wanted is None:
        raise Refusal("does not say which shape it makes")
    return [broadcast(call.shape(), tuple(wanted))]


def _tile(call: Call) -> list[Shape]:
    data, times = call.shape(), call.integers("repeats", at=1)
    if times is None or len(times) != len(data):
        raise Refusal(f"repeats {show(data)} {times} times")
    return [tuple([size * count for size, count in zip(data, times, strict=True)])]


def _of_value(call: Call) -> list[Shape]:
    sizes = call.integers("", at=0)
    return [tuple(sizes or ())]


def _range(call: Call) -> list[Shape]:
    ends = [call.value(i) for i in range(3)]
    if any(value is None or value.size != 1 for value in ends):
        raise Unknown("counts to a number that depends on what the network is given")
    first, last, step = (float(np.ravel(value)[0]) for value in ends if value is not None)
    if not step or not all(map(math.isfinite, (first, last, step))):
        raise Refusal(f"counts from {first:g} to {last:g} in steps of {step:g}")
    return [(max(0, math.ceil((last - first) / step)),)]


def _reduce(call: Call) -> list[Shape]:
    data = call.shape()
    axes = call.integers("axes", at=1)
    if not axes:
        axes = [] if call.integer("noop_with_empty_axes", 0) else list(range(len(data)))
    gone = {axis_in(axis, len(data)) for axis in axes}
    keep = call.integer("keepdims", 1)
    return [tuple([1 if i in gone else size for i, size in enumerate(data) if keep or i not in gone])]


def _arg(call: Call) -> list[Shape]:
    data, axis = call.shape(), call.axis()
    one = (1,) if call.integer("keepdims", 1) else ()
    return [(*data[:axis], *one, *data[axis + 1 :])]


def _top_k(call: Call) -> list[Shape]:
    data, axis, count = call.shape(), call.axis("axis", -1), call.integers("k", at=1)
    if isinstance(call.attribute("k"), int):
        count = [call.integer("k", 1)]
    if not count or not 0 <= count[0] <= data[axis]:
        raise Refusal(f"takes the {count} largest of {show(data)}")
    found = (*data[:axis], count[0], *data[axis + 1 :])
    return [found, found]


def _one_hot(call: Call) -> list[Shape]:
    data, depth = call.shape(), call.integers("", at=1)
    axis = axis_in(call.integer("axis", -1), len(data) + 1)
    return [(*data[:axis], (depth or [1])[0], *data[axis:])]


def _resize(call: Call) -> list[Shape]:
    data = call.shape()
    at = 1 if call.node.kind == "Upsample" or len(call) == 2 else 2
    if call.has(3) and call.node.kind == "Resize":
        sizes = call.integers("", at=3) or []
        axes = [axis_in(axis, len(data)) for axis in call.attribute("axes") or range(len(data))]
        if len(sizes) != len(axes):
            raise Refusal(f"has {len(sizes)} sizes for {show(data)}")
        made = dict(zip(axes, sizes, strict=True))
        return [tuple([made.get(i, size) for i, size in enumerate(data)])]
    given = call.value(at)
    scales = call.attribute("scales") or (None if given is None else np.ravel(given).tolist())
    if scales is None:
        raise Unknown("resizes by numbers that depend on what the network is given")
    axes = [axis_in(axis, len(data)) for axis in call.attribute("axes") or range(len(data))]
    if len(scales) != len(axes) or not all(math.isfinite(s) and s > 0 for s in scales):
        raise Refusal(f"resizes {show(data)} by {scales}")
    made = {axis: math.floor(data[axis] * scale + 1e-6) for axis, scale in zip(axes, scales, strict=True)}
    return [tuple([made.get(i, size) for i, size in enumerate(data)])]


def _blocks(call: Call) -> list[Shape]:
    size = call.integer("blocksize", 0)
    if len(call.shape()) != 4 or size < 1:
        raise Refusal(f"moves blocks of {size} in {show(call.shape())}")
    n, c, h, w = call.shape()
    deep = call.node.kind == "DepthToSpace"
    if (c % (size * size)) if deep else (h % size or w % size):
        raise Refusal(f"moves blocks of {size} in {show(call.shape())}, which it does not divide")
    return [(n, c // size**2, h * size, w * size) if deep else (n, c * size**2, h // size, w // size)]


def _einsum(call: Call) -> list[Shape]:
    from archsim.trace.readers.layer_shapes import parsed

    return [parsed(call).result]


def _norm(call: Call) -> list[Shape]:
    data = call.shape()
    if call.has(1) and call.node.kind in ("BatchNormalization", "InstanceNormalization") and call.shape(1) != data[1:2]:
        raise Refusal(f"scales {show(data)} by {show(call.shape(1))}, which is not one value for each channel")
    return [data] + [call.shape(1) if call.has(1) else data] * (len(call.node.outputs) - 1)


def _narrow_product(call: Call) -> list[Shape]:
    data, k, n = call.shape(), call.integer("K", 0), call.integer("N", 0)
    if not data or data[-1] != k or n < 1:
        raise Refusal(f"multiplies {show(data)} by weights of {n} rows of {k}")
    return [(*data[:-1], n)]


def _embedded(call: Call) -> list[Shape]:
    ids, table = call.shape(), call.shape(2)
    return [(*ids, table[1]), ids[:1], (*ids, table[1])]


def _sampled(call: Call) -> list[Shape]:
    data, grid = call.shape(), call.shape(1)
    if len(data) < 3 or len(grid) != len(data) or grid[0] != data[0] or grid[-1] != len(data) - 2:
        raise Refusal(f"samples {show(data)} at {show(grid)}, which holds no places in it")
    return [(*data[:2], *grid[1:-1])]


def _scattered(call: Call) -> list[Shape]:
    return [call.shape()]


def _bags(call: Call) -> list[Shape]:
    return [(call.shape(2)[0] - call.integer("last", 0), call.shape()[1])]


RULES: dict[str, ShapeRule] = {
    **dict.fromkeys(SAME, _same), **dict.fromkeys(BROADCAST, _broadcast), **dict.fromkeys(REDUCTIONS, _reduce), **WINDOWS,
    "Gemm": _gemm(1, 2), "QGemm": _gemm(3, 6), "FusedMatMul": _matmul(0, 1), "MatMulNBits": _narrow_product,
    "MatMul": _matmul(0, 1), "MatMulInteger": _matmul(0, 1), "QLinearMatMul": _matmul(0, 3),
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose,
    "Concat": _concat, "Split": _split, "Slice": _slice, "Gather": _gather, "GatherElements": lambda call: [call.shape(1)],
    "GatherND": _gather_nd, "ScatterND": _scattered, "ScatterElements": _scattered, "Scatter": _scattered, "Written": _scattered,
    "EmbeddingBag": _bags, "Pad": _pad,
    "Expand": _expand, "Tile": _tile, "ConstantOfShape": _of_value, "RandomNormal": _of_value, "Range": _range,
    "Shape": lambda call: [(len(range(*slice(call.integer("start", 0), call.attribute("end")).indices(len(call.shape())))),)],
    "Size": lambda call: [()], "ArgMax": _arg, "ArgMin": _arg, "TopK": _top_k, "OneHot": _one_hot,
    "Resize": _resize, "Upsample": _resize, "DepthToSpace": _blocks, "SpaceToDepth": _blocks, "Einsum": _einsum,
    "BatchNormalization": _norm, "InstanceNormalization": _norm, "LayerNormalization": _norm, "GroupNormalization": _norm,
    "RMSNormalization": _norm, "SimplifiedLayerNormalization": _norm, **ATTENDED, "MoE": _scattered,
    "EmbedLayerNormalization": _embedded, "GridSample": _sampled,
    "DynamicQuantizeLinear": lambda call: [call.shape(), (), ()],
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), lambda call: [broadcast(call.shape(0), call.shape(3))]),
}  # fmt: skip


def possible(shape: Shape) -> bool:
    """Whether a tensor can have this shape."""
    return all(0 <= size <= LARGEST for size in shape) and math.prod(shape) <= LARGEST
