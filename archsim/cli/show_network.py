"""What `archsim show net` prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.trace import BoundTrace, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNetwork:
    """A network, None where its file has operators that are not read, and the operators of its file."""

    name: str
    trace: Trace | None
    bound: BoundTrace | None
    sizes: dict[str, int]
    operators: list[Any]

    def raise_refused(self) -> None:
        """Raise InputError where there is no network."""
        if self.trace is None:
            refused = [row for row in self.operators if row.status == "refused"]
            raise InputError(self.name, f"has operators that are not read: {', '.join(row.operator for row in refused)}")


def network_of(name: str, sizes: dict[str, int]) -> ShownNetwork:
    """The network of a name or a path, with the sizes that were given."""
    from archsim.trace.file import canonical, load
    from archsim.trace.formats import format_of, is_path

    name = canonical(name)
    operators: list[Any] = []
    trace: Trace | None
    if is_path(name):
        trace, operators = format_of(Path(name)).mapping(Path(name), sizes)
    else:
        trace = load(name, tuple(sizes.items()))
    if trace is None:
        return ShownNetwork(name=name, trace=None, bound=None, sizes=sizes, operators=operators)
    symbols = dict.fromkeys(trace.unsized, 1)
    symbols |= {symbol: size for key, size in sizes.items() if (symbol := trace.symbol_called(key))}
    return ShownNetwork(name=name, trace=trace, bound=trace.bind(**symbols), sizes=symbols, operators=operators)


def network_record(shown: ShownNetwork) -> dict[str, Any]:
    """The same for programs."""
    trace, bound = shown.trace, shown.bound
    found: dict[str, Any] = {"schema": "archsim-network/1", "network": trace.name if trace else shown.name}
    found |= {"source": "", "macs": None, "flop": None, "parameters": None, "sizes": {}, "ops": []}
    if trace is not None and bound is not None:
        ops = [
            {"name": op.name, "kind": op.kind.op, "inputs": list(op.inputs), "output": list(op.shape), "macs": b.macs,
             "flop": b.flop, "parameters": b.parameters}
            for op, b in zip(trace.ops, bound.ops, strict=True)
        ]  # fmt: skip
        found |= {"source": trace.source, "macs": bound.macs, "flop": bound.flop, "parameters": bound.parameters,
                  "sizes": {name: size.usual for name, size in trace.sizes.items()}, "ops": ops}  # fmt: skip
    found["operators"] = [row._asdict() for row in shown.operators]
    return found


def network_text(shown: ShownNetwork) -> str:
    """The ops of a network, and what became of the operators of its file."""
    from archsim.base.units import show
    from archsim.report.text import clean, table

    parts = []
    trace, bound = shown.trace, shown.bound
    if trace is not None and bound is not None:
        rows = [
            (clean(op.name), op.kind.op, clean(", ".join(op.inputs)), "x".join(map(str, op.shape)), f"{b.macs:,}",
             show(b.flop, "FLOP", 3), f"{b.parameters:,}")
            for op, b in zip(trace.ops, bound.ops, strict=True)
        ]  # fmt: skip
        said = {"N": 1} | {name: size.usual for name, size in trace.sizes.items()} | shown.sizes
        head = f"{clean(trace.name)}: {clean(trace.source)}\n{bound.macs:,} MACs, {bound.parameters:,} parameters"
        head += f" at batch {said.pop('N')}"
        head += "".join(f", {name} = {size}" for name, size in said.items())
        parts.append(f"{head}\n\n" + table(("op", "kind", "inputs", "output", "MACs", "work", "parameters"), rows, left=4))
    if shown.operators:
        listed = [(clean(row.operator), str(row.nodes), row.status, row.why) for row in shown.operators]
        parts.append(table(("operator of the file", "nodes", "becomes", ""), listed, left=4))
    return "\n\n".join(parts)
