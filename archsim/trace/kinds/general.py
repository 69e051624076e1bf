"""Ops besides the layers that have kinds of their own, down to operators nobody knows; and what users say that these cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from archsim.base.errors import ArgumentError
from archsim.trace.dims import LARGEST, Shape, Shapes, elements, show
from archsim.trace.kind import Kind, axis_of, image, only
from archsim.trace.kinds.pointwise import _broadcast
from archsim.trace.values import choice, flag, integer, integers, word

COLLECTIVES = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "reduce_scatter",
               "reduce_scatter_block", "barrier", "send", "receive")  # fmt: skip


class _AsRecorded(Kind):
    """An op of any form, to the recorded shape."""

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """The recorded one."""
        if not inputs:
            raise ValueError("takes at least 1 input, got 0")
        return tuple(recorded)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """Twice the forward work."""
        return 2 * self.flop(inputs, out)


class _Learning(_AsRecorded):
    """An op of any form that reads `learned` values besides its inputs, once."""

    learned: int = integer(most=LARGEST, default=0)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """As recorded."""
        return self.learned


class ElementWise(_Learning, op="element_wise", backward_reads=("inputs",)):
    """Any `function` of the values at one position of its inputs, which stretch as those of a sum do.

    FLOP: `each` per element; backward as many for each input.
    """

    function: str = word()
    each: int = integer(most=1000, default=1)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the inputs."""
        return only(inputs) if len(inputs) == 1 else _broadcast(inputs)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """`each` per element."""
        return self.each * elements(out)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """As many per element and input."""
        return self.each * len(inputs) * elements(out)


class Reduce(Kind, op="reduce", flop_per_input=1, backward_flop_per_input=1):
    """One value (sum, mean, largest ...) of those along `axes`, whose size becomes 1. FLOP: 1 per value, forward and backward."""

    function: str = word()
    axes: tuple[int, ...] = integers()

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input, 1 along the axes."""
        data = only(inputs)
        gone = {axis_of(axis, data) for axis in self.axes}
        return tuple([1 if axis in gone else size for axis, size in enumerate(data)])


class Gather(_Learning, op="gather"):
    """Values of the first input copied to the places of the recorded shape: by index, repeated, moved or cut.

    What else it reads are indices. FLOP: `each` per value, where it is made of several; backward 1 add per value.
    """

    function: str = word(default="gather")
    each: int = integer(most=1000, default=0)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """`each` per value."""
        return self.each * elements(out)

    def moved(self, inputs: Shapes, out: Shape) -> tuple[int, int]:
        """Values that are read and written: each of the result."""
        return elements(out), elements(out)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """1 add per value."""
        return elements(out)


class Scatter(Kind, op="scatter"):
    """Values of the last input written to places of the first, which stays where it lies: the rest of it does not move.

    What stands between them are indices. FLOP: none, or with `adds` 1 per value, which is added to the one that is there.
    """

    adds: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the first input."""
        if len(inputs) < 2:
            raise ValueError(f"takes a tensor and what is written to it, got {len(inputs)} inputs")
        return inputs[0]

    def moved(self, inputs: Shapes, out: Shape) -> tuple[int, int]:
        """Values that are read and written; those at their places are read too where they are added to."""
        return elements(inputs[-1]) * (2 if self.adds else 1), elements(inputs[-1])

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """1 per value that is added."""
        return elements(inputs[-1]) * self.adds

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """None: gradients are copied."""
        return 0


class GroupNorm(Kind, op="group_norm", flop_per_element=7, backward_flop_per_element=10, backward_reads=("inputs",)):
    """Normalisation of [N, C, H, W] over the pixels of `groups` of channels, with a learned scale and shift for each channel
    (Wu and He 2018). FLOP: 7 per element, backward 10."""

    groups: int = integer(least=1)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input."""
        n, c, h, w = image(inputs)
        if c % self.groups:
            raise ValueError(f"has {self.groups} groups, which do not divide the {c} channels of {show(inputs[0])}")
        return (n, c, h, w)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Scale and shift."""
        return 2 * out[1]


class Traffic(_Learning, op="traffic"):
    """An operator that nobody here knows, in a model of somebody else, to the recorded shape.

    A function of `archsim.register_op` says its work; without one, its time is bounded by its memory traffic, each tensor once,
    and `each` FLOP per element of the result. `own`: the number of that function when the model was read, 0 without one.
    """

    operator: str = word()
    each: int = integer(default=0)
    own: int = integer(default=0)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """What the registered function says, else `each` per element."""
        return int(self.work(inputs, out, 4)[0])

    def work(self, inputs: Shapes, out: Shape, element: int) -> tuple[float, float]:
        """FLOP, and bytes that move, with `element` bytes a value."""

        if self.own and registered(self.operator):
            return own_work(self.operator, inputs, out, element)
        return float(self.each * elements(out)), float(element * (sum(map(elements, inputs)) + elements(out) + self.learned))


class Stated(_AsRecorded, op="stated"):
    """An operator of which a file states its arithmetic, `flops` [FLOP], and the bytes that it `moves` [B], and not its form.

    The arithmetic counts as that of the vector lanes: an upper bound of its time where it is a product of matrices.
    `does`: `compute`, or `load` and `store` of memory. `own`: a function of `archsim.register_op` said both.
    """

    operator: str = word()
    does: str = choice("compute", "load", "store", default="compute")
    own: bool = flag(default=False)
    flops: int = integer(most=LARGEST, default=0)
    moves: int = integer(least=1, most=LARGEST)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """As stated."""
        return self.flops

    def work(self, inputs: Shapes, out: Shape, element: int) -> tuple[float, float]:
        """FLOP, and bytes that move."""
        return float(self.flops), float(self.moves)


class Collective(_AsRecorded, op="collective"):
    """Communication of several devices over `size` bytes of each [B], or a message to another one.

    On one device it is its memory traffic, the buffer read and written once; the links of a node are not part of it.
    `group`: the name of the devices that take part.
    """

    function: str = choice(*COLLECTIVES)
    size: int = integer(most=LARGEST)
    group: str = word(default="all")

    def work(self, inputs: Shapes, out: Shape, element: int) -> tuple[float, float]:
        """FLOP, and bytes that move."""
        return 0.0, 2.0 * max(self.size, 1)


# --------------------------------------------------------------------------------------------------- operators of users

WorkRule = Callable[..., tuple[float, float]]  # (shapes of the inputs, shape of the result, bytes of a value) -> FLOP, bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOp:
    """What is registered of an operator: its work, and the shape of its result where files do not state it.

    `number` tells one registration from the next of the same name.
    """

    work: WorkRule
    shape: Callable[[Shapes], Sequence[int]] | None = None
    number: int = 1


NUMBERS = count(1)
OWN: dict[str, OwnOp] = {}


def register(name: str, work: WorkRule, shape: Callable[[Shapes], Sequence[int]] | None = None) -> None:
    """Keep what an operator costs. Raises ArgumentError for what is no name or no function.

    >>> register("Twice", lambda inputs, output, element: (2 * output[0], 2 * output[0] * element))
    >>> own_work("Twice", ((8,),), (8,), 4)
    (16.0, 64.0)
    """
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ArgumentError(f"register_op: {name!r} is no name of an operator")
    if not callable(work) or not (shape is None or callable(shape)):
        raise ArgumentError(f"register_op: {name}: work and shape must be functions")
    OWN[name] = OwnOp(work=work, shape=shape, number=next(NUMBERS))


def registered(name: str) -> OwnOp | None:
    """What is registered of an operator, under its name with or without the domain."""
    return OWN.get(name) or OWN.get(name.rpartition(".")[2])


def own_work(name: str, inputs: Shapes, output: Shape, element: int) -> tuple[float, float]:
    """FLOP and bytes of a registered operator. Raises ArgumentError where its function returns anything else."""
    own = registered(name)
    assert own is not None
    found: Any = own.work(list(inputs), output, element)
    try:
        flop, moved = map(float, found)
    except (TypeError, ValueError):
        flop = moved = -1.0
    if not (0 <= flop < float("inf") and 0 < moved < float("inf")):
        raise ArgumentError(
            f"register_op: the function of {name} returned {found!r}; it must return FLOP from 0 and bytes above 0"
        )
    return flop, moved
