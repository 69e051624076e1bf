"""What a chain of ops in one kernel does: values rounded between ops, kernels with those of others added to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from archsim.lower.columns import GpuColumns, Role, TileColumns
from archsim.lower.context import Context, element_wise
from archsim.lower.kernel import Kernel, Plan
from archsim.stack.parts import Passes
from archsim.stack.stack import Stack
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp


def quantised(context: Context, tokens: float, features: float, how: str = "quantise") -> tuple[Kernel, ...]:
    """The kernels that round activations to one byte before a product on tensor cores, where the stack keeps them wider.

    `how` is the row of `passes` that says what they move; without that row the values are taken to be in one byte already. Where
    it says `row_threads`, each token is a CTA's: of several kernels the last rounds, those before it find the largest value.
    Where it says `grid`, the first one finds the largest of all.
    """
    if context.element > 1 or not context.tensor or how not in context.stack.passes:
        return ()
    passes, values = context.passes(how, "forward"), tokens * features
    each = passes.inputs * values * context.result / passes.launches
    writes = passes.outputs * values * context.element
    if passes.row_threads:
        last = passes.launches - 1
        return tuple([
            _by_row(context, passes, tokens, features, each, writes if i == last else 0.0, float(i < passes.row_updates))
            for i in range(passes.launches)
        ])  # fmt: skip
    found = (_by_grid(context, passes, values),) if passes.grid[0] else ()
    others = passes.launches - len(found) or 1
    reads = passes.inputs * values * context.result - sum(kernel.b_bytes for kernel in found)
    return (*found, element_wise("quantise", Role.QUANTISE, reads / others, writes / others, flop=values / others,
                                 element=context.vector, repeat=others))  # fmt: skip


def _by_grid(context: Context, passes: Passes, values: float) -> Kernel:
    """The largest of all values, found by a fixed number of CTAs, each of which ends with an atomic update of one address."""
    ctas, threads = map(float, passes.grid)
    kernel = element_wise("largest", Role.QUANTISE, values * context.result, 0.0, flop=values, element=context.vector)
    return replace(kernel, items=ctas * threads, gpu=GpuColumns(row_count=ctas, updates=ctas), cta=TileColumns(threads=threads))


def _by_row(
    context: Context, passes: Passes, rows: float, length: float, reads: float, writes: float, update: float
) -> Kernel:  # fmt: skip
    """One kernel with a CTA for each of its rows of `length` values, whose threads load what they store 16 B of at once.

    A CTA has a thread for each load, within what `passes` says. Where it comes back to its row, it finds it in the caches as far
    as these keep the rows of all CTAs. `update`: 1 where it ends with an atomic update of one address.
    """
    size, load = length * context.result, context.vector * context.result / context.element
    threads = max(float(passes.row_least), min(float(passes.row_threads), ceil(size / load)))
    visits = reads / (rows * size)
    gpu = GpuColumns(row=length, row_count=rows, row_piece=length, row_reads=visits, updates=update * rows,
                     row_in_flight=size / threads * (visits > 1.0))  # fmt: skip
    kernel = element_wise("quantise" if writes else "largest", Role.QUANTISE, reads, writes, flop=rows * length, element=load)
    return replace(kernel, items=rows * threads, operand_a=context.result, gpu=gpu,
                   cta=TileColumns(threads=threads))  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- fusion

ORDER = {"batch_norm": 0, "scale": 0, "add": 1}  # what is fused into one kernel comes in this order; activations are the last
LAST = 2
STAGE = "stage"  # the algorithm of blocks of convolutions that are one kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What fused ops add to the kernel of their anchor: bytes moved, less what stays in registers, and arithmetic [FLOP]."""

    reads: float = 0.0
    writes: float = 0.0
    flop: float = 0.0

    def added_to(self, plan: Plan) -> Plan:
        """The plan whose last kernel also does what joins it."""
        wider = plan.with_kernels(lambda own: (*own[:-1], self._widened(own[-1])))
        return replace(wider, read_bytes=max(0.0, plan.read_bytes + self.reads),
                       write_bytes=max(0.0, plan.write_bytes + self.writes))  # fmt: skip

    def _widened(self, kernel: Kernel) -> Kernel:
        reads, writes, flop = (part / kernel.repeat for part in (self.reads, self.writes, self.flop))
        if kernel.menu:  # a product moves all of that as it stores its result
            return replace(kernel, c_bytes=max(0.0, kernel.c_bytes + reads + writes), flop=kernel.flop + flop)
        return replace(kernel, b_bytes=max(0.0, kernel.b_bytes + reads), c_bytes=max(0.0, kernel.c_bytes + writes),
                       flop=kernel.flop + flop)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """The chains of a network. into: op = the op whose kernel computes it too; joined: what such a kernel does besides."""

    into: Mapping[str, str] = field(default_factory=dict)
    joined: Mapping[str, Joined] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The runs of blocks of a network. into: op = the convolution under whose name its kernel runs; plans: those kernels."""

    into: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)


def fusion_of(ops: Sequence[BoundOp], stack: Stack, training: bool) -> Mapping[str, str]:
    """What the stack fuses in these ops at inference, by its `fused`: op = the op whose kernel computes it too, by name.

    An op is fused into the kernel of the op whose result it takes, if nothing else reads that result, and each of `ORDER` once
    and in that order: a convolution, its batch normalisation, the sum with a shortcut, an activation. A sum is fused too where
    the op that reads it takes two inputs, as a layer normalisation with its residual.
    """
    if training or not stack.fused:
        return {}
    readers = Counter(name for op in ops for name in dict.fromkeys(op.inputs))
    kinds = {op.name: op.kind.op for op in ops}
    first_reader = {name: op.kind.op for op in reversed(ops) for name in op.inputs}
    into: dict[str, str] = {}
    stage: dict[str, int] = {}
    for op in ops:
        own, hosts = ORDER.get(op.kind.op, LAST), stack.fused.get(op.kind.op, ())
        if op.phase != FORWARD or not hosts:
            continue
        for name in op.inputs:
            root = into.get(name, name)
            if readers[name] == 1 and kinds.get(root) in hosts and stage.get(root, -1) < own:
                into[op.name], stage[root] = root, own
                break
        else:
            if op.kind.op == "add" and first_reader.get(op.name) in hosts:
                into[op.name] = op.name
    return into
