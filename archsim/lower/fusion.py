"""Which ops of a network a stack computes in the kernel of another op, by what stands before and behind them in the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from archsim.lower.kernel import Kernel, Plan
from archsim.stack.stack import Stack
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp

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
        options = tuple([replace(o, kernels=(*o.kernels[:-1], self._widened(o.kernels[-1]))) for o in plan.options])
        return replace(plan, options=options, read_bytes=max(0.0, plan.read_bytes + self.reads),
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
