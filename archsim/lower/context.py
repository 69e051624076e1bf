"""What a lowering rule knows besides the op: the stack, the kind of device, the element size, training or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from archsim.calibration.constants import FULL
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.stack.parts import Passes
from archsim.stack.stack import Stack
from archsim.trace.dims import Shape
from archsim.trace.trace import BoundOp

SIZED = {1: "byte", 4: "word"}  # sizes of an operand [B] for which a library has tiles of their own
HALF = 2  # B of a value of fp16 or bf16


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How values lie in memory that are multiplied in more bytes.

    weight_bytes, cache_bytes: size of a weight of a linear layer, and of a cached key or value [B]; 0: as they are multiplied
    """

    weight_bytes: float = 0.0
    cache_bytes: float = 0.0


AS_MULTIPLIED = Stored()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The setting in which an op is lowered. `element` is the size of a value in memory [B].

    `tensor` says whether products of this precision run on tensor cores; `architecture` selects kernels that a library has for
    some GPUs only. `stored`: formats of weights and of cached values. `halves`: a CPU on which the stack computes fp16 in lanes
    of 16 bit.
    """

    stack: Stack
    device_kind: str
    element: int
    training: bool
    tensor: bool = False
    architecture: str = ""
    stored: Stored = AS_MULTIPLIED
    halves: bool = False

    def bytes(self, *shapes: Shape) -> float:
        """Size of tensors of these shapes [B]."""
        return float(sum(prod(shape) for shape in shapes) * self.element)

    @property
    def wide_values(self) -> int:
        """Bytes of a value between convolutions of int8: `wide_values` of the stack, half of it where it computes fp16."""
        return self.stack.wide_values // 2 if self.halves else self.stack.wide_values

    @property
    def vector(self) -> int:
        """What a thread of an element-wise kernel loads at once [B]: one value, or several where the stack's kernels do."""
        return max(self.element, self.stack.vector_bytes)

    @property
    def result(self) -> int:
        """Size of a result of a product [B]: tensor cores write the sums of 1-byte operands as bf16."""
        return max(self.element, 2) if self.tensor else self.element

    @property
    def lossless(self) -> bool:
        """Whether products run at the peak, without tiles, panels and copies: those of `ideal`, which has no menu on a GPU."""
        return not self.stack.menus if self.device_kind == "gpu" else self.device_kind == "cpu" and self.stack.lossless

    def efficiency(self, family: str) -> str:
        """The constant of a kernel family (gemm, gemv, recurrent, ...); a family `x.y` without one has that of x.

        A library may have kernels of its own for an architecture: `x.y.architecture` comes first.
        """
        names, whole = self.stack.efficiency, family.partition(".")[0]
        own = (f"{family}.{self.architecture}", family, whole)
        candidates = (f"{whole}_tensor", *own) if self.tensor else own
        return next((names[name] for name in candidates if name in names), FULL)

    def family(self, first: str, otherwise: str) -> str:
        """The kernel family `first` where the stack has a constant for it, be it on this architecture only; else `otherwise`."""
        names = self.stack.efficiency
        return first if first in names or f"{first}.{self.architecture}" in names else otherwise

    def menu(self, *names: str) -> str:
        """The library's menu of tiles for a kind of product: the first of `names` that it has, else the last of them.

        A name stands for `name_tensor` on tensor cores, before which the first has `name_tensor_byte` or `_word` for operands of
        one or four bytes. `name_half` for halves, and `name`, are for lanes, and of the last name for all. A menu `name.x` takes
        the place of `name` on the architectures that it lists, before others the one that is called as the architecture itself.
        """
        menus, here = self.stack.menus, self.architecture
        wanted = [f"{names[0]}_tensor_{SIZED[self.element]}"] if self.tensor and self.element in SIZED else []
        for name in names:
            wanted += [f"{name}_tensor"] if self.tensor else []
            wanted += [f"{name}_half"] if self.element == HALF else []
            wanted += [name] if name == names[-1] or not self.tensor else []
        own = [key for key in (*[key for key in menus if key.endswith(f".{here}")], *menus) if here in menus[key].architectures]
        found = (key for kind in wanted for key in (*own, kind) if key in menus and key.partition(".")[0] == kind)
        return next(found, names[-1])

    def first_menu(self, *names: str) -> str:
        """The first of these menus that the library has, else that of its products; empty where they lose nothing."""
        found = (name for name in map(self.menu, (*names, "gemm")) if name in self.stack.menus)
        return next(found, "" if self.lossless else "gemm")

    def algorithms(self, phase: str) -> Mapping[str, str]:
        """The convolution algorithms of the library for a phase: {algorithm: name of its efficiency constant}."""
        return self.stack.conv.candidates(self.architecture, self.tensor).get(phase, {})

    def passes(self, op: str, phase: str) -> Passes:
        """How often the stack's element-wise kernels for an op kind read and write memory in a phase."""
        rows = self.stack.passes.get(op) or self.stack.passes["default"]
        if phase == "forward" and self.training and "training" in rows:
            return rows["training"]
        return rows.get(phase) or self.stack.passes["default"][phase]


def element_wise(
    name: str, role: Role, reads: float, writes: float, *, flop: float = 0, weights: float = 0, element: float = 4,
    repeat: float = 1, efficiency: str = FULL, dense: bool = False,
) -> Kernel:  # fmt: skip
    """An element-wise kernel: `reads` of activations, `weights` of parameters, `writes` of results [B] for each launch.

    items = max(reads + weights, writes) / element, at least 1

    items: threads, each of which loads or stores `element` bytes at once. `dense`: its arithmetic runs at the rate of a product.

    >>> element_wise("relu", Role.PASS, reads=4096, writes=4096).items
    1024.0
    """
    items = max(1.0, max(reads + weights, writes) / element)
    return Kernel(
        name=name, role=role, efficiency=efficiency, a_bytes=weights, b_bytes=reads, c_bytes=writes, flop=flop, items=items,
        operand_a=element, operand_b=element, repeat=repeat, dense=float(dense),
    )  # fmt: skip


def single(algorithm: str, op: BoundOp, context: Context, *kernels: Kernel) -> Plan:
    """The plan of an op that can run in one way only."""
    return plan(op, context, Option(algorithm=algorithm, kernels=kernels))


def plan(op: BoundOp, context: Context, *options: Option, host_ops: float | None = None) -> Plan:
    """The plan of an op that can run in these ways; the stack says how many `host_ops` its kind is, unless they are given.

    Least traffic [B]: the tensors of the op, each once, or what the kernels of an option move if that is less.

        forward            reads inputs and parameters              writes the output
        backward           reads the output's gradient              writes those of the inputs
        backward_data      reads that gradient and the parameters   writes those of the inputs
        backward_filter    reads that gradient and the inputs       writes those of the parameters
    """
    inputs, out = context.bytes(*op.input_shapes), context.bytes(op.shape)
    weights = float(op.kind.parameters(op.input_shapes, op.shape) * context.element)
    reads, writes = {
        "backward_data": (out + weights, inputs),
        "backward_filter": (out + inputs, weights),
        "backward": (out, inputs),
    }.get(op.phase, (inputs + weights, out))
    least_reads = min(sum(k.repeat * (k.a_bytes + k.b_bytes) for k in option.kernels) for option in options)
    least_writes = min(sum(k.repeat * k.c_bytes for k in option.kernels) for option in options)
    calls = context.stack.host_calls.get(op.kind.op, 1) if host_ops is None else host_ops
    nested = context.stack.nested_calls.get(op.kind.op, 0) if host_ops is None else 0
    return Plan(options=options, read_bytes=min(reads, least_reads), write_bytes=min(writes, least_writes), host_ops=calls,
                nested=nested, synchronous=float(op.kind.op in context.stack.synchronous))  # fmt: skip
