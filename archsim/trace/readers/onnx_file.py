"""An ONNX file as a `ModelFile`; the only module that needs the package `onnx`, which decodes the messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np

from archsim.base.errors import InputError, MissingExtra, Unsupported
from archsim.trace.dims import short
from archsim.trace.readers.model import MICROSOFT, Array, Dim, ModelFile, ModelNode, StoredTensor, SubGraph
from archsim.trace.readers.wire import KEPT, LIMIT, MOST_LEFT, slimmed
from archsim.trace.values import printable

LOWEST, HIGHEST = 7, 40  # versions of ONNX's operators; no released one is beyond
OWN_DOMAINS = ("", "ai.onnx")
# element type of a tensor -> the precision that it stands for
PRECISIONS = {1: "fp32", 10: "fp16", 16: "bf16", 17: "fp8", 18: "fp8", 19: "fp8", 20: "fp8"}
BITS = {1: 32, 10: 16, 11: 64, 16: 16, 2: 8, 3: 8, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4}  # of values that are learned
WHOLE = frozenset({2, 3, 4, 5, 6, 7, 9, 12, 13, 21, 22})  # integers and truth values
PRODUCTS = ("Conv", "Gemm", "MatMul", "ConvTranspose")
WHOLE_PRODUCTS = ("QGemm", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")
INFINITE = ("value", "min", "max", "value_float")  # attributes that may be so


def read_model(path: Path) -> ModelFile:
    """The model in a file. Raises MissingExtra, MissingFile, InputError or Unsupported."""
    try:
        import onnx
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise MissingExtra("reading ONNX models", "onnx") from None
    data, proto = slimmed(path), onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise InputError(str(path), "is no ONNX model") from None
    if not proto.HasField("graph") or not proto.graph.node:
        raise InputError(str(path), "has no graph with nodes: it is no ONNX model, or an empty one")
    opset = _opset(proto, str(path))
    if proto.functions:
        proto = _inlined(proto, str(path))
    return _Decoder(str(path), opset).model(proto)


def _opset(proto: Any, path: str) -> int:
    found = [entry.version for entry in proto.opset_import if entry.domain in OWN_DOMAINS]
    if len(found) != 1:
        raise InputError(path, "does not say which version of ONNX's operators it uses")
    if not LOWEST <= found[0] <= HIGHEST:
        said = f"uses version {found[0]} of ONNX's operators; {LOWEST} to {HIGHEST} are read"
        raise InputError(path, f"{said}, and onnx.version_converter changes a model's")
    return int(found[0])


def _inlined(proto: Any, path: str) -> Any:
    """The model with its own functions written out."""
    _check_functions(proto, path)
    try:
        from onnx.inliner import inline_local_functions

        return inline_local_functions(proto)
    except Exception:  # its checks have exceptions of their own, without a common base
        raise InputError(path, "has functions of its own that onnx cannot write out") from None


def _check_functions(proto: Any, path: str) -> None:
    """Raise InputError for functions that call each other, and for those that are too large when they are written out."""
    functions = {(each.domain, each.name): each for each in proto.functions}
    calls = {key: [call for node in each.node for call in _calls(node)] for key, each in functions.items()}
    size: dict[tuple[str, str], tuple[int, int]] = {}  # nodes and bytes
    try:
        order = list(TopologicalSorter({key: [call for call in found if call in functions] for key, found in calls.items()})
                     .static_order())  # fmt: skip
    except CycleError:
        raise InputError(path, "has functions of its own that call each other") from None

    def total(own: list[tuple[str, str]], held: int) -> tuple[int, int]:
        found = [size[call] for call in own if call in size]
        nodes, data = len(own) + sum(one[0] for one in found), held + sum(one[1] for one in found)
        if nodes > LIMIT.entries or data > MOST_LEFT:
            raise InputError(path, f"has functions of its own that make more than {LIMIT.entries} nodes, or {MOST_LEFT} bytes, "
                                   "when they are written out; refused")  # fmt: skip
        return nodes, data

    for key in order:
        size[key] = total(calls[key], functions[key].ByteSize())
    total([call for node in proto.graph.node for call in _calls(node)], 0)


def _calls(node: Any) -> Iterator[tuple[str, str]]:
    """The operators of a node and of the graphs in its attributes."""
    waiting = [node]
    while waiting:
        now = waiting.pop()
        yield now.domain, now.op_type
        for attribute in now.attribute:
            for graph in (attribute.g, *attribute.graphs):
                waiting.extend(graph.node)


class _Decoder:
    """The parts of a message as those of a `ModelFile`; problems are collected."""

    def __init__(self, path: str, opset: int) -> None:
        self.path, self.opset = path, opset
        self.problems: list[str] = []

    def model(self, proto: Any) -> ModelFile:
        """The whole model."""
        graph = proto.graph
        constants = {_text(tensor.name): self.constant(tensor) for tensor in graph.initializer}
        if len(constants) < len(graph.initializer):
            self.problems.append("has two initializers of one name")
        for sparse in graph.sparse_initializer:
            constants[_text(sparse.values.name)] = StoredTensor(shape=tuple(sparse.dims))
        given = [info for info in graph.input if _text(info.name) not in constants]
        if len({info.name for info in given}) < len(given):
            self.problems.append("has two inputs of one name")
        inputs = {_text(info.name): self.dims(info, position == 0) for position, info in enumerate(given)}
        nodes = [self.node(node, constants) for node in graph.node]
        if self.problems:
            raise InputError(self.path, self.problems)
        return ModelFile(
            path=self.path, name=Path(self.path).stem, source=_source(proto), inputs=inputs, constants=constants,
            nodes=tuple([node for node in nodes if node is not None]), outputs=tuple([_text(info.name) for info in graph.output]),
            hints=self.hints([*graph.value_info, *graph.output]), dtype=_dtype(graph),
            indices=frozenset(_text(info.name) for info in given if info.type.tensor_type.elem_type in WHOLE), opset=self.opset,
        )  # fmt: skip

    def dims(self, info: Any, first: bool) -> tuple[Dim, ...]:
        """The shape of an input; a size without a name is called after its place, the first one of an input `batch`."""
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type" or not info.type.tensor_type.HasField("shape"):
            what = "whose shape is not in the file" if kind in ("tensor_type", None) else f"that is no tensor ({kind})"
            raise Unsupported(f"{self.path}: has the input {short(info.name)}, {what}")
        found: list[Dim] = []
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                found.append(int(dim.dim_value))
            else:
                found.append(_text(dim.dim_param) or ("batch" if axis == 0 else f"{_text(info.name)}_{axis}"))
        return tuple(found)

    def hints(self, infos: Iterable[Any]) -> dict[str, tuple[Dim, ...]]:
        """Shapes that the file states of tensors, where it states all of one."""
        found = {}
        for info in infos:
            if info.type.tensor_type.HasField("shape"):
                dims = info.type.tensor_type.shape.dim
                if all(dim.HasField("dim_value") or dim.dim_param for dim in dims):
                    sizes = [int(dim.dim_value) if dim.HasField("dim_value") else _text(dim.dim_param) for dim in dims]
                    found[_text(info.name)] = tuple(sizes)
        return found

    def node(self, proto: Any, constants: dict[str, StoredTensor]) -> ModelNode | None:
        """A node; None for a constant, which joins the others."""
        kind, domain = _text(proto.op_type), "" if proto.domain in OWN_DOMAINS else _text(proto.domain)
        kind = kind if not domain or (domain == "com.microsoft" and kind in MICROSOFT) else f"{domain}.{kind}"
        node = ModelNode(kind=kind, name=_text(proto.name), inputs=tuple(map(_text, proto.input)),
                         outputs=tuple(map(_text, proto.output)), domain=domain)  # fmt: skip
        attributes = {_text(each.name): self.attribute(node, each) for each in proto.attribute}
        if len(attributes) < len(proto.attribute):
            self.problems.append(f"{node.said} has an attribute twice")
        if node.kind == "Constant" and not node.domain and len(node.outputs) == 1 and not node.inputs:
            if node.outputs[0] in constants:
                self.problems.append(f"{node.said} makes {short(node.outputs[0])}, which is a constant already")
            constants[node.outputs[0]] = _constant_of(attributes)
            return None
        return replace(node, attributes=attributes)

    def attribute(self, node: ModelNode, proto: Any) -> Any:
        """The value of an attribute."""
        kind = proto.type
        if kind == 1 or kind == 6:
            values = [proto.f] if kind == 1 else list(proto.floats)
            if any(math.isnan(value) or (math.isinf(value) and proto.name not in INFINITE) for value in values):
                self.problems.append(f"{node.said} has the attribute {short(proto.name)}, which is not a finite number")
            return values[0] if kind == 1 else values
        if kind == 2 or kind == 7:
            return int(proto.i) if kind == 2 else [int(value) for value in proto.ints]
        if kind == 3 or kind == 8:
            found = [value.decode("utf-8", "replace") for value in ([proto.s] if kind == 3 else proto.strings)]
            return found[0] if kind == 3 else found
        if kind == 4:
            return self.constant(proto.t)
        return self.graph(proto.g) if kind == 5 else ""

    def graph(self, proto: Any) -> SubGraph:
        """A graph inside a node."""
        constants = {_text(tensor.name): self.constant(tensor) for tensor in proto.initializer}
        nodes = [self.node(node, constants) for node in proto.node]
        return SubGraph(
            inputs=tuple([_text(info.name) for info in proto.input]), outputs=tuple([_text(info.name) for info in proto.output]),
            nodes=tuple([node for node in nodes if node is not None]), constants=constants,
        )  # fmt: skip

    def constant(self, tensor: Any) -> StoredTensor:
        """A tensor, with its values where they were kept."""
        found = StoredTensor(shape=tuple(int(dim) for dim in tensor.dims), bits=BITS.get(tensor.data_type, 0))
        if any(dim < 0 for dim in found.shape) or tensor.data_location or not 0 <= math.prod(found.shape) <= KEPT:
            return found
        from onnx import numpy_helper

        try:
            value = np.asarray(numpy_helper.to_array(tensor))
        except Exception:  # of a type or a length that it refuses, each in its own way
            return found
        return replace(found, value=value) if value.dtype.kind in "biuf" and value.shape == found.shape else found


def _text(value: str | bytes) -> str:
    """A text of a message; one that is no UTF-8 may come as bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _constant_of(attributes: Mapping[str, Any]) -> StoredTensor:
    """The tensor of a Constant node, however it is written."""
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        if name in attributes:
            value = attributes[name]
            if isinstance(value, StoredTensor):
                return value
            array: Array = np.array(value, np.int64 if "int" in name else np.float32)
            return StoredTensor(shape=array.shape, value=array)
    return StoredTensor(shape=())


def _source(proto: Any) -> str:
    producer = " ".join(filter(None, (_text(proto.producer_name), _text(proto.producer_version))))
    return printable(f"ONNX{', written by ' + producer if producer else ''}", 200, " ")


def _dtype(graph: Any) -> str:
    """The precision of most of the parameters, by the values that they have."""
    count: dict[str, int] = {}
    for tensor in graph.initializer:
        if tensor.data_type in PRECISIONS:
            name = PRECISIONS[tensor.data_type]
            count[name] = count.get(name, 0) + math.prod(tensor.dims)
    most = max(count, key=lambda name: count[name]) if count else "fp32"
    return "int8" if _quantised(graph) else most


def _quantised(graph: Any) -> bool:
    """Whether most products take whole numbers: they are written so, or stand behind what turns whole numbers back."""
    turned = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear" and node.output}
    products = [node for node in graph.node if node.op_type in PRODUCTS or node.op_type in WHOLE_PRODUCTS]
    whole = [node for node in products if node.op_type in WHOLE_PRODUCTS or turned.issuperset(list(node.input)[:2])]
    return 2 * len(whole) > len(products)
