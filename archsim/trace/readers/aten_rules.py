"""What each of ATen's operators is in ONNX's vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archsim.trace.readers.graph import TURNED
from archsim.trace.readers.model import StoredTensor
from archsim.trace.readers.torch_program import AtenCall

AtenRule = Callable[[AtenCall], Any]
NAMES = ("self", "other", "value")  # of the first arguments, where they are given by name


def _same(c: AtenCall) -> None:
    c.alias(c.tensor(0))


def _view(c: AtenCall) -> None:
    c.view(c.tensor(0), c.shape)


def _node(kind: str, *places: int, **attributes: Any) -> AtenRule:
    """One node over the tensors or numbers at these places of the arguments, in this order."""
    return lambda c: c.add(kind, [c.tensor(place, NAMES[place]) for place in places or (0,)], c.result(0), **attributes)


def _conv(c: AtenCall) -> None:
    if c.kind == "convolution" and c.at(6):
        return _turned(c, 7, 8, 5)
    rank = len(c.size(c.tensor(0))) - 2
    stride, dilation = c.pair(3, "stride", 1, rank), c.pair(5, "dilation", 1, rank)
    groups = int(c.at(8 if c.kind == "convolution" else 6, "groups", 1))
    padding = c.at(4, "padding", 0)
    words: dict[str, Any] = {"strides": stride, "dilations": dilation, "group": groups}
    if padding == "same":
        words["auto_pad"] = "SAME_UPPER"
    elif padding != "valid":
        words["pads"] = c.pair(4, "padding", 0, rank) * 2
    c.add("Conv", [t for t in (c.tensor(0), c.tensor(1, "weight"), c.tensor(2, "bias")) if t], **words)


def _turned(c: AtenCall, extra: int, groups: int, dilation: int) -> None:
    """A transposed convolution, whose arguments stand at these places."""
    rank = len(c.size(c.tensor(0))) - 2
    c.add("ConvTranspose", [t for t in (c.tensor(0), c.tensor(1, "weight"), c.tensor(2, "bias")) if t],
          strides=c.pair(3, "stride", 1, rank), pads=c.pair(4, "padding", 0, rank) * 2,
          output_padding=c.pair(extra, "output_padding", 0, rank), dilations=c.pair(dilation, "dilation", 1, rank),
          group=int(c.at(groups, "groups", 1)))  # fmt: skip


def _batch_norm(c: AtenCall) -> None:
    channels = c.size(c.tensor(0))[1:2]
    made = f"{c.name}.scale"
    c.program.held[made] = StoredTensor(shape=channels)
    c.program.shapes[made] = channels
    c.add("BatchNormalization", [c.tensor(0), *[c.tensor(i) or made for i in range(1, 5)]], c.result(0))


def _norm(kind: str) -> AtenRule:
    def rule(c: AtenCall) -> None:
        words: dict[str, Any] = {"num_groups": int(c.at(1))} if kind == "GroupNormalization" else {"axis": -len(c.at(1))}
        c.add(kind, [c.tensor(0)], c.result(0), **words)

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


def _addmm(c: AtenCall) -> Any:
    """beta input + alpha A B; with beta = 0 the input is not read."""
    factors = [c.tensor(1), c.tensor(2)]
    if c.at(3, "beta", 1) == 0:
        return c.add("MatMul", factors)
    c.add("Add", [c.step("MatMul", factors, (*c.size(factors[0])[:-1], c.size(factors[1])[-1]), "product"), c.tensor(0)])


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
    first = c.size(tensors[0])
    axis = int(c.at(1, "dim", 0)) % (len(first) + (c.kind == "stack"))
    if c.kind == "stack":
        tensors = [c.view(tensor, [*first[:axis], 1, *first[axis:]], f"part{i}") for i, tensor in enumerate(tensors)]
    c.add("Concat", tensors, axis=axis)


def _split(c: AtenCall) -> None:
    shapes = c.shapes
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


def _item(c: AtenCall) -> None:
    c.alias(c.program.parts[c.at(0)["tensor"]][int(c.at(1))])


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


def _expand(c: AtenCall) -> None:
    c.add("Expand", [c.tensor(0), c.whole("shape", c.shape)])


def _copied(c: AtenCall) -> None:
    c.add("Copied", c.inputs(), domain="archsim")


def _looked_up(kind: str) -> AtenRule:
    """Values of a tensor by the indices of argument 2 along a dimension."""
    return lambda c: c.add(kind, [c.tensor(0), c.tensor(2, "index")], axis=c.axis(1, "dim"))


def _indexed(c: AtenCall) -> Any:
    """x[i, j, ...]: the indices stretch to one shape, which takes the place of their dimensions."""
    listed = c.at(1) or []
    found = [(axis, c.tensors(1)[axis]) for axis, each in enumerate(listed) if each is not None]
    if not found:
        raise ValueError("has indices whose shapes were not recorded")
    if len(found) == 1:
        return c.add("Gather", [c.tensor(0), found[0][1]], axis=found[0][0])
    _copied(c)


def _bags(c: AtenCall) -> None:
    c.add("EmbeddingBag", [c.tensor(0), c.tensor(1), c.tensor(2)], c.result(0), domain="archsim", last=int(bool(c.at(7))))


def _written(place: int, indices: int = 2) -> AtenRule:
    """Values, argument `place`, that are written to the places of a tensor, where they lie by the argument `indices`."""

    def rule(c: AtenCall) -> None:
        adds = "add" in c.kind or "reduce" in c.kind or bool(c.at(3) is True and c.kind == "index_put")
        index = c.tensors(indices) if isinstance(c.at(indices), list) else [c.tensor(indices)] if indices != place else []
        values = c.tensor(place) or index[-1]
        c.add("Written", [c.tensor(0), *filter(None, index), values], domain="archsim", reduction="add" if adds else "none")

    return rule


def _attention(mask: int, causal: int, beside: bool = False) -> AtenRule:
    """Attention whose mask and `is_causal` are the arguments at these places; with `beside` heads lie side by side."""

    def rule(c: AtenCall) -> Any:
        tensors = [c.tensor(i) for i in range(3)]
        sizes = [c.size(tensor) for tensor in tensors]
        words: dict[str, Any] = {"is_causal": int(bool(c.at(causal, "is_causal", False)))}
        hidden = c.tensor(mask, "attn_mask") if mask else ""
        masks = [hidden] if hidden else []
        if len(sizes[0]) == 4 and not beside:
            return c.add("Attention", [*tensors, *masks], c.result(0), **words)
        if beside:
            if any(len(size) != 4 for size in sizes):
                raise ValueError("has sequences of several lengths side by side")
            words |= {"q_num_heads": sizes[0][2], "kv_num_heads": sizes[1][2]}
        flat = [(*size[:2], math.prod(size[2:])) if beside else (size[0], 1, *size[1:]) for size in sizes]
        parts = [c.view(tensor, shape, "qkv"[i]) for i, (tensor, shape) in enumerate(zip(tensors, flat, strict=True))]
        made = c.step("Attention", [*parts, *masks], (*flat[0][:-1], flat[2][-1]) if not beside else flat[0], "heads", **words)
        c.add("Reshape", [made, c.whole("shape", (*sizes[0][:-1], sizes[2][-1]))], c.result(0), allowzero=1)

    return rule


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

    return rule


def _adaptive(c: AtenCall) -> None:
    data = c.size(c.tensor(0))
    rank = len(data) - 2
    sizes = c.pair(1, "output_size", 1, rank)
    if set(sizes) == {1}:
        c.add("GlobalAveragePool" if "avg" in c.kind else "GlobalMaxPool", [c.tensor(0)], c.result(0))
    elif tuple(sizes) == tuple(data[2:]):
        c.alias(c.tensor(0))
    elif all(size % made == 0 for size, made in zip(data[2:], sizes, strict=True)):
        kernel = [size // made for size, made in zip(data[2:], sizes, strict=True)]
        c.add("AveragePool" if "avg" in c.kind else "MaxPool", [c.tensor(0)], c.result(0), kernel_shape=kernel, strides=kernel)
    else:
        c.program.shapes[c.result(0)] = (*data[:-rank], *sizes)
        _copied(c)


def _mean(kind: str) -> AtenRule:
    def rule(c: AtenCall) -> None:
        axes, whole = c.at(1, "dim"), list(range(len(c.size(c.tensor(0)))))
        if axes is None or isinstance(axes, bool):
            axes = whole
        listed = [int(axes)] if isinstance(axes, int) else [int(axis) for axis in axes] or whole
        keep = bool(c.at(2, "keepdim", False)) and c.at(1, "dim") is not None
        c.add(kind, [c.tensor(0), c.whole("axes", listed)], c.result(0), keepdims=int(keep))

    return rule


def _softmax(c: AtenCall) -> None:
    c.add("LogSoftmax" if c.kind.lstrip("_").startswith("log") else "Softmax", [c.tensor(0)], axis=c.axis(1))


def _clip(c: AtenCall) -> None:
    low, high = c.at(1, "min"), c.at(2, "max")
    words: dict[str, Any] = {"min": float(low)} if isinstance(low, int | float) else {}
    words |= {"max": float(high)} if isinstance(high, int | float) else {}
    c.add("Clip", [c.tensor(0)], **words)


def _rsqrt(c: AtenCall) -> None:
    c.add("Reciprocal", [c.step("Sqrt", [c.tensor(0)], c.size(c.tensor(0)), "root")])


def _gelu(c: AtenCall) -> None:
    c.add("Gelu", [c.tensor(0)], approximate=c.at(1, "approximate", "none"))


def _pad(c: AtenCall) -> None:
    given, rank = [int(size) for size in c.at(1)], len(c.size(c.tensor(0)))
    before, after = [0] * rank, [0] * rank
    for place in range(len(given) // 2):
        before[rank - 1 - place], after[rank - 1 - place] = given[2 * place], given[2 * place + 1]
    c.add("Pad", [c.tensor(0), c.whole("pads", [*before, *after])], mode=c.at(2, "mode", "constant"))


def _resize(c: AtenCall) -> None:
    mode = "nearest" if "nearest" in c.kind else "linear" if "linear" in c.kind else "cubic"
    data = c.size(c.tensor(0))
    sizes = c.shape if c.at(1, "output_size") is None else (*data[:2], *c.pair(1, "output_size", 1, len(data) - 2))
    c.add("Resize", [c.tensor(0), "", "", c.whole("sizes", sizes)], mode=mode)


def _recurrent(kind: str, gates: int) -> AtenRule:
    def rule(c: AtenCall) -> None:
        weights = c.tensors(2)
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
        c.add("Reshape", [made, c.whole("shape", (*data[:2], ways * hidden))], c.result(0), allowzero=1)
        for number in range(1, len(c.shapes)):
            c.add("Copied", [made], c.result(number), domain="archsim")

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
    **{name: _node(kind) for name, kind in FUNCTIONS.items()}, **{name: _node(kind, 0, 1) for name, kind in OPERANDS.items()},
    **_all(("contiguous", "alias", "clone", "detach", "to", "_to_copy", "dropout", "feature_dropout", "lift_fresh_copy",
            "type_as", "native_dropout", "fill", "detach_copy"), _same),
    **_all(("view", "reshape", "_unsafe_view", "unflatten", "flatten", "squeeze", "unsqueeze", "view_as"), _view),
    **_all(("conv1d", "conv2d", "conv3d", "convolution"), _conv),
    **_all(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), lambda c: _turned(c, 5, 6, 7)),
    **_all(("batch_norm", "_native_batch_norm_legit_no_training", "native_batch_norm", "_batch_norm_with_update"), _batch_norm),
    "layer_norm": _norm("LayerNormalization"), "native_layer_norm": _norm("LayerNormalization"),
    "rms_norm": _norm("RMSNormalization"), "group_norm": _norm("GroupNormalization"),
    "instance_norm": _node("InstanceNormalization"),
    "linear": _linear, **_all(("addmm", "baddbmm"), _addmm), "rsub": _node("Sub", 1, 0),
    **_all(("matmul", "mm", "bmm", "mv", "dot", "_scaled_mm", "_int_mm"), _node("MatMul", 0, 1)),
    **_all(("permute", "transpose", "t", "swapaxes"), _permuted), **_all(("cat", "concat", "stack"), _cat),
    **_all(("chunk", "split", "split_with_sizes", "unbind", "tensor_split"), _split), "getitem": _item, "slice": _slice,
    "narrow": _copied, "select": _select, "embedding": _node("Gather", 0, 1, axis=0), "expand": _expand, "expand_as": _expand,
    **_all(("roll", "pixel_shuffle", "pixel_unshuffle", "repeat", "repeat_interleave", "flip", "channel_shuffle", "unfold",
            "im2col", "masked_scatter"), _copied),
    "index": _indexed, "gather": _looked_up("GatherElements"),
    "index_select": _looked_up("Gather"), "embedding_bag": _bags, "_embedding_bag": _bags,
    **_all(("index_copy", "index_add", "index_reduce", "scatter", "scatter_add", "scatter_reduce"), _written(3)),
    "index_put": _written(2, 1), "slice_scatter": _written(1, 1), "select_scatter": _written(1, 1),
    "scaled_dot_product_attention": _attention(3, 5), "_scaled_dot_product_attention_math": _attention(3, 5),
    "_scaled_dot_product_flash_attention": _attention(0, 4), "_scaled_dot_product_flash_attention_for_cpu": _attention(0, 4),
    "_scaled_dot_product_efficient_attention": _attention(3, 6), "_scaled_dot_product_cudnn_attention": _attention(3, 6),
    "_flash_attention_forward": _attention(0, 8, beside=True), "_efficient_attention_forward": _attention(0, 9, beside=True),
    "flash_attn._flash_attn_forward": _attention(0, 5, beside=True),
    **_all(("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices"), _pool("MaxPool")),
    **_all(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _pool("AveragePool")),
    **_all(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptive),
    "mean": _mean("ReduceMean"), "sum": _mean("ReduceSum"), "amax": _mean("ReduceMax"), "amin": _mean("ReduceMin"),
    "max": _mean("ReduceMax"), "min": _mean("ReduceMin"), "any": _mean("ReduceMax"), "all": _mean("ReduceMin"),
    **_all(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax),
    **_all(("clamp", "hardtanh", "clamp_min", "clamp_max"), _clip),
    "relu6": _node("Clip", min=0.0, max=6.0), "rsqrt": _rsqrt, "gelu": _gelu,
    "masked_fill": _node("Where", 1, 2, 0), "where": _node("Where", 0, 1, 2),
    "pad": _pad, "constant_pad_nd": _pad, "einsum": _einsum, "lstm": _recurrent("LSTM", 4), "gru": _recurrent("GRU", 3),
    "rnn_tanh": _recurrent("RNN", 1), "rnn_relu": _recurrent("RNN", 1),
    **_all(("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_nearest1d", "upsample_linear1d",
            "_upsample_nearest_exact2d"), _resize),
    **_all(("arange", "zeros", "ones", "full", "empty", "new_zeros", "new_ones", "zeros_like", "ones_like", "full_like",
            "scalar_tensor", "new_full", "empty_like", "linspace", "eye", "new_empty"), _nothing),
}  # fmt: skip
