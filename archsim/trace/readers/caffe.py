"""Networks of Caffe: the types of layers in ONNX's vocabulary, and the layers of the test phase with Caffe's shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, Unsupported
from archsim.base.files import read_text
from archsim.trace.dims import BATCH, LARGEST, Shape, short
from archsim.trace.formats import unknown_symbol
from archsim.trace.kinds.general import registered
from archsim.trace.readers.caffe_layer import LIMIT, OPSET, CaffeLayer, CaffeTensors, Message, first, parsed
from archsim.trace.readers.draft import NoProduct
from archsim.trace.readers.model import KnownTensor, ModelFile
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.trace import Trace

CaffeRule = Callable[[CaffeLayer], Any]


def _node(kind: str, domain: str = "", **attributes: Any) -> CaffeRule:
    """One node over the first input."""
    return lambda layer: layer.add(kind, domain=domain, **attributes)


def _window(layer: CaffeLayer, parameters: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a window that both convolutions and poolings have."""
    pad = layer.pair(parameters, "pad", "pad", 0, 0)
    return {"kernel_shape": layer.pair(parameters, "kernel_size", "kernel", 0, 1),
            "strides": layer.pair(parameters, "stride", "stride", 1, 1), "pads": [*pad, *pad]}  # fmt: skip


def _conv(layer: CaffeLayer) -> None:
    p, c = layer.parameters("convolution_param"), layer.image()[1]
    words, channels = _window(layer, p), layer.whole(p, "num_output", 0, 1)
    words["dilations"] = layer.pair(p, "dilation", "dilation", 1, 1)
    words["group"] = groups = c if layer.kind == "DepthwiseConvolution" else layer.whole(p, "group", 1, 1)
    turned = layer.kind == "Deconvolution"
    if c % groups or channels % groups:
        raise layer.refused(f"has {groups} groups, which do not divide {c} and {channels} channels")
    weights = layer.held(*((c, channels // groups) if turned else (channels, c // groups)), *words["kernel_shape"])
    biases = [layer.held(channels)] if first(p, "bias_term", True) else []
    layer.add("ConvTranspose" if turned else "Conv", layer.tensor(), weights, *biases, **words)


def _pool(layer: CaffeLayer) -> None:
    p = layer.parameters("pooling_param")
    layer.image()
    kind = "MaxPool" if str(first(p, "pool", "MAX")) in ("MAX", "0") else "AveragePool"
    if first(p, "global_pooling", False) is True:
        layer.add(f"Global{kind}")
    else:  # a partial window at the far edge counts
        ceil = str(first(p, "round_mode", "CEIL")) in ("CEIL", "0")
        layer.add(kind, **_window(layer, p), ceil_mode=int(ceil), count_include_pad=1)


def _linear(layer: CaffeLayer) -> None:
    p = layer.parameters("inner_product_param")
    shape, axis = layer.shape(), layer.axis(p)
    rows, features, made = shape[:axis] or (1,), math.prod(shape[axis:]), layer.whole(p, "num_output", 0, 1)
    held = layer.tensor() if shape == (*rows, features) else layer.view(layer.tensor(), (*rows, features), "flat")
    weights, bias = layer.held(features, made), bool(first(p, "bias_term", True))
    layer.add("MatMul", held, weights, *([layer.held(made)] if bias else []), bias=int(bias))


def _relu(layer: CaffeLayer) -> None:
    slope = first(layer.parameters("relu_param"), "negative_slope", 0)
    layer.add("LeakyRelu" if slope or layer.kind == "PReLU" else "Relu")


def _dropout(layer: CaffeLayer) -> None:
    ratio = first(layer.parameters("dropout_param"), "dropout_ratio", 0.5)
    layer.add("Dropout", ratio=float(ratio) if isinstance(ratio, int | float) else 0.5)


def _concat(layer: CaffeLayer) -> None:
    p = layer.parameters("concat_param")
    axis = layer.axis({"axis": p.get("axis") or p.get("concat_dim") or [1]})
    layer.add("Concat", *(layer.tensor(i) for i in range(len(layer.bottoms))), axis=axis)


def _eltwise(layer: CaffeLayer) -> None:
    operation = str(first(layer.parameters("eltwise_param"), "operation", "SUM"))
    kinds = {"SUM": "Sum", "1": "Sum", "PROD": "Mul", "0": "Mul"}
    layer.add(kinds.get(operation, "Max"), *(layer.tensor(i) for i in range(len(layer.bottoms))))


def _scale(layer: CaffeLayer) -> Any:
    p = layer.parameters("scale_param")
    held, shape, axis = layer.tensor(), layer.shape(), layer.axis(p)
    if len(layer.bottoms) > 1:
        factor, wide = layer.tensor(1), (*layer.shape(1), *[1] * (len(shape) - len(layer.shape(1))))
        return layer.add("Mul", held, factor if layer.shape(1) == wide else layer.view(factor, wide, "factor"))
    if any(node.kind == "BatchNormalization" and node.outputs[0] == held for node in layer.net.nodes[-1:]):
        return layer.end(held)  # whose scale and shift they are
    learned = (shape[axis], *[1] * (len(shape) - axis - 1))
    biased = bool(first(p, "bias_term", False))
    held = layer.add("Mul", held, layer.held(*learned), part="scale" if biased else "")
    if biased:
        layer.add("Add", held, layer.held(*learned))
    return None


def _bias(layer: CaffeLayer) -> None:
    shape, axis = layer.shape(), layer.axis(layer.parameters("bias_param"))
    layer.add("Add", layer.tensor(), layer.held(shape[axis], *[1] * (len(shape) - axis - 1)))


def _flatten(layer: CaffeLayer) -> None:
    shape, axis = layer.shape(), layer.axis(layer.parameters("flatten_param"))
    layer.view(layer.tensor(), (*shape[:axis], math.prod(shape[axis:])))


def _reshape(layer: CaffeLayer) -> None:
    wanted = first(layer.parameters("reshape_param"), "shape", {})
    layer.add("Reshape", shape=wanted.get("dim", []) if isinstance(wanted, dict) else [])


def _split(layer: CaffeLayer) -> None:
    for top in range(len(layer.tops)):
        layer.end(layer.tensor(), top)


def _slice(layer: CaffeLayer) -> None:
    p = layer.parameters("slice_param")
    axis = layer.axis({"axis": p.get("axis") or p.get("slice_dim") or [1]})
    size, parts = layer.shape()[axis], len(layer.tops)
    points = [point for point in p.get("slice_point", []) if isinstance(point, int)]
    if not points and size % max(1, parts) == 0:
        points = [size // parts * i for i in range(1, parts)]
    ends = [0, *points, size]
    if len(ends) != parts + 1 or sorted(set(ends)) != ends:
        raise layer.refused(f"cuts {size} along axis {axis} at {points} into {parts} parts")
    layer.add("Split", axis=axis, split=[stop - start for start, stop in pairwise(ends)], results=parts)


def _permute(layer: CaffeLayer) -> None:
    order = [axis for axis in layer.parameters("permute_param").get("order", []) if isinstance(axis, int)]
    layer.add("Transpose", perm=[*order, *(axis for axis in range(len(layer.shape())) if axis not in order)])


def _embed(layer: CaffeLayer) -> None:
    p = layer.parameters("embed_param")
    layer.add("Gather", layer.held(layer.whole(p, "input_dim", 0, 1), layer.whole(p, "num_output", 0, 1)), layer.tensor(), axis=0)


def _recurrent(kind: str, gates: int) -> CaffeRule:
    def rule(layer: CaffeLayer) -> None:
        hidden, shape = layer.whole(layer.parameters("recurrent_param"), "num_output", 0, 1), layer.shape()
        if len(shape) < 3:
            raise layer.refused(f"needs an input of the form [T, N, ...], got {short(list(shape))}")
        steps: Shape = (*shape[:2], math.prod(shape[2:]))
        held = layer.tensor() if shape == steps else layer.view(layer.tensor(), steps, "steps")
        rows = gates * hidden
        made = layer.add(kind, held, layer.held(1, rows, steps[2]), layer.held(1, rows, hidden), hidden_size=hidden, biases=1)
        layer.end(layer.view(made, (*shape[:2], hidden), "result"))

    return rule


def _softmax(layer: CaffeLayer) -> None:
    layer.add("Softmax", axis=layer.axis(layer.parameters("softmax_param")))


def _lrn(layer: CaffeLayer) -> None:
    layer.add("LRN", size=layer.whole(layer.parameters("lrn_param"), "local_size", 5, 1))


def _reduction(layer: CaffeLayer) -> None:
    axis = layer.axis(layer.parameters("reduction_param"), 0)
    layer.add("ReduceSum", axes=list(range(axis, len(layer.shape()))), keepdims=0)


def _crop(layer: CaffeLayer) -> None:
    axis = layer.axis(layer.parameters("crop_param"), 2)
    layer.add("Copied", domain="archsim", makes=(*layer.shape(0)[:axis], *layer.shape(1)[axis:]))


def unknown(layer: CaffeLayer) -> None:
    """A layer that nobody here knows, by its registered function; a file does not say what shape it makes."""
    own = registered(layer.kind)
    if own is None:
        raise Unsupported(f"{layer.net.path}: layer {short(layer.name)} is of the type {short(layer.kind)}, which is not read: "
                          f"archsim.register_op({layer.kind!r}, work, shape=...) says what it costs")  # fmt: skip
    shapes = [layer.shape(i) for i in range(len(layer.bottoms))]
    made = layer.shape() if own.shape is None else tuple(own.shape(shapes))
    layer.add(f"caffe.{layer.kind}", *(layer.tensor(i) for i in range(len(shapes))), makes=made, domain="caffe")


LAYERS: dict[str, CaffeRule] = {
    **dict.fromkeys(("Convolution", "Deconvolution", "DepthwiseConvolution"), _conv), "Pooling": _pool, "InnerProduct": _linear,
    "LRN": _lrn, "ReLU": _relu, "PReLU": _relu, "Sigmoid": _node("Sigmoid"), "TanH": _node("Tanh"), "Dropout": _dropout,
    "Concat": _concat, "Eltwise": _eltwise, "Softmax": _softmax, "Scale": _scale, "Bias": _bias, "Flatten": _flatten,
    **dict.fromkeys(("BatchNorm", "BN", "MVN"), _node("BatchNormalization")), "Reshape": _reshape, "Split": _split,
    "Slice": _slice, "Permute": _permute, "Embed": _embed, "LSTM": _recurrent("LSTM", 4), "RNN": _recurrent("RNN", 1),
    "Normalize": _node("ChannelNorm", "archsim", axis=1), "AbsVal": _node("Abs"), "Exp": _node("Exp", each=2),
    "Log": _node("Log", each=2), "Power": _node("Power", "archsim"), "BNLL": _node("Softplus"), "ELU": _node("Elu"),
    "Threshold": _node("Threshold", "archsim"), "Reduction": _reduction, "Crop": _crop,
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- networks

PROBES = (1009, 1013)  # samples at which the layers are read, to see what grows with them
INPUTS = ("Input", "Data", "ImageData", "MemoryData", "HDF5Data", "WindowData", "DummyData")
NOT_AT_TEST = ("SoftmaxWithLoss", "Accuracy", "EuclideanLoss", "HingeLoss", "SigmoidCrossEntropyLoss", "ContrastiveLoss",
               "MultinomialLogisticLoss", "InfogainLoss", "Silence", "Python")  # fmt: skip


class CaffeNet(CaffeTensors):
    """The layers of a file at one number of samples; None: as the file has it."""

    def __init__(self, message: Message, path: str, samples: int | None) -> None:
        super().__init__(path)
        self.message, self.samples = message, samples

    def read(self) -> ModelFile:
        """All layers of the test phase. Raises InputError or Unsupported."""
        self._inputs()
        layers = [*self.message.get("layer", []), *self.message.get("layers", [])]
        for number, message in enumerate(layers, 1):
            if not isinstance(message, dict):
                raise InputError(self.path, f"layer {number} is no layer")
            if at_test(message):
                self._layer(CaffeLayer(self, message, number))
        if not self.nodes:
            raise InputError(self.path, "has no layers that compute anything")
        read = {name for node in self.nodes for name in node.inputs}
        return ModelFile(
            path=self.path, name=str(first(self.message, "name", Path(self.path).stem)), source="Caffe prototxt",
            inputs=self.inputs, constants=self.constants, nodes=tuple(self.nodes), opset=OPSET,
            outputs=tuple([name for node in self.nodes for name in node.outputs if name not in read]),
            hints={name: self.known[name].shape for node in self.nodes for name in node.outputs},
        )  # fmt: skip

    def input(self, name: str, sizes: list[Any]) -> None:
        """An input of these sizes, of which the first is the batch."""
        if not sizes or not all(isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= LARGEST for size in sizes):
            raise InputError(self.path, f"input {short(name)} has the shape {short(sizes)}; a size is a whole number from 1 on")
        made = self.tensors[name] = self.free(name)
        self.inputs[made] = (self.samples or sizes[0], *sizes[1:])
        self.known[made] = KnownTensor(shape=self.inputs[made])

    def _inputs(self) -> None:
        names = [str(name) for name in self.message.get("input", [])]
        shapes = [shape.get("dim", []) for shape in self.message.get("input_shape", []) if isinstance(shape, dict)]
        dims = self.message.get("input_dim", [])
        shapes = shapes or [dims[i : i + 4] for i in range(0, len(dims), 4)]
        if len(shapes) != len(names):
            raise InputError(self.path, f"has {len(names)} inputs and {len(shapes)} shapes of inputs")
        for name, sizes in zip(names, shapes, strict=True):
            self.input(name, sizes)

    def _layer(self, layer: CaffeLayer) -> Any:
        if layer.kind in INPUTS:
            return self._data(layer)
        if layer.kind in NOT_AT_TEST:
            if layer.kind == "SoftmaxWithLoss" and len(layer.bottoms) > 1 and layer.tops:
                layer.add("Softmax", axis=1)
            elif layer.kind == "Python":
                raise Unsupported(f"{self.path}: layer {short(layer.name)} runs a script of its author; it is not read")
            return None
        LAYERS.get(layer.kind, unknown)(layer)
        return None

    def _data(self, layer: CaffeLayer) -> None:
        given = layer.parameters("input_param").get("shape", []) + layer.parameters("dummy_data_param").get("shape", [])
        shapes = [shape.get("dim", []) for shape in given if isinstance(shape, dict)]
        if not shapes:
            raise layer.refused("reads a database, which does not say how large its images are: put an Input layer in its place, "
                                "with input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } }")  # fmt: skip
        for number, top in enumerate(layer.tops):
            self.input(top, shapes[min(number, len(shapes) - 1)])


def at_test(message: Message) -> bool:
    """Whether a layer is part of the test phase."""
    include, exclude = message.get("include", []), message.get("exclude", [])
    phases = [first(rule, "phase", "") for rule in include if isinstance(rule, dict)]
    left_out = [first(rule, "phase", "") for rule in exclude if isinstance(rule, dict)]
    return not ("TRAIN" in phases and "TEST" not in phases) and "TEST" not in left_out


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The trace of a prototxt, the first size of whose inputs is the batch. Raises InputError, MissingFile or Unsupported."""
    for name in sizes:
        if name not in (BATCH, "batch"):
            raise unknown_symbol(path, name, ("batch",))
    message = parsed(read_text(path, LIMIT.size), str(path))
    try:
        return trace_at_batches([CaffeNet(message, str(path), samples).read() for samples in PROBES], PROBES)
    except NoProduct:
        return trace_at_batches([CaffeNet(message, str(path), None).read()], ())
