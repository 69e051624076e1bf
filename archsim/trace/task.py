"""The ops of a task of a network: the forward trace, with gradients, updates and attention as a framework runs them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from archsim.base.errors import ArgumentError
from archsim.base.naming import resolve
from archsim.trace.dims import Dim, times
from archsim.trace.file import load
from archsim.trace.formats import Sizes, Stamp, format_of, is_path, stamp_of
from archsim.trace.kind import Kind
from archsim.trace.kinds.dense import Linear, Matmul
from archsim.trace.kinds.normalise import Softmax
from archsim.trace.kinds.pointwise import Add, Mul
from archsim.trace.kinds.sequence import Attention
from archsim.trace.kinds.shaping import Reshape, Transpose
from archsim.trace.op import OPTIMISERS
from archsim.trace.trace import Op, Trace
from archsim.trace.training import ACCUMULATE, OPTIMISER, OPTIMISER_ALIASES, TASK_ALIASES, TASKS, UPDATED, task_trace

HEADS_FIRST = (0, 2, 1, 3)  # [N, T, heads, d] to [N, heads, T, d], and back
PARTS = ("queries", "keys", "values")
Dims = tuple[Dim, ...]


def unfused(trace: Trace) -> Trace:
    """The forward trace with every attention replaced by its parts; the last of them keeps its name.

    The scores of all pairs are computed, scaled in a pass of their own, and masked where attention is causal; the mask is an
    input. A projection that makes queries, keys and values side by side becomes three. Raises ValueError where another op makes
    them, and for a name that exists already.
    """
    packed = {op.inputs[0]: op for op in trace.ops if isinstance(op.kind, Attention) and len(op.inputs) == 1}
    _check_projections(trace, packed)
    rewriter = _Rewriter(trace)
    for op in trace.ops:
        if op.name in packed:
            rewriter.apart(op, packed[op.name])
        elif isinstance(op.kind, Attention):
            rewriter.attention(op, op.kind)
        else:
            rewriter.ops.append(op)
    names = [op.name for op in rewriter.ops]
    if len({*names, *rewriter.inputs}) < len(names) + len(rewriter.inputs):
        raise ValueError(f"network {trace.name!r} uses a name that the parts of its attention need")
    return replace(trace, ops=tuple(rewriter.ops), inputs=rewriter.inputs)


def _check_projections(trace: Trace, packed: dict[str, Op]) -> None:
    readers, made = trace.consumers(), {op.name: op for op in trace.ops}
    for name, op in packed.items():
        if name not in made or not isinstance(made[name].kind, Linear) or readers[name] != (op.name,):
            raise ValueError(f"{op.name!r} needs queries, keys and values apart, or from one linear layer that only it reads")


class _Rewriter:
    """Collects the ops and inputs of the new trace."""

    def __init__(self, trace: Trace) -> None:
        self.ops: list[Op] = []
        self.inputs: dict[str, Dims] = dict(trace.inputs)
        self._shapes: dict[str, Dims] = self.inputs | {op.name: op.shape for op in trace.ops}

    def apart(self, projection: Op, attention: Op) -> None:
        """Three linear layers in the place of one."""
        kind = attention.kind
        assert isinstance(kind, Attention)
        features, shared = int(projection.shape[-1]), kind.kv_heads or kind.heads
        size = features // (kind.heads + 2 * shared)
        for part, heads in zip(PARTS, (kind.heads, shared, shared), strict=True):
            shape = (*projection.shape[:-1], heads * size)
            shares = f"{projection.shares}.{part}" if projection.shares else ""
            self._add(f"{projection.name}.{part}", projection.kind, projection.inputs, shape, shares)

    def attention(self, op: Op, kind: Attention) -> None:
        """The chain of one attention. Heads that share keys are rows of one product."""
        reads = op.inputs if len(op.inputs) == 3 else tuple([f"{op.inputs[0]}.{part}" for part in PARTS])
        (n, t, width), (_, s, _) = self._shapes[reads[0]], self._shapes[reads[1]]
        shared = kind.kv_heads or kind.heads
        rows, size = times(kind.heads // shared, t), int(width) // kind.heads
        queries = self._heads(op, "queries", reads[0], (n, t, kind.heads, size))
        if shared < kind.heads:
            queries = self._add(f"{op.name}.grouped", Reshape(), (queries,), (n, shared, rows, size))
        keys = self._heads(op, "keys", reads[1], (n, s, shared, size))
        values = self._heads(op, "values", reads[2], (n, s, shared, size))
        scores = self._scores(op, kind, queries, keys, (n, shared, rows, s))
        mixed = self._add(f"{op.name}.mixed", Matmul(), (scores, values), (n, shared, rows, size))
        if shared < kind.heads:
            mixed = self._add(f"{op.name}.ungrouped", Reshape(), (mixed,), (n, kind.heads, t, size))
        tokens = self._add(f"{op.name}.tokens", Transpose(order=HEADS_FIRST), (mixed,), (n, t, kind.heads, size))
        self._add(op.name, Reshape(), (tokens,), op.shape)

    def _heads(self, op: Op, part: str, name: str, shape: Dims) -> str:
        """[N, T, heads * d] as [N, heads, T, d]: a view, and the copy that batched products ask for."""
        split = self._add(f"{op.name}.{part}.split", Reshape(), (name,), shape)
        return self._add(f"{op.name}.{part}", Transpose(order=HEADS_FIRST), (split,), tuple([shape[i] for i in HEADS_FIRST]))

    def _scores(self, op: Op, kind: Attention, queries: str, keys: str, shape: Dims) -> str:
        """The weights of all pairs."""
        found = self._add(f"{op.name}.scores", Matmul(transpose_b=True), (queries, keys), shape)
        scale = self._input("attention.scale", (1, 1, 1, 1))
        found = self._add(f"{op.name}.scaled", Mul(), (found, scale), shape)
        if kind.causal:
            mask = self._input("attention.mask", (1, 1, *shape[2:]))
            found = self._add(f"{op.name}.masked", Add(), (found, mask), shape)
        return self._add(f"{op.name}.softmax", Softmax(), (found,), shape)

    def _input(self, name: str, shape: Dims) -> str:
        """One input for all layers whose scores have the same shape."""
        while self.inputs.setdefault(name, shape) != shape:
            name += "'"
        return name

    def _add(self, name: str, kind: Kind, inputs: tuple[str, ...], shape: Dims, shares: str = "") -> str:
        self.ops.append(Op(name=name, kind=kind, inputs=inputs, shape=shape, shares=shares))
        self._shapes[name] = shape
        return name


# ---------------------------------------------------------------------------------------------------------------- tasks

ATTENTION = ("attention", "latent_attention", "matmul")  # kinds of op whose operands are all activations


class Work(NamedTuple):
    """The arguments of `prepared`, which decide the ops of a network."""

    net: str
    task: str
    optimiser: str
    input_gradient: bool
    fused_attention: bool
    sizes: Sizes = ()
    stamp: Stamp = ()

    @property
    def now(self) -> Work:
        """The same with the stamp of the network's file, so that it is another when the file changes."""
        return self._replace(stamp=stamp_of(self.net))


def prepared(
    net: str, task: str, optimiser: str = OPTIMISER, input_gradient: bool = False, fused_attention: bool = True,
    sizes: Sizes = (), stamp: Stamp = (),
) -> Trace:  # fmt: skip
    """The ops of a task of a network; a training step ends with the updates of `optimiser`. Where attention is not fused, it is
    the products and the softmax that it stands for, or what the module of a `config.json` runs. With `loss_apart` the forward
    pass ends in the scores, and the backward pass begins with the gradient of their loss. `sizes` are those of symbols by the
    names that the network's file has for them. A file that changed since is read again; `stamp` is that of the file, where the
    caller has it."""
    return trace_held(net, task, optimiser, input_gradient, fused_attention, sizes, stamp or stamp_of(net))


@lru_cache(maxsize=256)
def trace_held(
    net: str, task: str, optimiser: str, input_gradient: bool, fused_attention: bool, sizes: Sizes, stamp: Stamp
) -> Trace:  # fmt: skip
    """What `prepared` gives for a content of a file."""
    try:
        forward = load(net, sizes) if fused_attention else _apart(net, sizes)
        return task_trace(forward, task, optimiser, input_gradient)
    except ValueError as error:
        raise ArgumentError(str(error)) from None


def task_of(name: str) -> str:
    """The task that a name stands for. Raises UnknownName.

    >>> task_of("training")
    'training_step'
    """
    return resolve("task", name, TASKS, lambda: TASK_ALIASES, f"one of {', '.join(TASKS)}")


def optimiser_of(name: str) -> str:
    """The optimiser that a name stands for. Raises UnknownName.

    >>> optimiser_of("AdamW")
    'adam'
    """
    known = [known for known in OPTIMISERS if known != ACCUMULATE]
    return resolve("optimiser", name, known, lambda: OPTIMISER_ALIASES, "sgd, momentum and adamw are known")


def updated_by(asked: str | None, task: str, net: str, usual: str, framework: str = "") -> tuple[str, list[str]]:
    """What updates the weights of a network, and what is said of it where nobody has asked for one.

    That is AdamW for networks with attention, as transformers are trained, and else what published benchmarks of the framework
    take, `usual`. Raises UnknownName, or ArgumentError where a task that updates nothing is asked for one.

    >>> updated_by(None, "training_step", "llama_2_7b", "sgd")[0], updated_by("momentum", "training_step", "alexnet", "sgd")[0]
    ('adam', 'sgd_momentum')
    """
    if asked is not None:
        found = optimiser_of(asked)
        if task not in UPDATED:
            raise ArgumentError(f"optimiser {asked}: task {task} updates no weights; {' and '.join(UPDATED)} do")
        return found, []
    if task not in UPDATED:
        return usual, []
    attends = any(op.kind.op in ATTENTION for op in prepared(net, "inference").ops)
    found, why = ("adam", "usual where a network has attention") if attends else (usual, f"published benchmarks of {framework}")
    return found, [f"optimiser {OPTIMISERS[found].title}: {why}; --optimiser sets another"]


def _apart(net: str, sizes: Sizes) -> Trace:
    """A network whose attention is products around a softmax."""
    if is_path(net):
        found = format_of(Path(net)).read_eager(Path(net), dict(sizes))
        if found is not None:
            return found
    return unfused(load(net, sizes))
