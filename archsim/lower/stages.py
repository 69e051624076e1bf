"""Residual blocks in a row that an engine computes in one kernel, whose inner results never leave the chip.

    block:  x ──► 1 x 1 ──► 3 x 3 ──► 1 x 1 ──► sum ──► activation        one kernel reads the first block's x, writes the
            └──────────────────────────────────────┘                     last one's result, and multiplies for all of them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from archsim.lower.columns import Role
from archsim.lower.context import Context, plan
from archsim.lower.fusion import STAGE, Stages
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.lower.layer import Layer, layer_of
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp

BESIDE = ("batch_norm", "scale", "bias_add")  # folded into the convolution before them
ACTIVATIONS = ("relu", "relu6")
RULES = ("own", "aggressive")  # of fusion; others put convolutions into kernels of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One residual block: its ops, the tensor that it reads and the one that it leaves, by name."""

    ops: tuple[BoundOp, ...]
    reads: str
    leaves: str


def stages(ops: Sequence[BoundOp], context: Context) -> Stages:
    """The blocks of the stack's `conv.stage_channels` that stand in a row, on the architectures that have such a kernel.

    Only at inference, and of values of one byte on tensor cores.
    """
    rules = context.stack.conv
    channels = rules.stage_channels.get(context.architecture) if context.tensor and context.element == 1 else None
    if not channels or context.training or context.stack.fusion.rule not in RULES:
        return Stages()
    made = {op.name: op for op in ops}
    readers = Counter(name for op in ops for name in dict.fromkeys(op.inputs))
    blocks: dict[str, Block] = {}  # by what they leave
    for op in ops:
        if op.kind.op in ACTIVATIONS and (block := _block(op, made, readers, channels)) is not None:
            blocks[block.leaves] = block
    runs: list[list[Block]] = []
    for block in blocks.values():
        before = next((run for run in runs if run[-1].leaves == block.reads), None)
        if before is None:
            runs.append([block])
        else:
            before.append(block)
    into: dict[str, str] = {}
    plans: dict[str, Plan] = {}
    for run in runs:
        members = [op for block in run for op in block.ops]
        if len(run) > 1 and not _read_elsewhere(run, members, ops):
            named = [op for op in members if op.kind.op == "conv2d"][-1]
            into |= {op.name: named.name for op in members if op is not named}
            plans[named.name] = _plan(members, named, context)
    return Stages(into=into, plans=plans)


def _block(last: BoundOp, made: Mapping[str, BoundOp], readers: Mapping[str, int], channels: int) -> Block | None:
    """The block whose activation is `last`: three convolutions, the middle one of `channels`, and a sum with what they read."""
    total = made.get(last.inputs[0])
    if total is None or total.kind.op != "add" or len(total.inputs) != 2 or readers[total.name] != 1:
        return None
    for main, shortcut in (total.inputs, total.inputs[::-1]):
        path, start = _convolutions(main, made, 3)
        past, origin = ([], shortcut) if shortcut == start else _convolutions(shortcut, made, 1)
        convolutions = [op for op in path if op.kind.op == "conv2d"]
        if len(convolutions) < 3 or origin != start or any(readers[op.name] != 1 for op in (*path, *past)):
            continue
        shapes = [(tuple(op.kind.kernel), tuple(op.kind.stride), op.kind.groups) for op in convolutions]  # type: ignore[attr-defined]
        if shapes == [((1, 1), (1, 1), 1), ((3, 3), (1, 1), 1), ((1, 1), (1, 1), 1)] and convolutions[1].shape[1] == channels:
            return Block(ops=(*path, *past, total, last), reads=start, leaves=last.name)
    return None


def _convolutions(name: str, made: Mapping[str, BoundOp], count: int) -> tuple[list[BoundOp], str]:
    """So many convolutions up from a tensor, with what stands between them, first to last, and what the first of them reads."""
    path: list[BoundOp] = []
    found = 0
    while found < count and (op := made.get(name)) is not None:
        if op.phase != FORWARD or op.kind.op not in ("conv2d", *BESIDE, *(ACTIVATIONS if path else ())):
            break
        path.insert(0, op)
        found += op.kind.op == "conv2d"
        name = op.inputs[0]
    return path, name


def _read_elsewhere(run: Sequence[Block], members: Sequence[BoundOp], ops: Sequence[BoundOp]) -> bool:
    """Whether an op outside reads a result of the run other than its last."""
    inside = {op.name for op in members}
    return any(name in inside and name != run[-1].leaves for op in ops if op.name not in inside for name in op.inputs)


def _plan(members: Sequence[BoundOp], named: BoundOp, context: Context) -> Plan:
    """One product of as many multiply-accumulates as all convolutions have, as wide as the widest of them.

        k = sum of m n k over the convolutions / (m n)

    Its operand B is the first block's input; what later convolutions read lies on the chip.
    """
    layers: list[Layer] = [layer_of(op, context.element) for op in members if op.kind.op == "conv2d"]
    m, n, _ = max(layers, key=lambda layer: layer.co).product
    macs = sum(layer.macs for layer in layers)
    k = macs / (m * n)
    read = layers[0].input_bytes
    kernel = Kernel(
        name=STAGE, role=Role.CONVOLUTION, efficiency=context.algorithms(FORWARD)["implicit_gemm"],
        menu=context.menu("conv_stage"), m=m, n=n, k=k, operand_a=context.element,
        operand_b=read / (n * k), a_bytes=sum(layer.filter_bytes for layer in layers), b_bytes=read,
        c_bytes=context.bytes(named.shape), flop=2.0 * macs, items=float(m * n),
    )  # fmt: skip
    alone = plan(named, context, Option(algorithm=STAGE, kernels=(kernel,)))
    return replace(alone, read_bytes=kernel.a_bytes + kernel.b_bytes, write_bytes=kernel.c_bytes)
