"""From a forward trace to a training step: gradients in reverse order, then the optimiser's updates.

Convolution, linear, matmul and lstm have one op for each product (`conv1.backward_data`, `conv1.backward_filter`), every other
kind has one (`relu1.backward`). Tensors that depend on no learned value, such as the images, get no gradient. The gradients of
a tensor that several ops read are summed by explicit adds (`pool1.accumulate_1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

from archsim.trace.dims import Dim
from archsim.trace.kind import BACKWARD, BACKWARD_DATA, FORWARD, UPDATE
from archsim.trace.op import Add, CrossEntropy, Slice, Softmax, Update
from archsim.trace.trace import BoundOp, Op, Trace

TASKS = ("inference", "forward", "backward", "backward_update", "forward_backward", "training_step")
TASK_ALIASES = {
    "inference": ("infer", "prediction", "test"), "forward": ("forward pass", "fwd"), "backward": ("backward pass", "bwd"),
    "forward_backward": ("forward+backward", "fwd+bwd", "fwd bwd"), "training_step": ("training", "train", "step"),
}  # fmt: skip
UPDATED = ("backward_update", "training_step")  # tasks that end with updates of the weights
OPTIMISER = "sgd_momentum"
OPTIMISER_ALIASES = {"sgd_momentum": ("momentum",), "adam": ("adamw",)}  # the decay of AdamW moves no bytes of its own
ACCUMULATE = "accumulate"  # gradients added to those of the step before, without a use of them


def task_trace(trace: Trace, task: str, optimiser: str = OPTIMISER, input_gradient: bool = False) -> Trace:
    """The ops of a task in execution order: forward, gradients in reverse, updates; dead ops are left out.

    `inference` is the forward pass, or all of a trace with gradients of its own; `forward` the forward pass in training (batch
    statistics, dropout, loss), `backward` the gradients alone (forward tensors that they read become inputs), `forward_backward`
    both; `backward_update` and `training_step` add the updates. With `input_gradient` the network's inputs get a gradient too, as
    in scripts that do not exclude the first layer's.

    Raises ValueError for an unknown task, for a trace that contains gradients already, and, where gradients are wanted, for a
    network without learned values.
    """
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}; one of {', '.join(TASKS)}")
    live = trace.without_dead_code()
    if any(op.phase != FORWARD for op in trace.ops) and task != "inference":
        raise ValueError(f"network {trace.name!r} holds gradients or updates already: it runs as it is, without a task, "
                         "or give the forward trace")  # fmt: skip
    if task == "inference":
        return live
    forward = _in_training(live)
    if task == "forward":
        return forward
    gradients, handed_in = _gradients(forward, input_gradient)
    if not gradients:
        raise ValueError(f"network {trace.name!r} has no learned values, so there is nothing to train")
    updates = _updates(forward, gradients, optimiser) if task in UPDATED else []
    if task in ("backward", "backward_update"):
        return _with_ops(forward, [*gradients, *updates], _read_by(gradients, forward) | handed_in)
    ops = [*forward.ops, *gradients, *updates]
    return _with_ops(forward, ops, dict(forward.inputs) | handed_in)


def backward(trace: Trace) -> Trace:
    """The gradients alone."""
    return task_trace(trace, "backward")


def training_step(trace: Trace, optimiser: str = OPTIMISER) -> Trace:
    """Forward ops, gradients and updates."""
    return task_trace(trace, "training_step", optimiser)


def _in_training(trace: Trace) -> Trace:
    """The forward trace as training runs it: batch statistics, dropout masks, and a softmax at the end as the loss."""
    ends = set(trace.ends) - set(trace.consumers())
    ops = []
    for op in trace.ops:
        if op.name in ends and _is_class_softmax(op):
            op = replace(op, kind=CrossEntropy(apart=getattr(op.kind, "apart", False)), shape=op.shape[:-1])
        elif any(f.name == "training" for f in fields(op.kind)) and not getattr(op.kind, "stored", False):
            op = replace(op, kind=replace(op.kind, training=True))  # type: ignore[call-arg]
        ops.append(op)
    return trace.keeping(ops)


def _is_class_softmax(op: Op) -> bool:
    return isinstance(op.kind, Softmax) and op.kind.axis % len(op.shape) == len(op.shape) - 1 > 0


def _gradients(forward: Trace, of_inputs: bool) -> tuple[list[Op], dict[str, tuple[Dim, ...]]]:
    """The gradient ops in execution order, and the gradients that have to be handed in, of outputs without a loss."""
    bound = {op.name: op for op in _bound(forward)}
    needs = _needing_gradients(forward, bound.values(), of_inputs)
    dims = dict(forward.inputs) | {op.name: op.shape for op in forward.ops}
    ends = set(forward.ends)
    handed_in: dict[str, tuple[Dim, ...]] = {}
    sent: dict[str, list[str]] = {}
    found: list[Op] = []
    beside = {f"{op.name}.{BACKWARD}" for op in forward.ops if isinstance(op.kind, Slice) and op.kind.whole}
    for op in reversed(forward.ops):
        if not needs[op.name]:
            continue
        arriving = sent.get(op.name, [])
        if op.name in ends and not isinstance(op.kind, CrossEntropy):
            handed_in[f"{op.name}.gradient"] = op.shape
            arriving = [f"{op.name}.gradient", *arriving]
        elif not arriving and op.name not in ends:
            continue
        parts = [name for name in arriving if name in beside]  # lie side by side in one gradient
        adds = _accumulate(op, [*parts[:1], *[name for name in arriving if name not in beside]])
        incoming = (*([adds[-1].name] if adds else parts[:1] or arriving[:1]), *parts[1:])
        phases = op.kind.gradients(bound[op.name].input_shapes, bound[op.name].shape, [needs[name] for name in op.inputs])
        of = tuple([dims[name] for name in op.inputs])
        found += [*adds, *[_gradient(op, phase, incoming, of) for phase in phases]]
        for position, name in enumerate(op.inputs):
            if needs[name]:
                sent.setdefault(name, []).append(f"{op.name}.{op.kind.gradient_of(position)}")
    return found, handed_in


def _bound(trace: Trace) -> tuple[BoundOp, ...]:
    """The ops with every symbol at 1: enough to count parameters, which depend on no symbol."""
    return trace.bind(**dict.fromkeys(trace.free_symbols, 1)).ops


def _needing_gradients(forward: Trace, bound: Iterable[BoundOp], of_inputs: bool) -> dict[str, bool]:
    """Which tensors depend on learned values, or on the inputs where these get a gradient; indices do not."""
    needs = dict.fromkeys(forward.inputs, of_inputs)
    for op in bound:
        needs[op.name] = bool(op.kind.input_gradient) and (op.learned + op.shared > 0 or any(needs[name] for name in op.inputs))
    return needs


def _gradient(op: Op, phase: str, incoming: tuple[str, ...], of: tuple[tuple[Dim, ...], ...]) -> Op:
    """One gradient op: it waits for the incoming gradient and for the forward tensors that its kind reads again."""
    reads = op.kind.data_gradient_reads if phase == BACKWARD_DATA else op.kind.backward_reads
    tensors = {"inputs": op.inputs, "output": (op.name,), "data_gradient": (f"{op.name}.{BACKWARD_DATA}",)}
    waits = incoming + tuple([name for what in reads for name in tensors[what]])
    name = f"{op.name}.{phase}"
    return Op(name=name, kind=op.kind, inputs=waits, shape=op.shape, phase=phase, parent=op.name, of=of,
              shares=op.shares)  # fmt: skip


def _accumulate(op: Op, gradients: list[str]) -> list[Op]:
    """The adds that sum the gradients of one tensor, one fewer than gradients."""
    adds: list[Op] = []
    for number, gradient in enumerate(gradients[1:], 1):
        so_far = adds[-1].name if adds else gradients[0]
        adds.append(Op(name=f"{op.name}.accumulate_{number}", kind=Add(accumulate=True), inputs=(so_far, gradient),
                       shape=op.shape, phase=BACKWARD, parent=op.name, of=(op.shape, op.shape)))  # fmt: skip
    return adds


def _updates(forward: Trace, gradients: Iterable[Op], optimiser: str) -> list[Op]:
    """One update for each op with learned values that a gradient reached; it waits for the gradients of all who share them."""
    made = {op.name for op in gradients}
    sent, bound = dict[str, list[str]](), _bound(forward)
    for op in bound:
        gradient = f"{op.name}.{op.kind.parameter_gradient}"
        if gradient in made:
            for owner in filter(None, (op.name, op.shares)):
                sent.setdefault(owner, []).append(gradient)
    return [_update(op.name, tuple(sent[op.name]), Update(count=op.parameters, optimiser=optimiser))
            for op in bound if op.parameters and op.name in sent]  # fmt: skip


def _update(name: str, gradients: tuple[str, ...], kind: Update) -> Op:
    shape = (kind.count,)
    return Op(name=f"{name}.update", kind=kind, inputs=gradients, shape=shape, phase=UPDATE, parent=name, of=(shape,))


def _read_by(gradients: Iterable[Op], forward: Trace) -> dict[str, tuple[Dim, ...]]:
    """The forward tensors that the gradients read, with their shapes."""
    dims = dict(forward.inputs) | {op.name: op.shape for op in forward.ops}
    read = dict.fromkeys(name for op in gradients for name in op.inputs)
    return {name: dims[name] for name in read if name in dims}


def _with_ops(forward: Trace, ops: Iterable[Op], inputs: Mapping[str, tuple[Dim, ...]]) -> Trace:
    """`forward` with other ops and inputs, its tensors still named once each."""
    listed = tuple(ops)
    named = [*inputs, *(op.name for op in listed)]
    if len(set(named)) != len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise ValueError(f"network {forward.name!r} uses the name {twice!r}, which its gradients need")
    return replace(forward, ops=listed, inputs=dict(inputs), outputs=())
