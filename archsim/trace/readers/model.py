"""`ModelFile`: a network as its file describes it, in ONNX's vocabulary of nodes, before shapes are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import InputError, nearest
from archsim.trace.dims import LARGEST, short
from archsim.trace.order import ordered

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
    if problems:
        raise InputError(model.path, problems)
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
