"""Maps the nodes that a runtime timed back to the ops of the trace, whose names survive fusion only in part."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from archsim.trace.trace import BoundOp


def owner(node: str, ops: Collection[str]) -> str | None:
    """The op that a node belongs to: its own name, or the longest prefix of it that ends at "/" or "_".

    >>> owner("conv1_nchwc", {"conv1"}), owner("fused fc6", {"fc6"}), owner("ReorderOutput", {"fc6"})
    ('conv1', 'fc6', None)
    """
    if node not in ops:
        node = node.removeprefix("fused ")
    while node and node not in ops:
        node = node[: max(node.rfind("/"), node.rfind("_"), 0)]
    return node or None


def groups(ops: Sequence[BoundOp], timed: Collection[str]) -> list[tuple[str, ...]]:
    """The groups of fused ops, in trace order; every group has a timed op, unless none was timed.

    A fused op has no node of its own. A pointwise op is fused into the op before it, the latest one of several; a product whose
    node has the name of the next op is fused into that one.
    """
    place = {op.name: i for i, op in enumerate(ops)}
    root = dict(zip(place, place, strict=True))

    def top(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for op in ops:
        before = [name for name in op.inputs if name in place]
        if op.name not in timed and not op.macs and before:
            root[op.name] = top(max(before, key=place.__getitem__))
    alive = {top(name) for name in timed}
    first_use = {name: op.name for op in reversed(ops) for name in op.inputs if name in place}
    for op in ops:  # in execution order, so that a chain of untimed groups ends in the first timed one
        after = first_use.get(op.name)
        if after is not None and top(op.name) not in alive and top(after) != top(op.name):
            merged = top(op.name)
            root[merged] = top(after)
    found: dict[str, list[str]] = {}
    for name in place:
        found.setdefault(top(name), []).append(name)
    return [tuple(names) for names in found.values()]


def per_group(ops: Sequence[BoundOp], node_s: Mapping[str, float]) -> tuple[dict[tuple[str, ...], float], float]:
    """Time of each group of ops [s], and of nodes that belong to no op (layout changes) [s]."""
    names = {op.name for op in ops}
    spent: dict[str, float] = {}
    others = 0.0
    for node, seconds in node_s.items():
        op = owner(node, names)
        if op is None:
            others += seconds
        else:
            spent[op] = spent.get(op, 0.0) + seconds
    times = {group: sum(spent.get(name, 0.0) for name in group) for group in groups(ops, spent)}
    return {group: seconds for group, seconds in times.items() if seconds > 0}, others
