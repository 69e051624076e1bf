"""The ops of a task of a network, by name: the forward trace, with gradients, updates and attention as a framework runs them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from archsim.base.errors import ArgumentError
from archsim.base.naming import resolve
from archsim.trace.file import load
from archsim.trace.formats import Sizes, Stamp, format_of, is_path, stamp_of
from archsim.trace.op import OPTIMISERS
from archsim.trace.trace import Trace
from archsim.trace.training import (
    ACCUMULATE,
    OPTIMISER,
    OPTIMISER_ALIASES,
    TASK_ALIASES,
    TASKS,
    UPDATED,
    task_trace,
)

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
    from archsim.trace.unfused import unfused

    return unfused(load(net, sizes))
