"""One network on one device with two stacks: what each difference between them saves, and which layers it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from archsim.base.record import by_key
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request, make_request
from archsim.stack import catalog
from archsim.stack.changes import between


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSaving:
    """What one difference between two stacks changes, with all before it. keys: of the stack; sources: of their values."""

    title: str
    latency_s: float
    saved_s: float
    keys: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """A kernel of the second stack: the op that it is named after, those that it computes too, the time of all before and now."""

    layer: str
    kind: str
    fused: tuple[str, ...]
    before_s: float
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChange:
    """From one stack to another. fp32_s: latency of the first one with every product in fp32; None where none is in tf32."""

    network: str
    hardware: str
    before: str
    after: str
    before_s: float
    after_s: float
    fp32_s: float | None
    tf32_source: str
    steps: tuple[StepSaving, ...]
    layers: tuple[LayerChange, ...]


def stack_change(net: str, hw: str, before: str, after: str, **arguments: Any) -> StackChange:
    """The change from one stack to another; `arguments` are those of `make_request`. The steps add up to the whole."""
    first = make_request(net, hw, stack=before, **arguments)
    on = first.spec.identity.kernels_of
    one, two = (catalog.composition(name, on) for name in (before, after))
    ran = run(first)
    latency, savings, last, request = float(ran.latency_s[0]), [], ran, first
    for step in between(catalog.RECORD, one, two):
        request = make_request(net, hw, stack=after, composed=step.stack, **arguments)
        last = run(request)
        now = float(last.latency_s[0])
        savings.append(StepSaving(title=step.title, latency_s=now, saved_s=latency - now, keys=step.keys, sources=step.sources))
        latency = now
    narrow = first.narrowed is not None and arguments.get("precision") is None
    wide = float(run(make_request(net, hw, stack=before, **{**arguments, "precision": "fp32"})).latency_s[0]) if narrow else None
    return StackChange(
        network=first.network, hardware=first.spec.identity.name, before=first.stack.id, after=request.stack.id,
        before_s=float(ran.latency_s[0]), after_s=latency, fp32_s=wide,
        tf32_source=one.assigned[("tf32",)].source if ("tf32",) in one.assigned else "", steps=tuple(savings),
        layers=_layers(first, ran, request, last),
    )  # fmt: skip


def _layers(first: Request, before: Run, second: Request, after: Run) -> tuple[LayerChange, ...]:
    """The kernels of the second stack in its order, each with the times of the ops that it stands for."""
    both = {op.name for op in first.trace.ops} & {op.name for op in second.trace.ops}
    into = {_known(name, both): _known(anchor, both) for name, anchor in after.lowered.into.items()}
    kinds = {op.name: op.kind.op for op in second.trace.ops}
    times: dict[str, list[float]] = {}
    for request, result, column in ((first, before, 0), (second, after, 1)):
        for op, time in zip(request.trace.ops, result.timeline.op_time_s[0].tolist(), strict=True):
            name = _known(op.name, both)
            times.setdefault(into.get(name, name), [0.0, 0.0])[column] += time
    members = by_key((anchor, name) for name, anchor in into.items())
    return tuple([
        LayerChange(layer=name, kind=kinds.get(name, ""), fused=tuple(members.get(name, ())), before_s=was, after_s=now)
        for name, (was, now) in times.items() if was or now
    ])  # fmt: skip


def _known(name: str, both: set[str]) -> str:
    """The op that a name belongs to in both graphs: itself, or what its name begins with."""
    at = name
    while at not in both and "." in at:
        at = at.rpartition(".")[0]
    return at if at in both else name
