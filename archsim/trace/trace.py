"""A network as a graph of ops: `Trace` with a symbolic batch, `BoundTrace` with all sizes known.

A tensor has the name of the op that produces it, or of the network input. Ops are in execution order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from archsim.base.errors import nearest
from archsim.trace.dims import BATCH, LARGEST, SEQUENCE, Dim, Extent, Shape, bind_dims, elements, show, symbols_in
from archsim.trace.kind import FORWARD, UPDATE, Kind

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One op of a trace.

    A gradient (a phase that begins with "backward") keeps the kind and the output shape of its forward op, and in `of` the
    shapes of that op's inputs, so that lowering sees the sizes of the layer together with the phase. Its own `inputs` are only
    dependencies.
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    shape: tuple[Dim, ...]
    phase: str = FORWARD
    parent: str = ""
    """The forward op that a gradient or an update belongs to."""
    of: tuple[tuple[Dim, ...], ...] = ()
    """Input shapes to work on, where they are not those of the tensors in `inputs`."""
    shares: str = ""
    """The op whose learned values this one reads too, as a layer that is applied again, or scores of words by their table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundOp:
    """One op with all sizes known; `input_shapes` and `shape` are those of the forward op in every phase.

    shared: learned values of the op in `shares`, which counts them
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape
    phase: str = FORWARD
    parent: str = ""
    shares: str = ""
    shared: int = 0

    @property
    def macs(self) -> int:
        """Multiply-accumulates of convolution, linear, matmul, lstm and attention; of a gradient, its own."""
        if self.phase in (FORWARD, UPDATE):
            return self.kind.macs(self.input_shapes, self.shape)
        return self.kind.gradient_macs(self.phase, self.input_shapes, self.shape)

    @property
    def flop(self) -> int:
        """All arithmetic, 1 MAC = 2 FLOP [FLOP]."""
        if self.phase in (FORWARD, UPDATE):
            return self.kind.flop(self.input_shapes, self.shape)
        return self.kind.gradient_flop(self.phase, self.input_shapes, self.shape)

    @property
    def learned(self) -> int:
        """Learned values of the forward op that no other one counts."""
        return max(0, self.kind.parameters(self.input_shapes, self.shape) - self.shared)

    @property
    def parameters(self) -> int:
        """Learned values that belong to the op; its gradients and update have none of their own."""
        return self.learned if self.phase == FORWARD else 0

    def stored(self, element: float) -> float:
        """Memory of its learned values, of `element` bytes each where their kind does not say fewer [B]."""
        return self.learned * min(element, getattr(self.kind, "weight_bytes", 0.0) or element)

    @property
    def signature(self) -> tuple[Kind, str, tuple[Shape, ...], Shape]:
        """What decides the work of the op; equal for equal layers."""
        return (self.kind, self.phase, self.input_shapes, self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTrace:
    """A trace with values for its symbols. `inputs` are shapes by name, `ops` are in execution order."""

    name: str
    inputs: Mapping[str, Shape]
    ops: tuple[BoundOp, ...]
    symbols: Mapping[str, int]
    dtype: str = "fp32"
    outputs: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def images(self) -> list[Shape]:
        """The inputs that are images: [N, C, H, W] of one colour, or of three."""
        return [s for s in self.inputs.values() if len(s) == 4 and s[1] in (1, 3) and min(s[2:]) > 1]

    @property
    def sample(self) -> str:
        """What a batch has so many of: images, sequences of any number of tokens, or samples of another kind."""
        return "img" if self.images else "seq" if SEQUENCE in self.symbols else "samples"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all ops."""
        return sum(op.macs for op in self.ops)

    @property
    def flop(self) -> int:
        """Arithmetic of all ops [FLOP]."""
        return sum(op.flop for op in self.ops)

    @property
    def parameters(self) -> int:
        """Learned values of all forward ops."""
        return sum(op.parameters for op in self.ops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A network as described by a trace file. `inputs` are shapes by name, `ops` are in execution order.

    `outputs` are the wanted tensors; without any, all that no op reads. `sizes` are the symbols with a default value, `symbols`
    and `notes` explanations, `aliases` further names of the network. `left_out` says what of its source is none of the ops.
    """

    name: str
    inputs: Mapping[str, tuple[Dim, ...]]
    dtype: str = "fp32"
    source: str = ""
    ops: tuple[Op, ...]
    outputs: tuple[str, ...] = ()
    sizes: Mapping[str, Extent] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    notes: str = ""
    left_out: str = ""

    @property
    def free_symbols(self) -> tuple[str, ...]:
        """The symbols of all shapes, sorted."""
        shapes = [*self.inputs.values(), *(shape for op in self.ops for shape in (op.shape, *op.of))]
        return tuple(sorted(symbols_in(dim for shape in shapes for dim in shape)))

    @property
    def unsized(self) -> tuple[str, ...]:
        """The symbols that `bind` needs, sorted: those without a size of their own."""
        return tuple([name for name in self.free_symbols if name not in self.sizes])

    def symbol_called(self, name: str) -> str:
        """The symbol of this name, or of which `symbols` says nothing but this name; empty where there is none.

        So a file's own name of a size leads to its symbol.
        """
        free = self.free_symbols
        return name if name in free else next((symbol for symbol in free if self.symbols.get(symbol) == name), "")

    @property
    def fixed_batch(self) -> int | None:
        """Samples of a run where the shapes fix them: the first dimension that all inputs share, else 1; None where N is free."""
        if BATCH in self.free_symbols:
            return None
        first = {dims[0] if dims else 1 for dims in self.inputs.values()}
        (shared,) = first if len(first) == 1 else (1,)
        return shared if isinstance(shared, int) else 1

    def samples(self, batch: int | None) -> int:
        """Samples in a run that was asked for with this batch; without one, those that the shapes fix, else 1.

        Raises ValueError for another batch than the shapes have: the run would be the same, and its rate wrong.
        """
        fixed = self.fixed_batch
        if batch not in (None, fixed) and fixed is not None:
            raise ValueError(f"batch {batch}: the shapes of network {self.name!r} are of batch {fixed}; ask for that one, or "
                             "write 'N' in place of it in inputs and outputs of a trace file, export a model "
                             "with a dynamic batch")  # fmt: skip
        return fixed or batch or 1

    @property
    def ends(self) -> tuple[str, ...]:
        """The outputs; where none are named, every tensor that no op consumes."""
        if self.outputs:
            return self.outputs
        used = self.consumers()
        return tuple([op.name for op in self.ops if op.name not in used])

    def bind(self, **symbols: int) -> BoundTrace:
        """The trace with every size known, `trace.bind(N=16)`; symbols with a usual size may be left out.

        Raises ValueError for a missing or unknown symbol, a value that is no whole number from 1 or larger than the network can
        take, and a tensor of more than 2^53 values.
        """
        usual = {name: self.sizes[name].usual for name in self.free_symbols if name in self.sizes}
        symbols = usual | symbols
        self._check_symbols(symbols)
        shapes = {name: bind_dims(dims, symbols) for name, dims in self.inputs.items()}
        for name, shape in shapes.items():
            _check_size(name, shape)
        inputs, ops = dict(shapes), []
        for op in self.ops:
            shape = shapes[op.name] = bind_dims(op.shape, symbols)
            _check_size(op.name, shape)
            seen = [bind_dims(dims, symbols) for dims in op.of] if op.of else [shapes[name] for name in op.inputs]
            ops.append(BoundOp(name=op.name, kind=op.kind, inputs=op.inputs, input_shapes=tuple(seen), shape=shape,
                               phase=op.phase, parent=op.parent, shares=op.shares))  # fmt: skip
        return BoundTrace(name=self.name, inputs=inputs, ops=_sharing(ops), symbols=dict(symbols), dtype=self.dtype,
                          outputs=self.ends, left_out=self.left_out)  # fmt: skip

    def _check_symbols(self, symbols: Mapping[str, object]) -> None:
        needed = self.free_symbols
        for name in needed:
            if name not in symbols:
                raise ValueError(f"network {self.name!r} needs a value for {name}: bind({name}=1)")
        for name, value in symbols.items():
            if name not in needed:
                near = nearest(name, needed) or list(needed)
                raise ValueError(f"network {self.name!r} has no symbol {name!r}; it has {', '.join(near) or 'none'}")
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
            if name in self.sizes and value > self.sizes[name].most:
                raise ValueError(f"{name} must be at most {self.sizes[name].most} in network {self.name!r}, not {value}")

    def consumers(self) -> dict[str, tuple[str, ...]]:
        """The ops that read each tensor, in execution order; a tensor that nobody reads is not listed."""
        found: dict[str, list[str]] = {}
        for op in self.ops:
            for name in dict.fromkeys(op.inputs):
                found.setdefault(name, []).append(op.name)
        return {name: tuple(ops) for name, ops in found.items()}

    def without_dead_code(self) -> Trace:
        """The trace with only the ops that its outputs need; without named outputs, the trace itself."""
        if not self.outputs:
            return self
        needed = set(self.outputs)
        for op in reversed(self.ops):
            if op.name in needed:
                needed.update(op.inputs)
        return self.keeping(op for op in self.ops if op.name in needed)

    def keeping(self, ops: Iterable[Op]) -> Trace:
        """The same trace with other ops."""
        return replace(self, ops=tuple(ops))

    def graph(self) -> networkx.DiGraph:
        """The graph of tensors, from inputs to outputs; a node that an op produces carries it as `op`."""
        import networkx

        graph = networkx.DiGraph(name=self.name)
        graph.add_nodes_from(self.inputs)
        for op in self.ops:
            graph.add_node(op.name, op=op)
            graph.add_edges_from((name, op.name) for name in op.inputs)
        return graph


def _sharing(ops: Iterable[BoundOp]) -> tuple[BoundOp, ...]:
    """Ops with the number of learned values that another one counts; where there are gradients only, theirs stand for it."""
    listed = tuple(ops)
    owners = {op.shares for op in listed}
    count = {op.parent or op.name: op.learned for op in listed if (op.parent or op.name) in owners and op.learned}
    return tuple([replace(op, shared=count.get(op.shares, 0)) if op.shares else op for op in listed])


def _check_size(name: str, shape: Shape) -> None:
    if elements(shape) > LARGEST:
        raise ValueError(f"tensor {name!r} {show(shape)} has more than 2^53 values")


# --------------------------------------------------------------------------------------------------- order of execution


def ordered(needs: Sequence[tuple[str, Iterable[str]]], given: Iterable[str] = ()) -> list[int]:
    """Positions in an order in which every op comes after all that it needs: as they stand, where that is one.

    needs: (name, inputs) of each op; given: the network inputs. Raises what `execution_order` does.

    >>> ordered([("c", ["a"]), ("a", []), ("b", [])])
    [1, 0, 2]
    """
    seen = set(given)
    for name, inputs in needs:
        if not seen.issuperset(inputs):
            return execution_order(needs)
        seen.add(name)
    return list(range(len(needs)))


def execution_order(needs: Sequence[tuple[str, Iterable[str]]]) -> list[int]:
    """Positions in `needs` in an order in which every op comes after those that it needs; ties keep the order of the file.

    Raises graphlib.CycleError, whose second argument is a ring of names, the first of them again at its end.

    >>> execution_order([("c", ["a"]), ("a", []), ("b", [])])
    [1, 0, 2]
    """
    place = {name: position for position, (name, _) in enumerate(needs)}
    sorter = TopologicalSorter({name: [i for i in inputs if i in place] for name, inputs in needs})
    sorter.prepare()
    order: list[int] = []
    ready = [place[name] for name in sorter.get_ready()]
    heapq.heapify(ready)
    while ready:
        position = heapq.heappop(ready)
        order.append(position)
        sorter.done(needs[position][0])
        for name in sorter.get_ready():
            heapq.heappush(ready, place[name])
    return order
