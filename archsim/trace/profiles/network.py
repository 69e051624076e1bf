"""The network of a run: each call as ops by the reader of its framework, joined where shapes say that one feeds the next.

A profile records no tensors, only their shapes. An argument is taken for the result of the last call before that made one of its
shape, else of as many values; else it is an input of the network. Gradients and updates of a training step are ops too, and so
are copies, and kernels of compilers as their memory traffic. Calls that only change how a tensor is seen are no ops. Other calls
without one are left out: the trace says so, with their share of the time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from archsim.base.errors import ArchsimError, InputError, Unsupported
from archsim.trace.dims import Shape
from archsim.trace.kind import Kind
from archsim.trace.kinds.general import Gather, Traffic
from archsim.trace.kinds.sequence import Attention
from archsim.trace.kinds.shaping import Reshape
from archsim.trace.profiles.calls import MOVES, UNSHAPED, VIEWED, Gradient, gradients_of, is_gradient, model_of_aten
from archsim.trace.profiles.record import PYTORCH, Profile, ProfiledCall, ProfiledTensor
from archsim.trace.readers.model import ModelFile, checked
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.readers.torch_program import PRECISIONS, TYPES, operator_of
from archsim.trace.trace import Op, Trace
from archsim.trace.values import printable

PRODUCTS = ("matmul", "bmm", "baddbmm", "MatMul", "FusedMatMul")
SOFTMAX = ("softmax", "_softmax", "Softmax")
BETWEEN = ("div", "mul", "add", "masked_fill", "where", "dropout", "to", "_to_copy", "Div", "Mul", "Add", "Where", "Cast", "sub",
           "Sub", "clamp", "tril", "contiguous")  # fmt: skip
LONGEST = 24  # calls from the first product to the second


class RecordedAttention(NamedTuple):
    """One attention: its calls, and queries, keys and values as [N, T, heads * d]."""

    calls: tuple[int, ...]
    heads: int
    shapes: tuple[Shape, Shape, Shape]


def kind_of_call(call: ProfiledCall) -> str:
    """The operator of a call, without its namespace."""
    return operator_of(call.operator)[1] or call.operator


def tensors_of(call: ProfiledCall) -> list[ProfiledTensor]:
    """The tensors among the arguments of a call."""
    return [each for each in call.arguments if isinstance(each, ProfiledTensor)]


def attentions(calls: Sequence[ProfiledCall]) -> list[RecordedAttention]:
    """All of them, in the order of the calls."""
    found: list[RecordedAttention] = []
    kinds = [kind_of_call(call) for call in calls]
    for at, kind in enumerate(kinds):
        if kind in SOFTMAX:
            one = _around(calls, kinds, at, found[-1].calls[-1] if found else -1)
            if one is not None:
                found.append(one)
    return found


def _around(calls: Sequence[ProfiledCall], kinds: Sequence[str], at: int, after: int) -> RecordedAttention | None:
    scores = tensors_of(calls[at])[:1]
    if not scores or len(scores[0].shape) < 3:
        return None
    size = math.prod(scores[0].shape)
    before, behind = range(at - 1, max(after, at - LONGEST), -1), range(at + 1, min(len(calls), at + LONGEST))
    first = next((i for i in before if kinds[i] in PRODUCTS and _makes(calls[i]) == size), None)
    last = next((i for i in behind if kinds[i] in PRODUCTS and _reads(calls[i]) == size), None)
    if first is None or last is None:
        return None
    (queries, keys), (_, values) = ([each.shape for each in tensors_of(calls[i])[-2:]] for i in (first, last))
    t, d, s, e = queries[-2], queries[-1], scores[0].shape[-1], values[-1]
    if {d, s} != {*keys[-2:]} or values[-2] != s or d != e or math.prod(keys[:-2]) != math.prod(queries[:-2]):
        return None
    whole = len(scores[0].shape) >= 4
    n, heads = (math.prod(scores[0].shape[:-3]), scores[0].shape[-3]) if whole else (1, scores[0].shape[0])
    chosen = [i for i in range(first, last + 1)
              if i in (first, at, last) or (kinds[i] in BETWEEN and size in [math.prod(a.shape) for a in tensors_of(calls[i])])]
    return RecordedAttention(tuple(chosen), heads, ((n, t, heads * d), (n, s, heads * d), (n, s, heads * d)))  # fmt: skip


def _makes(call: ProfiledCall) -> int:
    """Values in what a batched product makes; 0 for another."""
    shapes = [each.shape for each in tensors_of(call)[-2:]]
    if len(shapes) < 2 or min(map(len, shapes)) < 3:
        return 0
    a, b = shapes
    return math.prod(a[:-1]) * (b[-1] if b[-2] == a[-1] else b[-2])


def _reads(call: ProfiledCall) -> int:
    """Values in the first operand of a batched product; 0 for another."""
    shapes = [each.shape for each in tensors_of(call)[-2:]]
    return math.prod(shapes[0]) if len(shapes) == 2 and min(map(len, shapes)) >= 3 else 0


INPUT = "input"
CALLED = re.compile(r"^(call|node) '.*?' \(\S+\) ")
LAYOUTS = ("ReorderInput", "ReorderOutput")  # of a library: what a stack makes of a network, and no part of it
SHOWN = 5  # operators that a sentence names


class LeftOut(NamedTuple):
    """A call that is no op of the network, and why."""

    call: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledNetwork:
    """A network with the calls that its ops stand for.

    calls: for each op of the trace that has a time of its own, the places of its calls
    left_out: the other calls
    """

    trace: Trace
    calls: Mapping[str, tuple[int, ...]]
    left_out: tuple[LeftOut, ...]


def network_of(profile: Profile) -> ProfiledNetwork:
    """The network. Raises Unsupported where no call has shapes, InputError for shapes that no network has."""
    joined = _Joined(profile)
    grouped = {place: group for group in attentions(profile.calls) for place in group.calls}
    times = device_times(profile)
    for place, call in enumerate(profile.calls):
        group = grouped.get(place)
        if group is not None:
            if place == group.calls[-1]:
                joined.attention(group.calls, group.heads, group.shapes)
            continue
        try:
            space, kind = operator_of(call.operator)
            if space == "aten" and is_gradient(kind):
                joined.gradients(place, kind, gradients_of(call, kind))
                continue
            if profile.source == PYTORCH and not space:
                joined.kernel(place, call)
                continue
            if space == "aten" and kind in MOVES and copies(call, times.get(place, 0.0) if profile.kernels else None):
                joined.copy(place, kind, call)
                continue
            model = model_of(call, place, profile.path)
        except (Unsupported, InputError, ValueError) as error:
            joined.left_out.append(LeftOut(place, _said(error)))
            continue
        if isinstance(model, str):
            joined.left_out.append(LeftOut(place, model))
        else:
            joined.add(place, model)
    said = left_out_of(profile, times, joined.left_out)
    if not joined.ops:
        why = "no shapes were recorded (record_shapes=True)" if not profile.shapes else said or "no call is known here"
        raise Unsupported(f"{profile.path}: holds no network: {why}; measured times alone need no network")
    return joined.network(said)


def device_times(profile: Profile) -> Mapping[int | None, float]:
    """The time of the kernels of each call, or of the call itself where no device was profiled; None: of no known call [s].

    Transfers between host and device are no work of a network.
    """
    if not profile.kernels:
        return {place: call.duration_s for place, call in enumerate(profile.calls)}
    found: dict[int | None, float] = {}
    for kernel in profile.kernels:
        if not kernel.copy or "DtoD" in kernel.name:
            found[kernel.call] = found.get(kernel.call, 0.0) + kernel.duration_s
    return found


def left_out_of(profile: Profile, times: Mapping[int | None, float], left_out: Sequence[LeftOut]) -> str:
    """A sentence about the calls that took time and are no ops, those that took longest first; empty where there are none."""
    listed = [(profile.calls[one.call].operator, one.why, times.get(one.call, 0.0)) for one in left_out
              if (profile.kernels or one.why != VIEWED) and profile.calls[one.call].operator not in LAYOUTS]  # fmt: skip
    listed.append(("kernels", "no call is known to have launched them", times.get(None, 0.0)))
    shares: dict[tuple[str, str], float] = {}
    for name, why, time in listed:
        if time:
            shares[name, why] = shares.get((name, why), 0.0) + time / math.fsum(times.values())
    if not shares:
        return ""
    parts = [f"{name} {100 * share:.3g} % ({why})" for (name, why), share in sorted(shares.items(), key=lambda each: -each[1])]
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return f"{100 * math.fsum(shares.values()):.3g} % of the recorded time is of no op here: {', '.join(parts[:SHOWN])}{more}"


def copies(call: ProfiledCall, device_s: float | None) -> bool:
    """Whether a call that may copy a tensor did: a kernel ran for it, or on a CPU the copy within it."""
    inside = [operator_of(name)[1] for name in (call.operator, *call.within)]
    return "copy" in inside if device_s is None else device_s > 0


def model_of(call: ProfiledCall, place: int, path: str) -> ModelFile | str:
    """One call as a model of its own, or why it is no op."""
    space, kind = operator_of(call.operator)
    if space:
        return model_of_aten(call, space, kind, f"{kind}_{place}", path)
    from archsim.trace.profiles.onnxruntime import model_of_onnx

    return model_of_onnx(call, place, path)


def _said(error: Exception) -> str:
    """What is wrong with a call, without its name and file."""
    problem = error.problems[0] if isinstance(error, InputError) else str(error)
    return problem.partition(": ")[2] if isinstance(error, Unsupported) and ": " in problem else CALLED.sub("", problem)


@dataclass(slots=True)
class _Joined:
    """A network while calls join it."""

    profile: Profile
    ops: list[Op] = field(default_factory=list)
    inputs: dict[str, Shape] = field(default_factory=dict)
    made: dict[Shape, list[str]] = field(default_factory=dict)
    sized: dict[int, list[tuple[str, Shape]]] = field(default_factory=dict)
    left: dict[str, Shape] = field(default_factory=dict)  # what an op leaves, where that is not the shape that it has
    shapes: dict[str, Shape] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    calls: dict[str, tuple[int, ...]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    dtypes: dict[str, int] = field(default_factory=dict)

    def add(self, place: int, model: ModelFile) -> None:
        """The ops of a call."""
        try:
            part = trace_of_call(model)
        except ArchsimError as error:
            self.left_out.append(LeftOut(place, _said(error)))
            return
        names: dict[str, str] = {}
        indices = model.indices
        for name, shape in part.inputs.items():
            names[name] = self._input(_fixed(shape)) if name in indices else self._fed(_fixed(shape), set(names.values()))
        self._count(model.dtype, part)
        for op in part.ops:
            shape = _fixed(op.shape)
            inputs = tuple(names[name] for name in op.inputs)
            names[op.name] = op.name
            self._op(Op(name=op.name, kind=op.kind, inputs=inputs, shape=shape))
            self.calls[op.name] = (place,)
        self._leave(part.ops[-1].name, _fixed(part.ops[-1].shape))

    def attention(self, calls: tuple[int, ...], heads: int, shapes: Sequence[Shape]) -> None:
        """One attention in place of the products around a softmax that were recorded."""
        self._made(calls, Attention(heads=heads), f"attention_{calls[0]}", shapes, shapes[0])

    def copy(self, place: int, kind: str, call: ProfiledCall) -> None:
        """A copy of a tensor: into another layout, another type, or another tensor."""
        read = _tensors(call)
        self._typed(read[-1].type)
        self._made((place,), Gather(function=kind), f"{kind}_{place}", [read[-1].shape], read[0].shape)

    def kernel(self, place: int, call: ProfiledCall) -> None:
        """A kernel that a compiler made, of which only the tensors are known: it writes the last, and reads the others."""
        *read, made = _tensors(call)
        self._typed(made.type)
        name = printable(call.operator)
        self._made((place,), Traffic(operator=name), f"{name}_{place}", [each.shape for each in read or [made]], made.shape)

    def _typed(self, type_: str) -> None:
        dtype = PRECISIONS.get(TYPES.get(type_, ""), "fp32")
        self.dtypes[dtype] = self.dtypes.get(dtype, 0) + 1

    def _made(self, calls: tuple[int, ...], kind: Kind, name: str, read: Sequence[Shape], made: Shape) -> None:
        fed: list[str] = []
        for shape in read:
            fed.append(self._fed(shape, {*fed}))
        self._op(Op(name=name, kind=kind, inputs=tuple(fed), shape=made))
        self.calls[name] = calls
        self._leave(name, made)

    def gradients(self, place: int, operator: str, found: Sequence[Gradient]) -> None:
        """The gradients that a call computes, or the update of an optimiser."""
        if not found:
            self.left_out.append(LeftOut(place, "computes no gradient that anybody asked for"))
        for one in found:
            name = f"{operator}_{place}" + ("" if one is found[-1] else f"/{one.phase}")
            fed = (self._fed(one.reads, set()),)
            self._op(Op(name=name, kind=one.kind, inputs=fed, shape=one.shape, phase=one.phase, of=one.of))
            self.calls[name] = (place,)
            if one.made != one.shape:
                self.left[name] = one.made
            self._leave(name, one.made)

    def _op(self, op: Op) -> None:
        """One op. What it reads of a gradient has another shape than that op, which is told beside it."""
        if not op.of and any(name in self.left for name in op.inputs):
            op = replace(op, of=tuple([self.left.get(name, self.shapes[name]) for name in op.inputs]))
        self.shapes[op.name] = _fixed(op.shape)
        self.ops.append(op)

    def _fed(self, shape: Shape, taken: set[str]) -> str:
        """The tensor that an argument of this shape is taken for."""
        for name in reversed(self.made.get(shape, [])):
            if name not in taken:
                self.unread.discard(name)
                return name
        for name, _ in reversed(self.sized.get(math.prod(shape), [])):
            if name in self.unread and name not in taken:
                self.unread.discard(name)
                seen = f"{name}.view{len(self.ops)}"
                self._op(Op(name=seen, kind=Reshape(), inputs=(name,), shape=shape))
                return seen
        return self._input(shape)

    def _input(self, shape: Shape) -> str:
        name = f"{INPUT}_{len(self.inputs)}"
        self.inputs[name] = self.shapes[name] = shape
        return name

    def _leave(self, name: str, shape: Shape) -> None:
        self.made.setdefault(shape, []).append(name)
        self.sized.setdefault(math.prod(shape), []).append((name, shape))
        self.unread.add(name)

    def _count(self, dtype: str, part: Trace) -> None:
        work = 1 + sum(op.flop for op in part.bind().ops)
        self.dtypes[dtype] = self.dtypes.get(dtype, 0) + work

    def network(self, left_out: str) -> ProfiledNetwork:
        """All of it; `left_out` says of what nothing is known."""
        plain = printable(Path(self.profile.path).name) or "profile"
        most = max(self.dtypes, key=lambda name: self.dtypes[name]) if self.dtypes else "fp32"
        trace = Trace(name=plain, inputs=self.inputs, ops=tuple(self.ops), dtype=most, source=self.profile.source,
                      left_out=left_out)  # fmt: skip
        return ProfiledNetwork(trace=trace, calls=self.calls, left_out=tuple(self.left_out))


def trace_of_call(model: ModelFile) -> Trace:
    """The ops of one call. Raises InputError or Unsupported."""
    return trace_at_batches([checked(model)], ())


def _tensors(call: ProfiledCall) -> list[ProfiledTensor]:
    """The tensors of a call. Raises ValueError where none was recorded."""
    found = tensors_of(call)
    if not found:
        raise ValueError(UNSHAPED)
    return found


def _fixed(shape: Sequence[int | str]) -> Shape:
    return tuple(int(size) for size in shape)
