"""Layers of Caffe as ops of a trace: a function for each type."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from archsim.base.errors import Unsupported
from archsim.trace.dims import Shape, short, show
from archsim.trace.kind import Kind
from archsim.trace.kinds.activation import LeakyRelu, Relu, Sigmoid, Tanh
from archsim.trace.kinds.convolution import Conv2d, ConvTranspose2d, windows
from archsim.trace.kinds.dense import BiasAdd, Embedding, Linear
from archsim.trace.kinds.general import ElementWise, Gather, Reduce, Traffic
from archsim.trace.kinds.normalise import BatchNorm, Lrn, RmsNorm, Softmax
from archsim.trace.kinds.pointwise import Add, Dropout, Mul, Scale
from archsim.trace.kinds.pooling import AvgPool, GlobalAvgPool, MaxPool
from archsim.trace.kinds.recurrent import Lstm, Rnn
from archsim.trace.kinds.shaping import Concat, Slice, Transpose
from archsim.trace.readers.caffe_layer import CaffeLayer, first


def _conv(layer: CaffeLayer) -> None:
    p = layer.parameters("convolution_param")
    n, c, h, w = layer.image()
    kernel = layer.pair(p, "kernel_size", "kernel", 0, 1)
    stride, pad = layer.pair(p, "stride", "stride", 1, 1), layer.pair(p, "pad", "pad", 0, 0)
    dilation = layer.pair(p, "dilation", "dilation", 1, 1)
    channels = layer.whole(p, "num_output", 0, 1)
    groups = c if layer.kind == "DepthwiseConvolution" else layer.whole(p, "group", 1, 1)
    bias = bool(first(p, "bias_term", True))
    if layer.kind == "Deconvolution":
        turned = ConvTranspose2d(kernel=kernel, stride=stride, pad=pad, dilation=dilation, groups=groups, bias=bias)
        try:
            return _void(layer.add(turned, shape=turned.shape([layer.shape()], (n, channels))))
        except ValueError as error:
            raise layer.refused(str(error)) from None
    kind = Conv2d(kernel=kernel, stride=stride, pad=pad, dilation=dilation, groups=groups, bias=bias)
    layer.add(kind, shape=(n, channels, *_windows(layer, (h, w), kernel, stride, pad, dilation)))


def _windows(
    layer: CaffeLayer, sizes: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int],
    dilation: tuple[int, int] = (1, 1), ceil: bool = False,
) -> Shape:  # fmt: skip
    try:
        return tuple([windows(size, k, s, q, q, d, ceil)
                      for size, k, s, q, d in zip(sizes, kernel, stride, pad, dilation, strict=True)])  # fmt: skip
    except ValueError as error:
        raise layer.refused(str(error)) from None


def _pool(layer: CaffeLayer) -> None:
    p = layer.parameters("pooling_param")
    n, c, h, w = layer.image()
    largest = str(first(p, "pool", "MAX")) in ("MAX", "0")
    if first(p, "global_pooling", False) is True:
        kind: Kind = Reduce(function="max", axes=(2, 3)) if largest else GlobalAvgPool()
        return _void(layer.add(kind, shape=(n, c, 1, 1)))
    kernel = layer.pair(p, "kernel_size", "kernel", 0, 1)
    stride, pad = layer.pair(p, "stride", "stride", 1, 1), layer.pair(p, "pad", "pad", 0, 0)
    ceil = str(first(p, "round_mode", "CEIL")) in ("CEIL", "0")  # a partial window at the far edge counts
    made = _windows(layer, (h, w), kernel, stride, pad, ceil=ceil)
    words: dict[str, Any] = {"kernel": kernel, "stride": stride, "pad": pad, "ceil_mode": ceil}
    layer.add(MaxPool(**words) if largest else AvgPool(**words), shape=(n, c, *made))
    return None


def _void(made: object) -> None:
    """Nothing, whatever was made."""


def _linear(layer: CaffeLayer) -> None:
    p = layer.parameters("inner_product_param")
    shape, axis = layer.shape(), layer.axis(p)
    rows, features = shape[:axis] or (1,), math.prod(shape[axis:])
    held = layer.net.draft.view(layer.tensor(), (*rows, features), f"{layer.name}/flat")
    made = (*rows, layer.whole(p, "num_output", 0, 1))
    layer.add(Linear(bias=bool(first(p, "bias_term", True))), held, shape=made)


def _lrn(layer: CaffeLayer) -> None:
    p = layer.parameters("lrn_param")
    layer.add(Lrn(size=layer.whole(p, "local_size", 5, 1)), shape=layer.shape())


def _relu(layer: CaffeLayer) -> None:
    slope = first(layer.parameters("relu_param"), "negative_slope", 0)
    layer.add(LeakyRelu() if slope or layer.kind == "PReLU" else Relu(), shape=layer.shape())


def _alike(kind: Kind) -> Callable[[CaffeLayer], None]:
    return lambda layer: _void(layer.add(kind, shape=layer.shape()))


def _dropout(layer: CaffeLayer) -> None:
    ratio = first(layer.parameters("dropout_param"), "dropout_ratio", 0.5)
    layer.add(Dropout(ratio=float(ratio) if isinstance(ratio, int | float) else 0.5), shape=layer.shape())


def _concat(layer: CaffeLayer) -> None:
    p = layer.parameters("concat_param")
    axis = layer.axis({"axis": p.get("axis") or p.get("concat_dim") or [1]})
    shapes = [layer.shape(i) for i in range(len(layer.bottoms))]
    if len({(*s[:axis], *s[axis + 1 :]) for s in shapes}) != 1:
        raise layer.refused(f"joins along axis {axis} inputs that differ elsewhere: {', '.join(map(show, shapes[:6]))}")
    made = (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])
    layer.add(Concat(axis=axis), *(layer.tensor(i) for i in range(len(shapes))), shape=made)


def _eltwise(layer: CaffeLayer) -> None:
    operation = str(first(layer.parameters("eltwise_param"), "operation", "SUM"))
    kinds: dict[str, Kind] = {"SUM": Add(), "1": Add(), "PROD": Mul(), "0": Mul()}
    tensors = [layer.tensor(i) for i in range(len(layer.bottoms))]
    layer.add(kinds.get(operation, ElementWise(function="max")), *tensors, shape=layer.shape())


def _softmax(layer: CaffeLayer) -> None:
    axis = layer.axis(layer.parameters("softmax_param"))
    rank = len(layer.shape())
    layer.add(Softmax(axis=-1 if axis == rank - 1 else axis), shape=layer.shape())


def _scale(layer: CaffeLayer) -> None:
    p = layer.parameters("scale_param")
    if len(layer.bottoms) > 1:
        first_, second = layer.shape(0), layer.shape(1)
        wide = (*second, *[1] * (len(first_) - len(second)))
        other = layer.net.draft.view(layer.tensor(1), wide, f"{layer.name}/factor")
        return _void(layer.add(Mul(), layer.tensor(0), other, shape=first_))
    if isinstance(layer.maker(), BatchNorm):  # whose scale and shift they are
        return layer.end(layer.tensor())
    held = layer.add(Scale(axis=layer.axis(p)), shape=layer.shape(), part="" if not first(p, "bias_term", False) else "scale")
    if first(p, "bias_term", False):
        layer.add(BiasAdd(axis=layer.axis(p)), held, shape=layer.shape())
    return None


def _flatten(layer: CaffeLayer) -> None:
    shape = layer.shape()
    axis = layer.axis(layer.parameters("flatten_param"))
    layer.end(layer.net.draft.view(layer.tensor(), (*shape[:axis], math.prod(shape[axis:])), layer.name))


def _reshape(layer: CaffeLayer) -> None:
    wanted = first(layer.parameters("reshape_param"), "shape", {})
    dims = wanted.get("dim", []) if isinstance(wanted, dict) else []
    shape = layer.shape()
    sizes = [shape[i] if size == 0 and i < len(shape) else size for i, size in enumerate(dims)]
    known = math.prod(size for size in sizes if isinstance(size, int) and size != -1)
    if not all(isinstance(size, int) for size in sizes) or known < 1 or sizes.count(-1) > 1 or math.prod(shape) % known:
        raise layer.refused(f"turns {show(shape)} into {short(dims)}")
    made = tuple([math.prod(shape) // known if size == -1 else size for size in sizes])
    layer.end(layer.net.draft.view(layer.tensor(), made, layer.name))


def _split(layer: CaffeLayer) -> None:
    for top in range(len(layer.tops)):
        layer.end(layer.tensor(), top)


def _slice(layer: CaffeLayer) -> None:
    p = layer.parameters("slice_param")
    axis = layer.axis({"axis": p.get("axis") or p.get("slice_dim") or [1]})
    shape = layer.shape()
    points = [point for point in p.get("slice_point", []) if isinstance(point, int)]
    if not points and shape[axis] % max(1, len(layer.tops)) == 0:
        points = [shape[axis] // len(layer.tops) * i for i in range(1, len(layer.tops))]
    ends = [0, *points, shape[axis]]
    if len(ends) != len(layer.tops) + 1 or sorted(set(ends)) != ends:
        raise layer.refused(f"cuts {shape[axis]} along axis {axis} at {points} into {len(layer.tops)} parts")
    for top, (start, stop) in enumerate(pairwise(ends)):
        made = (*shape[:axis], stop - start, *shape[axis + 1 :])
        name = layer.add(Slice(axis=axis, start=start, stop=stop, whole=True), shape=made, part=f"part{top}")
        layer.end(name, top)


def _permute(layer: CaffeLayer) -> None:
    shape = layer.shape()
    order = [axis for axis in layer.parameters("permute_param").get("order", []) if isinstance(axis, int)]
    order += [axis for axis in range(len(shape)) if axis not in order]
    if sorted(order) != list(range(len(shape))):
        raise layer.refused(f"has the order {order} for {show(shape)}")
    layer.add(Transpose(order=tuple(order)), shape=tuple([shape[i] for i in order]))


def _embed(layer: CaffeLayer) -> None:
    p = layer.parameters("embed_param")
    words, features = layer.whole(p, "input_dim", 0, 1), layer.whole(p, "num_output", 0, 1)
    layer.add(Embedding(vocabulary=words, features=features), shape=(*layer.shape(), features))


def _recurrent(layer: CaffeLayer) -> None:
    hidden = layer.whole(layer.parameters("recurrent_param"), "num_output", 0, 1)
    shape = layer.shape()
    if len(shape) < 3:
        raise layer.refused(f"needs an input of the form [T, N, ...], got {show(shape)}")
    held = layer.net.draft.view(layer.tensor(), (*shape[:2], math.prod(shape[2:])), f"{layer.name}/steps")
    kind: Kind = Lstm(hidden=hidden) if layer.kind == "LSTM" else Rnn(hidden=hidden)
    layer.add(kind, held, shape=(*shape[:2], hidden))


def _function(each: int = 1) -> Callable[[CaffeLayer], None]:
    def rule(layer: CaffeLayer) -> None:
        layer.add(ElementWise(function=layer.kind.lower(), each=each), shape=layer.shape())

    return rule


def _reduction(layer: CaffeLayer) -> None:
    shape, axis = layer.shape(), layer.axis(layer.parameters("reduction_param"), 0)
    kept = (*shape[:axis], *[1] * (len(shape) - axis))
    held = layer.add(Reduce(function="sum", axes=tuple(range(axis, len(shape)))), shape=kept, part="sum")
    layer.end(layer.net.draft.view(held, shape[:axis] or (1,), layer.name))


def _crop(layer: CaffeLayer) -> None:
    axis = layer.axis(layer.parameters("crop_param"), 2)
    made = (*layer.shape(0)[:axis], *layer.shape(1)[axis:])
    layer.add(Gather(function="crop"), layer.tensor(0), shape=made)


def unknown(layer: CaffeLayer) -> None:
    """A layer that nobody here knows, by its registered function; a file does not say what shape it makes."""
    from archsim.trace.registry import registered

    own = registered(layer.kind)
    if own is None:
        raise Unsupported(f"{layer.net.path}: layer {short(layer.name)} is of the type {short(layer.kind)}, which is not read: "
                          f"archsim.register_op({layer.kind!r}, work, shape=...) says what it costs")  # fmt: skip
    shapes = [layer.shape(i) for i in range(len(layer.bottoms))]
    made = layer.shape() if own.shape is None else tuple(own.shape(shapes))
    layer.add(Traffic(operator=layer.kind, own=own.number), *(layer.tensor(i) for i in range(len(layer.bottoms))), shape=made)


LAYERS: dict[str, Callable[[CaffeLayer], None]] = {
    "Convolution": _conv, "Deconvolution": _conv, "DepthwiseConvolution": _conv, "Pooling": _pool, "InnerProduct": _linear,
    "LRN": _lrn, "ReLU": _relu, "PReLU": _relu, "Sigmoid": _alike(Sigmoid()), "TanH": _alike(Tanh()), "Dropout": _dropout,
    "Concat": _concat, "Eltwise": _eltwise, "Softmax": _softmax, "BatchNorm": _alike(BatchNorm()), "BN": _alike(BatchNorm()),
    "Scale": _scale, "Bias": _alike(BiasAdd()), "Flatten": _flatten, "Reshape": _reshape, "Split": _split, "Slice": _slice,
    "Permute": _permute, "Embed": _embed, "LSTM": _recurrent, "RNN": _recurrent, "Normalize": _alike(RmsNorm(axis=1)),
    "MVN": _alike(BatchNorm()), "AbsVal": _function(), "Exp": _function(2), "Log": _function(2), "Power": _function(3),
    "BNLL": _function(3), "ELU": _function(3), "Threshold": _function(), "Reduction": _reduction, "Crop": _crop,
}  # fmt: skip
