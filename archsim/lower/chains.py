"""The chains of ops that a compiler puts into one kernel, and what such a kernel moves.

    op, op, op ──► groups by the rule of the stack ──► one plan each: that of its anchor, with the traffic of the others
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from archsim.lower.fusion import Fused, Joined
from archsim.lower.kernel import Option, Plan
from archsim.stack.parts import FusionRule
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp

PRODUCT, SUM, VALUE = "product", "sum", "value"
MOST_OPS = 64  # of one kernel (PyTorch source, torch/_inductor/config.py: max_fusion_size)
SUMS_IN_TRAINING = ("batch_norm",)  # at inference its statistics are known: a factor and a sum for each value


@dataclass(slots=True, kw_only=True)
class Chain:
    """The ops of one kernel while it grows, of the forward pass or of gradients. `needs`: a bit for each group to run before it.
    """

    forward: bool
    bits: int
    size: int
    roles: list[str]
    members: list[BoundOp]
    needs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The ops that run in one kernel. `groups`: of two ops and more, in order; `source`: what a view shows, by its name."""

    groups: tuple[tuple[BoundOp, ...], ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, int] = field(default_factory=dict)


def chains_of(ops: Sequence[BoundOp], rule: FusionRule, training: bool, views: frozenset[str]) -> Grouping:
    """What the rule puts into one kernel. `views`: ops that launch nothing and change no value.

    An op joins the kernel of one of its inputs if both are as large, and no other input has to wait for that kernel. Two chains
    that meet in it become one. A product takes only ops that are its result's only reader.
    """
    if not (rule.pointwise or rule.products):
        return Grouping()
    source: dict[str, str] = {}
    for op in ops:
        if op.name in views:
            source[op.name] = source.get(op.inputs[0], op.inputs[0])
    readers = Counter(source.get(name, name) for op in ops if op.name not in views for name in dict.fromkeys(op.inputs))
    group_of: dict[str, Chain] = {}
    groups: list[Chain] = []
    made = 0  # bits that are taken, those of merged groups too
    for op in ops:
        if op.name in views:
            continue
        role = _role(op, rule, training)
        found = [group_of[name] for name in dict.fromkeys(source.get(n, n) for n in op.inputs) if name in group_of]
        home = next((g for g in reversed(found) if role and _joins(op, role, g, found, readers, source)), None)
        if home is None:
            size = prod(op.shape) if role == PRODUCT else _size(op)  # a product's chain goes through its results alone
            home = Chain(forward=op.phase == FORWARD, bits=1 << made, size=size, roles=[role or "alone"], members=[op])
            made += 1
            groups.append(home)
        else:
            home.members.append(op)
            home.roles.append(role)
        _need(home, [g for g in found if g is not home], groups)
        group_of[op.name] = home
        if role == VALUE:
            for other in found:
                if other is not home and _merges(home, other, groups):
                    _merge(home, other, group_of, groups)
    order = {op.name: i for i, op in enumerate(ops)}
    kept = [tuple(sorted(g.members, key=lambda op: order[op.name])) for g in groups if len(g.members) > 1]
    return Grouping(groups=tuple(kept), source=source, readers=readers)


def _role(op: BoundOp, rule: FusionRule, training: bool) -> str:
    kind = op.kind.op
    if kind in rule.products:
        return PRODUCT if op.phase == FORWARD else ""
    if kind in rule.sums or (training and kind in rule.pointwise and kind in SUMS_IN_TRAINING):
        return SUM
    return VALUE if kind in rule.pointwise else ""


def _size(op: BoundOp) -> int:
    """Values that the kernel of an op goes through: of a sum those that it reads."""
    return max(prod(shape) for shape in (op.shape, *op.input_shapes[:1]))


def _joins(
    op: BoundOp, role: str, home: Chain, found: Sequence[Chain], readers: Mapping[str, int], source: Mapping[str, str]
) -> bool:
    if home.forward != (op.phase == FORWARD):  # two graphs, compiled one after the other
        return False
    if role == PRODUCT or _size(op) != home.size or "alone" in home.roles or len(home.members) >= MOST_OPS:
        return False
    if PRODUCT in home.roles:
        last = home.members[-1].name
        only = readers[last] == 1 and last in {source.get(name, name) for name in op.inputs}
        return role == VALUE and only and not _waits(home, found)
    return not (role == SUM and SUM in home.roles) and not _waits(home, found)


def _waits(home: Chain, found: Sequence[Chain]) -> bool:
    """Whether another input needs the group to have run."""
    return any(g is not home and g.needs & home.bits for g in found)


def _merges(home: Chain, other: Chain, groups: Sequence[Chain]) -> bool:
    """Whether two groups may be one kernel: neither waits for something that waits for the other."""
    alike = other.forward == home.forward and other.size == home.size and not {PRODUCT, "alone"} & {*home.roles, *other.roles}
    small = len(home.members) + len(other.members) <= MOST_OPS and (home.roles + other.roles).count(SUM) < 2
    between = any(home.needs & g.bits and g.needs & other.bits for g in groups if g is not home and g is not other)
    return alike and small and not other.needs & home.bits and not between


def _merge(home: Chain, other: Chain, group_of: dict[str, Chain], groups: list[Chain]) -> None:
    home.members += other.members
    home.roles += other.roles
    home.bits |= other.bits
    home.needs = (home.needs | other.needs) & ~home.bits
    groups.remove(other)
    for member in other.members:
        group_of[member.name] = home
    _spread(home, groups)


def _need(home: Chain, found: Sequence[Chain], groups: Sequence[Chain]) -> None:
    before = home.needs
    for g in found:
        home.needs |= g.needs | g.bits
    if home.needs != before and len(home.members) > 1:
        _spread(home, groups)


def _spread(home: Chain, groups: Sequence[Chain]) -> None:
    for g in groups:
        if g.needs & home.bits:
            g.needs |= home.needs | home.bits


def fuse(ops: Sequence[BoundOp], rule: FusionRule, training: bool, plans: Mapping[str, Plan], element: int) -> Fused:
    """What the rule fuses of these ops, whose own plans are `plans`; an op without one launches nothing.

    element: size of a value [B]
    """
    views = frozenset(op.name for op in ops if op.name not in plans and op.inputs and _size(op) == prod(op.input_shapes[0]))
    found = chains_of(ops, rule, training, views)
    size = {op.name: float(element * (prod(op.shape) if op.phase == FORWARD else sum(map(prod, op.input_shapes)))) for op in ops}
    into: dict[str, str] = {}
    extra: dict[str, Joined] = {}
    for group in found.groups:
        own = [op for op in group if op.name in plans]
        if len(own) < 2:
            continue
        anchor = _anchor(own, plans, rule)
        into |= {op.name: anchor for op in own if op.name != anchor}
        extra[anchor] = _joined(own, anchor, plans, found, size)
    return Fused(into=into, joined=extra)


def _anchor(group: Sequence[BoundOp], plans: Mapping[str, Plan], rule: FusionRule) -> str:
    """The op whose kernel the others join: a product, a sum over rows, else the first of those that move most."""
    return max(group, key=lambda op: (op.kind.op in rule.products, op.kind.op in rule.sums,
                                      sum(moved(plans[op.name].options[0])))).name  # fmt: skip


def _joined(
    group: Sequence[BoundOp], anchor: str, plans: Mapping[str, Plan], chains: Grouping, size: Mapping[str, float]
) -> Joined:
    """Traffic of a group beside that of its anchor's own kernel.

    reads = sum of the others' reads - sum of the values that members hand to each other
    writes = sum of the others' writes - sum of the results that members alone read

    size: bytes of the result of each op, by name
    """
    inside, handed = {op.name for op in group}, Counter[str]()
    reads = writes = flop = 0.0
    for op in group:
        read, written = moved(plans[op.name].options[0])
        taken = [name for name in dict.fromkeys(chains.source.get(n, n) for n in op.inputs) if name in inside]
        handed.update(taken)
        reads -= min(sum(size[name] for name in taken), read)
        if op.name != anchor:
            reads, writes, flop = reads + read, writes + written, flop + float(op.flop)
    for op in group:
        if handed[op.name] and handed[op.name] == chains.readers.get(op.name, 0):
            writes -= min(size[op.name], moved(plans[op.name].options[0])[1])
    return Joined(reads=reads, writes=writes, flop=flop)


def moved(option: Option) -> tuple[float, float]:
    """What the kernels of an option read and write [B]."""
    return (sum(k.repeat * (k.a_bytes + k.b_bytes) for k in option.kernels), sum(k.repeat * k.c_bytes for k in option.kernels))
