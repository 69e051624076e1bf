"""`ModelFile`: a network as its file describes it, in ONNX's vocabulary; `Call`: one node with what is known of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import InputError, nearest, refuse
from archsim.trace.dims import LARGEST, Shape, short, show
from archsim.trace.trace import ordered

Array = NDArray[Any]
Dim = int | str  # a size, or the file's name of one
Dims = tuple[Dim, ...]
FEW = 2000  # names at most for the search of a nearest one
MOST_RANK = 16  # dimensions of a tensor in a file
ENOUGH = 20  # problems, after which checking stops
SHOWN = 6  # members of a cycle that an error names


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor of the file: its shape, and its values where they are few enough to be of use for shapes.

    bits: of a value; 0 for indices and truth values, which nobody learns
    """

    shape: tuple[int, ...]
    value: Array | None = None
    bits: int = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelNode:
    """One node: operator, tensors ("" for one that is left out), attributes.

    kind: the operator by which rules know it, with its domain where that means another one: "Conv", "my.Conv"
    domain: "" for ONNX's own
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""

    @property
    def said(self) -> str:
        """The node in a message."""
        called = self.name or next(filter(None, self.outputs), "")
        return f"node {short(called)} ({self.operator})"

    @property
    def operator(self) -> str:
        """The operator with its domain, where that is not ONNX's own."""
        there = not self.domain or self.kind.startswith(f"{self.domain}.")
        return self.kind if there else f"{self.domain}.{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGraph:
    """A graph in an attribute of a node of control flow, which may read tensors of the graph around it."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[ModelNode, ...]
    constants: Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A network before shapes are known.

    inputs: shapes by name, a size or the file's name of one
    indices: the inputs that are whole numbers
    hints: shapes that the file states of tensors in between, for operators that nobody here knows
    dtype: of most of its parameters
    opset: version of ONNX's operators
    """

    path: str
    name: str
    source: str
    inputs: Mapping[str, Dims]
    constants: Mapping[str, StoredTensor]
    nodes: tuple[ModelNode, ...]
    outputs: tuple[str, ...]
    hints: Mapping[str, Dims] = field(default_factory=dict)
    indices: frozenset[str] = frozenset()
    dtype: str = "fp32"
    opset: int = 17


def checked(model: ModelFile) -> ModelFile:
    """The model with its nodes in an order in which they can run. Raises InputError for names and shapes that cannot be."""
    problems = [*_shape_problems(model), *_name_problems(model)]
    refuse(model.path, problems)
    from dataclasses import replace

    return replace(model, nodes=tuple(_ordered(model)))


def _shape_problems(model: ModelFile) -> Iterable[str]:
    found = []
    for name, dims in model.inputs.items():
        if len(dims) > MOST_RANK:
            found.append(f"input {short(name)} has {len(dims)} dimensions; at most {MOST_RANK} are read")
        for dim in dims:
            if isinstance(dim, int) and not 1 <= dim <= LARGEST:
                found.append(f"input {short(name)} has the dimension {dim}; a size is a whole number from 1 to 2^53")
    for name, constant in model.constants.items():
        wrong = [dim for dim in constant.shape if not 0 <= dim <= LARGEST]
        if wrong or len(constant.shape) > MOST_RANK:
            found.append(f"constant {short(name)} has the shape {list(constant.shape[:MOST_RANK])}, which no tensor has")
        elif float(np.prod(constant.shape, dtype=float)) > LARGEST:
            found.append(f"constant {short(name)} has the shape {list(constant.shape)}, more than 2^53 values")
        if len(found) > ENOUGH:
            break
    return found


def _name_problems(model: ModelFile) -> list[str]:
    """Every tensor is made once, and what is read exists."""
    problems: list[str] = []
    made = dict.fromkeys([*model.inputs, *model.constants], "an input or a constant")
    for node in model.nodes:
        for name in filter(None, node.outputs):
            if name in made:
                problems.append(f"{node.said} makes {short(name)}, which {made[name]} is already")
            made[name] = f"the result of {node.said}"
        if len(problems) > ENOUGH:
            return problems
    few = [*made] if len(made) < FEW else []
    wanted = [(node.said + " reads", name) for node in model.nodes for name in node.inputs if name]
    wanted += [("the model's output is", name) for name in model.outputs]
    for place, name in wanted:
        if name not in made:
            near = nearest(name, few)
            problems.append(
                f"{place} {short(name)}, which nothing makes" + (f"; nearest: {', '.join(map(short, near))}" if near else "")
            )
            if len(problems) > ENOUGH:
                break
    return problems


def _ordered(model: ModelFile) -> Sequence[ModelNode]:
    """The nodes as they stand, where that order can run, else in one that can. Raises InputError for a cycle."""
    maker = {name: str(place) for place, node in enumerate(model.nodes) for name in node.outputs if name}
    needs = [(str(place), [maker[name] for name in node.inputs if name in maker]) for place, node in enumerate(model.nodes)]
    try:
        return [model.nodes[place] for place in ordered(needs)]
    except CycleError as error:
        ring = [model.nodes[int(place)] for place in error.args[1]]
    shown = [short(node.name or node.outputs[0]) for node in ring]
    shown = shown if len(ring) <= SHOWN + 1 else [*shown[:SHOWN], f"... ({len(ring) - 1} nodes)"]
    raise InputError(model.path, f"has a cycle: {' -> '.join(shown)}")


# ------------------------------------------------------------------------------------------------------------ operators

# one input (and parameters), a result of its shape
UNARY = {
    "Abs": 1, "Neg": 1, "Ceil": 1, "Floor": 1, "Round": 1, "Sign": 1, "Sqrt": 1, "Reciprocal": 1, "Exp": 1, "Log": 1, "Not": 1,
    "Sin": 1, "Cos": 1, "Tan": 1, "Asin": 1, "Acos": 1, "Atan": 1, "Sinh": 1, "Cosh": 1, "Asinh": 1, "Acosh": 1, "Atanh": 1,
    "Erf": 1, "Softplus": 3, "Softsign": 3, "Elu": 3, "Celu": 4, "Selu": 4, "ThresholdedRelu": 2, "PRelu": 2, "Mish": 5,
    "Shrink": 2, "Hardmax": 2, "IsNaN": 1, "IsInf": 1, "BitwiseNot": 1, "CumSum": 1, "Trilu": 0, "LpNormalization": 4,
    "MeanVarianceNormalization": 5, "Clip": 2, "BitShift": 1, "QuickGelu": 6, "ReverseSequence": 0, "LogSoftmax": 6,
    "RotaryEmbedding": 3, "RandomNormalLike": 4, "RandomUniformLike": 4, "Bernoulli": 2, "EyeLike": 0, "Det": 1, "Swish": 5,
    "TensorScatter": 0, "QLinearSigmoid": 4, "QLinearLeakyRelu": 2, "QLinearSoftmax": 5,
    "Power": 3, "Threshold": 1,  # of Caffe
}  # fmt: skip
# one input, a result of its shape, with a form of its own in a trace
SAME = (
    *UNARY, "Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "FastGelu", "BiasGelu", "Softmax", "LRN",
    "Identity", "Cast", "CastLike", "Dropout", "QuantizeLinear", "DequantizeLinear", "Scatter", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)  # fmt: skip
# any number of inputs that stretch to one shape
BROADCAST = {
    "Add": 1, "Sub": 1, "Mul": 1, "Div": 1, "Pow": 1, "Mod": 1, "Max": 1, "Min": 1, "Sum": 1, "Mean": 1, "Equal": 1, "Greater": 1,
    "Less": 1, "GreaterOrEqual": 1, "LessOrEqual": 1, "And": 1, "Or": 1, "Xor": 1, "Where": 1, "BitwiseAnd": 1, "BitwiseOr": 1,
    "BitwiseXor": 1,
}  # fmt: skip
REDUCTIONS = (
    "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceSumSquare",
)  # fmt: skip
# operators of com.microsoft that have a rule of their own name, or mean what ONNX's of that name do
MICROSOFT = frozenset({
    "Gelu", "FastGelu", "BiasGelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "FusedConv",
    "FusedMatMul", "QuantizeLinear", "DequantizeLinear", "QLinearAdd", "QLinearMul", "RotaryEmbedding", "MultiHeadAttention",
    "GroupQueryAttention", "MatMulNBits", "MoE", "EmbedLayerNormalization", "QGemm", "QLinearGlobalAveragePool",
    "QLinearAveragePool", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax",
})  # fmt: skip
# on lists of tensors, on texts, and what makes as many results as values say
REFUSED = {
    "Scan": "runs a graph for each part of a tensor, which is not written out here",
    **dict.fromkeys(("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
                     "SplitToSequence", "ConcatFromSequence", "SequenceMap", "Optional", "OptionalGetElement",
                     "OptionalHasElement"),
                    "works on lists of tensors"),
    **dict.fromkeys(("StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "ImageDecoder"),
                    "works on texts or coded images"),
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- calls


class Refusal(ValueError):
    """What is wrong with one node, in a sentence."""


class Unknown(Refusal):
    """A shape that depends on values nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTensor:
    """What is known of a tensor: its shape; its values, where they are few; whether it is the same whatever the inputs hold."""

    shape: Shape
    value: Array | None = None
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A node and what is known of its inputs; None for one that is left out."""

    node: ModelNode
    inputs: Sequence[KnownTensor | None]
    opset: int

    def __len__(self) -> int:
        return len(self.inputs)

    def has(self, i: int) -> bool:
        """Whether there is an input i."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def known(self, i: int) -> KnownTensor:
        """Input i."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if found is None:
            raise Refusal(f"needs at least {i + 1} inputs")
        return found

    def shape(self, i: int = 0) -> Shape:
        """The shape of input i."""
        return self.known(i).shape

    def value(self, i: int) -> Array | None:
        """The values of input i, None where they are not known or it is left out."""
        return self.known(i).value if self.has(i) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.node.attributes.get(name, default)

    def integer(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        found = self.attribute(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or abs(found) > LARGEST:
            raise Refusal(f"has the attribute {name} {found!r}, which is no whole number in range")
        return found

    def integers(self, name: str, default: Sequence[int] | None = None, *, at: int | None = None) -> list[int] | None:
        """A list of whole numbers: an attribute, or the values of input `at`. Raises Unknown where its values are not known."""
        found = self.attribute(name)
        if found is None and at is not None and self.has(at):
            value = self.value(at)
            if value is None:
                raise Unknown(
                    f"needs the values of its input {self.node.inputs[at]!r}, which depend on what the network is given"
                )
            found = [int(each) for each in np.ravel(value).tolist()]
        if found is None:
            return None if default is None else list(default)
        if not isinstance(found, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in found):
            raise Refusal(f"has the attribute {name} {found!r}, which is no list of whole numbers")
        return list(found)

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        """An axis counted from the front."""
        return axis_in(self.integer(name, default), len(self.shape()) if rank is None else rank)

    def text(self, name: str, default: str) -> str:
        """An attribute that is a word."""
        found = self.attribute(name, default)
        return found if isinstance(found, str) else default


def axis_in(axis: int, rank: int) -> int:
    """An axis counted from the front; raises Refusal where a tensor of this rank has none such."""
    if not -rank <= axis < max(rank, 1):
        raise Refusal(f"has the axis {axis}, but its input has {rank} dimensions")
    return axis % max(rank, 1)


def broadcast(*shapes: Shape) -> Shape:
    """The shape to which all stretch. Raises Refusal where they do not fit.

    >>> broadcast((8, 1, 5), (3, 1))
    (8, 3, 5)
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    found = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise Refusal(f"joins inputs of unlike shapes {' and '.join(map(show, shapes))}")
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def constant(value: StoredTensor) -> KnownTensor:
    """What is known of a tensor of the file."""
    return KnownTensor(shape=value.shape, value=value.value, fixed=True)
