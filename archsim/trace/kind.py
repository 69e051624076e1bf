"""`Kind`: what an op computes, apart from its name and place in a network: attributes, shape rule, work and parameters.

Counting rules, the same for every kind:

- 1 multiply-accumulate = 2 FLOP. An add, multiply, divide, compare, square root, power or transcendental is 1 FLOP.
- Windows count in full, also where they extend into padding.
- A kind that contains matrix products (convolution, linear, matmul, lstm, attention) counts them in `macs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform

from archsim.trace.dims import Shape, Shapes, elements, show

FORWARD, UPDATE = "forward", "update"
BACKWARD, BACKWARD_DATA, BACKWARD_FILTER = "backward", "backward_data", "backward_filter"
PHASES = (FORWARD, BACKWARD_DATA, BACKWARD_FILTER, BACKWARD, UPDATE)


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Kind:
    """Base of all op kinds. The fields of a subclass are its JSON attributes; the methods are pure functions of shapes.

    A subclass is a frozen dataclass, and states in its head what all of its ops have in common, each by its name below.

    `inputs` are the shapes of the op's inputs, `out` is the shape of its output. The gradients of an op are described
    by the same kind and the same two shapes, those of the forward op, with another phase.
    """

    op: ClassVar[str] = ""
    """Name of the kind in trace files."""
    flop_per_element: ClassVar[int] = 0
    """Arithmetic per output element, forward [FLOP]."""
    backward_flop_per_element: ClassVar[int] = 0
    """Arithmetic per output element in the gradient, for kinds whose gradient is one op [FLOP]."""
    flop_per_input: ClassVar[int] = 0
    """Arithmetic per element of the first input, forward [FLOP]."""
    backward_flop_per_input: ClassVar[int] = 0
    """The same in the gradient."""
    backward_reads: ClassVar[tuple[str, ...]] = ()
    """What a gradient reads besides the incoming one: any of "inputs", "output", "data_gradient" (the op's own)."""
    data_gradient_reads: ClassVar[tuple[str, ...]] = ()
    """The same for a `backward_data` op of its own, which otherwise reads only parameters."""
    input_gradient: ClassVar[tuple[str, ...]] = (BACKWARD,)
    """The phase that gives the gradient of each input; the last one also serves the inputs after it. None: it has no gradient."""
    parameter_gradient: ClassVar[str] = BACKWARD
    """The phase that gives the gradient of the learned values."""

    def __init_subclass__(cls, **common: Any) -> None:
        for name, value in common.items():
            if not hasattr(cls, name):
                raise TypeError(f"{cls.__name__}: an op has no {name}")
            setattr(cls, name, value)
        dataclass(frozen=True, kw_only=True)(cls)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """Shape of the output: that of the one input, which has the `axis` of a kind that acts along one.

        `recorded` is used only for what an op is free to choose: output channels or features. Raises ValueError, with a sentence
        that says what is wrong, when the inputs do not fit.
        """
        data, axis = only(inputs), getattr(self, "axis", None)
        if axis is not None:
            axis_of(axis, data)
        return data

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Multiply-accumulates of the forward op."""
        return 0

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """All arithmetic of the forward op [FLOP]."""
        own = self.flop_per_input * elements(inputs[0]) if self.flop_per_input else 0
        return 2 * self.macs(inputs, out) + self.flop_per_element * elements(out) + own

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Number of learned values that the op reads; another op may count them too (`shares`)."""
        return 0

    def gradients(self, inputs: Shapes, out: Shape, needed: Sequence[bool]) -> tuple[str, ...]:
        """Phases of the gradient ops, in execution order; `needed[i]`: input i depends on learned values."""
        wanted = {self.gradient_of(i) for i, need in enumerate(needed) if need and self.input_gradient}
        if self.parameters(inputs, out):
            wanted.add(self.parameter_gradient)
        return tuple([phase for phase in PHASES if phase in wanted])

    def gradient_of(self, position: int) -> str:
        """The phase whose op gives the gradient of the input at `position`."""
        return self.input_gradient[min(position, len(self.input_gradient) - 1)]

    def gradient_macs(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """Multiply-accumulates of one gradient op: each product of a gradient costs what the forward one does."""
        return self.macs(inputs, out) * (2 if phase == BACKWARD else 1)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """All arithmetic of one gradient op [FLOP]."""
        own = self.backward_flop_per_element * elements(out) if phase == BACKWARD else 0
        own += self.backward_flop_per_input * elements(inputs[0]) if self.backward_flop_per_input else 0
        return 2 * self.gradient_macs(phase, inputs, out) + own


class WeightedKind(Kind, backward_reads=("inputs",), input_gradient=(BACKWARD_DATA,), parameter_gradient=BACKWARD_FILTER):
    """Base of kinds that multiply by learned weights: a gradient of the data, one of the weights, and in some a `bias`.

    FLOP: 2 per MAC, and 1 per output element for the bias.
    """

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, and the bias."""
        return 2 * self.macs(inputs, out) + elements(out) * getattr(self, "bias", False)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, and in the filter gradient the sum over outputs that is the bias gradient."""
        own = elements(out) if phase == BACKWARD_FILTER else 0
        return 2 * self.gradient_macs(phase, inputs, out) + own * getattr(self, "bias", False)


def only(inputs: Shapes, rank: int = 0, form: str = "") -> Shape:
    """The one input of an op; `rank` dimensions of the given form, if a rank is asked for."""
    if len(inputs) != 1:
        raise ValueError(f"takes 1 input, got {len(inputs)}")
    if rank and len(inputs[0]) != rank:
        raise ValueError(f"needs an input of the form {form}, got {show(inputs[0])}")
    return inputs[0]


def image(inputs: Shapes) -> tuple[int, int, int, int]:
    """The one input of an op on images, [N, C, H, W]."""
    n, c, h, w = only(inputs, 4, "[N, C, H, W]")
    return n, c, h, w


def axis_of(axis: int, shape: Shape) -> int:
    """`axis` counted from the front; raises ValueError when the shape has no such axis."""
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"has axis {axis}, but its input is {show(shape)}")
    return axis % len(shape)


def chosen(recorded: Shape, axis: int, what: str) -> int:
    """The size that the op is free to choose, from the recorded output shape."""
    if not -len(recorded) <= axis < len(recorded):
        raise ValueError(f"records the output {show(recorded)}, which has no place for {what}")
    return recorded[axis]
