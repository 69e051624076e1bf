"""What each of ATen's operators is in ONNX's vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archsim.trace.readers.aten_calls import AtenCall
from archsim.trace.readers.graph import TURNED
from archsim.trace.readers.model import StoredTensor

AtenRule = Callable[[AtenCall], Any]


def _same(c: AtenCall) -> None:
    c.alias(c.tensor(0))


def _view(c: AtenCall) -> None:
    c.view(c.tensor(0), c.shape)


def _plain(kind: str, **attributes: Any) -> AtenRule:
    return lambda c: c.add(kind, [c.tensor(0)], **attributes)


def _joined(kind: str) -> AtenRule:
    """Two operands, of which the second may be a number."""
    return lambda c: c.add(kind, [c.tensor(0), c.tensor(1, "other")])


def _reversed(c: AtenCall) -> None:
    c.add("Sub", [c.tensor(1, "other"), c.tensor(0)])


def _conv(c: AtenCall) -> None:
    transposed = c.kind == "convolution" and bool(c.at(6))
    rank = len(c.size(c.tensor(0))) - 2
    stride, dilation = c.pair(3, "stride", 1, rank), c.pair(5, "dilation", 1, rank)
    groups = int(c.at(8 if c.kind == "convolution" else 6, "groups", 1))
    if transposed:
        return _turned(c, rank, stride, c.pair(4, "padding", 0, rank), c.pair(7, "output_padding", 0, rank), dilation, groups)
    padding = c.at(4, "padding", 0)
    words: dict[str, Any] = {"strides": stride, "dilations": dilation, "group": groups}
    if padding == "same":
        words["auto_pad"] = "SAME_UPPER"
    elif padding != "valid":
        words["pads"] = c.pair(4, "padding", 0, rank) * 2
    c.add("Conv", [t for t in (c.tensor(0), c.tensor(1, "weight"), c.tensor(2, "bias")) if t], **words)


def _turned(
    c: AtenCall, rank: int, stride: list[int], padding: list[int], extra: list[int], dilation: list[int], groups: int
) -> None:
    c.add("ConvTranspose", [t for t in (c.tensor(0), c.tensor(1, "weight"), c.tensor(2, "bias")) if t], strides=stride,
          pads=padding * 2, output_padding=extra, dilations=dilation, group=groups)  # fmt: skip


def _conv_transpose(c: AtenCall) -> None:
    rank = len(c.size(c.tensor(0))) - 2
    _turned(c, rank, c.pair(3, "stride", 1, rank), c.pair(4, "padding", 0, rank), c.pair(5, "output_padding", 0, rank),
            c.pair(7, "dilation", 1, rank), int(c.at(6, "groups", 1)))  # fmt: skip


def _batch_norm(c: AtenCall) -> None:
    channels = c.size(c.tensor(0))[1:2]
    made = f"{c.name}.scale"
    c.program.held[made] = StoredTensor(shape=channels)
    c.program.shapes[made] = channels
    c.add("BatchNormalization", [c.tensor(0), *[c.tensor(i) or made for i in range(1, 5)]], c.result(0))
    c.program.parts[c.name] = [c.result(i) for i in range(len(c.call["shapes"]))]


def _norm(kind: str) -> AtenRule:
    def rule(c: AtenCall) -> None:
        if kind == "GroupNormalization":
            c.add(kind, [c.tensor(0)], c.result(0), num_groups=int(c.at(1)))
        else:
            c.add(kind, [c.tensor(0)], c.result(0), axis=-len(c.at(1)))
        c.program.parts[c.name] = [c.result(i) for i in range(len(c.call["shapes"]))]

    return rule


def _linear(c: AtenCall) -> None:
    weight = c.tensor(1, "weight")
    rows, columns = c.size(weight)
    if weight in c.program.held:
        made = f"{weight}{TURNED}"
        c.program.held.setdefault(made, StoredTensor(shape=(columns, rows)))
        c.program.shapes[made] = (columns, rows)
    else:
        made = c.step("Transpose", [weight], (columns, rows), "turned", perm=[1, 0])
    bias = c.tensor(2, "bias")
    c.add("MatMul", [c.tensor(0), made, *([bias] if bias else [])], bias=int(bool(bias)))


def _addmm(c: AtenCall) -> None:
    product = c.step("MatMul", [c.tensor(1), c.tensor(2)], c.shape, "product")
    c.add("Add", [product, c.tensor(0)])


def _matmul(c: AtenCall) -> None:
    c.add("MatMul", [c.tensor(0), c.tensor(1)])


def _permuted(c: AtenCall) -> None:
    rank = len(c.size(c.tensor(0)))
    if c.kind == "permute":
        order = [int(axis) % rank for axis in c.at(1, "dims")]
    elif c.kind == "t":
        order = list(range(rank))[::-1]
    else:
        order = list(range(rank))
        a, b = (c.axis(place, name) for place, name in ((1, "dim0"), (2, "dim1")))
        order[a], order[b] = order[b], order[a]
    c.add("Transpose", [c.tensor(0)], perm=order)


def _cat(c: AtenCall) -> None:
    tensors = [tensor for tensor in c.tensors(0) if math.prod(c.size(tensor))]
    if c.kind == "stack":
        axis = int(c.at(1, "dim", 0)) % len(c.shape)
        one = [*c.shape[:axis], 1, *c.shape[axis + 1 :]]
        tensors = [c.view(tensor, one, f"part{i}") for i, tensor in enumerate(tensors)]
    else:
        axis = int(c.at(1, "dim", 0)) % len(c.shape)
    c.add("Concat", tensors, axis=axis)


def _split(c: AtenCall) -> None:
    shapes = [tuple(shape) for shape in c.call["shapes"]]
    rank = len(c.size(c.tensor(0)))
    axis = int(c.at(1 if c.kind == "unbind" else 2, "dim", 0)) % rank
    names = [c.result(i) for i in range(len(shapes))]
    if c.kind == "unbind":
        whole = c.size(c.tensor(0))
        made = [f"{name}.kept" for name in names]
        for name in made:
            c.program.shapes[name] = (*whole[:axis], 1, *whole[axis + 1 :])
        c.add("Split", [c.tensor(0), c.whole("sizes", [1] * len(names))], *made, axis=axis)
        for name, kept, shape in zip(names, made, shapes, strict=True):
            c.add("Reshape", [kept, c.whole("shape", shape)], name, allowzero=1)
    else:
        c.add("Split", [c.tensor(0), c.whole("sizes", [shape[axis] for shape in shapes])], *names, axis=axis)
    c.program.parts[c.name] = names


def _item(c: AtenCall) -> None:
    source = c.at(0)["tensor"]
    names = c.program.parts.get(source, [f"{source}.{i}" for i in range(64)])
    c.alias(names[int(c.at(1))])


def _slice(c: AtenCall) -> None:
    axis = c.axis(1, "dim", 0)
    size = c.size(c.tensor(0))[axis]
    start, stop = c.at(2, "start"), c.at(3, "end")
    start = 0 if start is None else int(start)
    stop = size if stop is None else min(int(stop), size)
    values = {"starts": [start], "ends": [stop], "axes": [axis], "steps": [int(c.at(4, "step", 1))]}
    c.add("Slice", [c.tensor(0), *(c.whole(name, value) for name, value in values.items())])


def _select(c: AtenCall) -> None:
    index = c.program.constant(f"{c.name}.index", np.array(int(c.at(2, "index")), np.int64))
    c.add("Gather", [c.tensor(0), index], axis=c.axis(1, "dim", 0))


def _embedding(c: AtenCall) -> None:
    c.add("Gather", [c.tensor(0), c.tensor(1)], axis=0)


def _expand(c: AtenCall) -> None:
    c.add("Expand", [c.tensor(0), c.whole("shape", c.shape)])


def _copied(c: AtenCall) -> None:
    c.add("Copied", c.inputs(), domain="archsim")


def _sdpa(c: AtenCall) -> None:
    tensors = [c.tensor(i) for i in range(3)]
    mask = c.tensor(3, "attn_mask")
    if len(c.size(tensors[0])) == 3:
        tensors = [c.view(t, (c.size(t)[0], 1, *c.size(t)[1:]), "qkv"[i]) for i, t in enumerate(tensors)]
        made = c.step("Attention", [*tensors, *([mask] if mask else [])], (c.shape[0], 1, *c.shape[1:]), "heads",
                      is_causal=int(bool(c.at(5, "is_causal", False))))  # fmt: skip
        return _end(c, made)
    c.add("Attention", [*tensors, *([mask] if mask else [])], is_causal=int(bool(c.at(5, "is_causal", False))))


def _end(c: AtenCall, tensor: str) -> None:
    c.view(tensor, c.shape)


def _pool(kind: str) -> AtenRule:
    def rule(c: AtenCall) -> None:
        rank = len(c.size(c.tensor(0))) - 2
        kernel = c.pair(1, "kernel_size", 1, rank)
        words: dict[str, Any] = {"kernel_shape": kernel, "strides": c.pair(2, "stride", kernel, rank)}
        words["pads"] = c.pair(3, "padding", 0, rank) * 2
        if kind == "MaxPool":
            words |= {"dilations": c.pair(4, "dilation", 1, rank), "ceil_mode": int(bool(c.at(5, "ceil_mode", False)))}
        else:
            words |= {"ceil_mode": int(bool(c.at(4, "ceil_mode", False)))}
            words |= {"count_include_pad": int(bool(c.at(5, "count_include_pad", True)))}
        c.add(kind, [c.tensor(0)], c.result(0), **words)
        c.program.parts[c.name] = [c.result(i) for i in range(len(c.call["shapes"]))]

    return rule


def _adaptive(c: AtenCall) -> None:
    data = c.size(c.tensor(0))
    rank = len(data) - 2
    sizes = c.shape[-rank:]
    if set(sizes) == {1}:
        c.add("GlobalAveragePool" if "avg" in c.kind else "GlobalMaxPool", [c.tensor(0)], c.result(0))
    elif tuple(sizes) == tuple(data[2:]):
        c.alias(c.tensor(0))
    elif all(size % made == 0 for size, made in zip(data[2:], sizes, strict=True)):
        kernel = [size // made for size, made in zip(data[2:], sizes, strict=True)]
        c.add("AveragePool" if "avg" in c.kind else "MaxPool", [c.tensor(0)], c.result(0), kernel_shape=kernel, strides=kernel)
    else:
        _copied(c)


def _mean(kind: str) -> AtenRule:
    def rule(c: AtenCall) -> None:
        axes = c.at(1, "dim")
        if axes is None or isinstance(axes, bool):
            axes = list(range(len(c.size(c.tensor(0)))))
        listed = [int(axes)] if isinstance(axes, int) else [int(axis) for axis in axes]
        keep = len(c.shape) == len(c.size(c.tensor(0)))
        c.add(kind, [c.tensor(0), c.whole("axes", listed)], c.result(0), keepdims=int(keep))
        c.program.parts[c.name] = [c.result(i) for i in range(len(c.call["shapes"]))]

    return rule


def _softmax(c: AtenCall) -> None:
    c.add("LogSoftmax" if c.kind.lstrip("_").startswith("log") else "Softmax", [c.tensor(0)], axis=c.axis(1))


def _clip(c: AtenCall) -> None:
    low, high = c.at(1, "min"), c.at(2, "max")
    words: dict[str, Any] = {"min": float(low)} if isinstance(low, int | float) else {}
    words |= {"max": float(high)} if isinstance(high, int | float) else {}
    c.add("Clip", [c.tensor(0)], **words)


def _rsqrt(c: AtenCall) -> None:
    c.add("Reciprocal", [c.step("Sqrt", [c.tensor(0)], c.shape, "root")])


def _gelu(c: AtenCall) -> None:
    c.add("Gelu", [c.tensor(0)], approximate=c.at(1, "approximate", "none"))


def _masked(c: AtenCall) -> None:
    c.add("Where", [c.tensor(1), c.tensor(2, "value"), c.tensor(0)])


def _where(c: AtenCall) -> None:
    c.add("Where", [c.tensor(i) for i in range(3)])


def _pad(c: AtenCall) -> None:
    given, rank = [int(size) for size in c.at(1)], len(c.shape)
    before, after = [0] * rank, [0] * rank
    for place in range(len(given) // 2):
        before[rank - 1 - place], after[rank - 1 - place] = given[2 * place], given[2 * place + 1]
    c.add("Pad", [c.tensor(0), c.whole("pads", [*before, *after])], mode=c.at(2, "mode", "constant"))


def _resize(c: AtenCall) -> None:
    mode = "nearest" if "nearest" in c.kind else "linear" if "linear" in c.kind else "cubic"
    c.add("Resize", [c.tensor(0), "", "", c.whole("sizes", c.shape)], mode=mode)


def _recurrent(kind: str, gates: int) -> AtenRule:
    def rule(c: AtenCall) -> None:
        states, weights = (2, 2), c.tensors(2)
        biased, layers = bool(c.at(3)), int(c.at(4))
        ways, first = (2 if c.at(7) else 1), bool(c.at(8))
        data = c.size(c.tensor(0))
        t, n = (data[1], data[0]) if first else (data[0], data[1])
        hidden = c.size(weights[0])[0] // gates
        held = c.view(c.tensor(0), (t, n, data[2]), "steps") if first else c.tensor(0)
        shapes = {"w": (ways, gates * hidden, data[2]), "r": (ways, gates * hidden, hidden), "b": (ways, 2 * gates * hidden)}
        for part, shape in shapes.items():
            c.program.held[f"{c.name}.{part}"] = StoredTensor(shape=shape)
        inputs = [held, *(f"{c.name}.{part}" for part in ("w", "r", "b")[: 3 if biased else 2])]
        words: dict[str, Any] = {"hidden_size": hidden, "layers": layers}
        words |= {"direction": "bidirectional"} if ways == 2 else {}
        made = c.step(kind, inputs, (t, ways, n, hidden), "steps.made", **words)
        c.add("Reshape", [made, c.whole("shape", c.shape)], c.result(0), allowzero=1)
        for number in range(1, len(c.call["shapes"])):
            c.add("Copied", [made], c.result(number), domain="archsim")
        c.program.parts[c.name] = [c.result(i) for i in range(len(c.call["shapes"]))]
        _ = states

    return rule


def _einsum(c: AtenCall) -> None:
    c.add("Einsum", c.tensors(1), equation=str(c.at(0)))


def _nothing(c: AtenCall) -> None:
    """A tensor that holds the same whatever the model is given."""
    c.program.held[c.result()] = StoredTensor(shape=c.shape)


def _all(names: Sequence[str], rule: AtenRule) -> dict[str, AtenRule]:
    return dict.fromkeys(names, rule)


FUNCTIONS = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardswish": "HardSwish", "hardsigmoid": "HardSigmoid", "silu": "Silu",
    "leaky_relu": "LeakyRelu", "elu": "Elu", "celu": "Celu", "selu": "Selu", "softplus": "Softplus", "erf": "Erf", "exp": "Exp",
    "log": "Log", "neg": "Neg", "cos": "Cos", "sin": "Sin", "sqrt": "Sqrt", "abs": "Abs", "reciprocal": "Reciprocal",
    "mish": "Mish", "floor": "Floor", "ceil": "Ceil", "round": "Round", "prelu": "PRelu", "logical_not": "Not",
    "bitwise_not": "Not", "cumsum": "CumSum", "tril": "Trilu", "triu": "Trilu", "sign": "Sign", "softsign": "Softsign",
}  # fmt: skip
OPERANDS = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "eq": "Equal",
    "ne": "Equal", "le": "LessOrEqual", "lt": "Less", "ge": "GreaterOrEqual", "gt": "Greater", "__and__": "And",
    "logical_and": "And", "bitwise_and": "And", "__or__": "Or", "logical_or": "Or", "bitwise_or": "Or", "remainder": "Mod",
    "fmod": "Mod", "floor_divide": "Div",
}  # fmt: skip
RULES: dict[str, AtenRule] = {
    **{name: _plain(kind) for name, kind in FUNCTIONS.items()}, **{name: _joined(kind) for name, kind in OPERANDS.items()},
    **_all(("contiguous", "alias", "clone", "detach", "to", "_to_copy", "dropout", "feature_dropout", "lift_fresh_copy",
            "type_as", "native_dropout", "fill", "detach_copy"), _same),
    **_all(("view", "reshape", "_unsafe_view", "unflatten", "flatten", "squeeze", "unsqueeze", "view_as"), _view),
    **_all(("conv1d", "conv2d", "conv3d", "convolution"), _conv),
    **_all(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    **_all(("batch_norm", "_native_batch_norm_legit_no_training", "native_batch_norm", "_batch_norm_with_update"), _batch_norm),
    "layer_norm": _norm("LayerNormalization"), "native_layer_norm": _norm("LayerNormalization"),
    "rms_norm": _norm("RMSNormalization"), "group_norm": _norm("GroupNormalization"),
    "instance_norm": _plain("InstanceNormalization"),
    "linear": _linear, "addmm": _addmm, **_all(("matmul", "mm", "bmm"), _matmul), "rsub": _reversed,
    **_all(("permute", "transpose", "t", "swapaxes"), _permuted), **_all(("cat", "concat", "stack"), _cat),
    **_all(("chunk", "split", "split_with_sizes", "unbind", "tensor_split"), _split), "getitem": _item, "slice": _slice,
    "narrow": _copied, "select": _select, "embedding": _embedding, "expand": _expand, "expand_as": _expand,
    **_all(("index", "roll", "gather", "index_select", "pixel_shuffle", "pixel_unshuffle", "repeat", "repeat_interleave", "flip",
            "scatter", "index_put", "channel_shuffle", "unfold", "im2col", "slice_scatter", "select_scatter", "masked_scatter"),
           _copied),
    "scaled_dot_product_attention": _sdpa, "max_pool1d": _pool("MaxPool"), "max_pool2d": _pool("MaxPool"),
    "max_pool3d": _pool("MaxPool"), "max_pool2d_with_indices": _pool("MaxPool"), "avg_pool1d": _pool("AveragePool"),
    "avg_pool2d": _pool("AveragePool"), "avg_pool3d": _pool("AveragePool"),
    **_all(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptive),
    "mean": _mean("ReduceMean"), "sum": _mean("ReduceSum"), "amax": _mean("ReduceMax"), "amin": _mean("ReduceMin"),
    "max": _mean("ReduceMax"), "min": _mean("ReduceMin"), "any": _mean("ReduceMax"), "all": _mean("ReduceMin"),
    **_all(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax),
    **_all(("clamp", "hardtanh", "clamp_min", "clamp_max"), _clip),
    "relu6": _plain("Clip", min=0.0, max=6.0), "rsqrt": _rsqrt, "gelu": _gelu, "masked_fill": _masked, "where": _where,
    "pad": _pad, "constant_pad_nd": _pad, "einsum": _einsum, "lstm": _recurrent("LSTM", 4), "gru": _recurrent("GRU", 3),
    "rnn_tanh": _recurrent("RNN", 1), "rnn_relu": _recurrent("RNN", 1),
    **_all(("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_nearest1d", "upsample_linear1d",
            "_upsample_nearest_exact2d"), _resize),
    **_all(("arange", "zeros", "ones", "full", "empty", "new_zeros", "new_ones", "zeros_like", "ones_like", "full_like",
            "scalar_tensor", "new_full", "empty_like", "linspace", "eye", "new_empty"), _nothing),
}  # fmt: skip
