"""Activations: element-wise functions of one input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.dims import Shape, show
from archsim.trace.kind import Kind, only
from archsim.trace.kinds.pointwise import Pointwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Relu(Pointwise):
    """max(x, 0). FLOP: 1 compare; backward 1 select."""

    op: ClassVar[str] = "relu"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 1
    backward_reads: ClassVar[tuple[str, ...]] = ("output",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relu6(Pointwise):
    """min(max(x, 0), 6). FLOP: 2 compares; backward 1 select."""

    op: ClassVar[str] = "relu6"
    flop_per_element: ClassVar[int] = 2
    backward_flop_per_element: ClassVar[int] = 1
    backward_reads: ClassVar[tuple[str, ...]] = ("output",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakyRelu(Pointwise):
    """max(x, a x) with a small fixed slope a (Maas et al. 2013). FLOP: multiply, compare; backward 1 multiply by 1 or a."""

    op: ClassVar[str] = "leaky_relu"
    flop_per_element: ClassVar[int] = 2
    backward_flop_per_element: ClassVar[int] = 1
    backward_reads: ClassVar[tuple[str, ...]] = ("output",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sigmoid(Pointwise):
    """1 / (1 + exp(-x)). FLOP: negate, exp, add, divide; backward dy * y * (1 - y)."""

    op: ClassVar[str] = "sigmoid"
    flop_per_element: ClassVar[int] = 4
    backward_flop_per_element: ClassVar[int] = 3
    backward_reads: ClassVar[tuple[str, ...]] = ("output",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tanh(Pointwise):
    """Hyperbolic tangent. FLOP: 1 transcendental; backward dy * (1 - y * y)."""

    op: ClassVar[str] = "tanh"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 3
    backward_reads: ClassVar[tuple[str, ...]] = ("output",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gelu(Pointwise):
    """x / 2 * (1 + erf(x / sqrt 2)). FLOP: 2 scalings, erf, add, multiply; backward 8 (adds the density term)."""

    op: ClassVar[str] = "gelu"
    flop_per_element: ClassVar[int] = 5
    backward_flop_per_element: ClassVar[int] = 8
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeluTanh(Pointwise):
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016, section 2), GPT-2's form of GELU.

    FLOP: power, 3 scalings, 2 adds, tanh, multiply; backward 14, the gradients of each of these.
    """

    op: ClassVar[str] = "gelu_tanh"
    flop_per_element: ClassVar[int] = 8
    backward_flop_per_element: ClassVar[int] = 14
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silu(Pointwise):
    """x * sigmoid(x). FLOP: sigmoid (4), multiply; backward s * (1 + x * (1 - s)) * dy with the sigmoid s anew (9)."""

    op: ClassVar[str] = "silu"
    flop_per_element: ClassVar[int] = 5
    backward_flop_per_element: ClassVar[int] = 9
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardSigmoid(Pointwise):
    """min(max(x + 3, 0), 6) / 6 (Howard et al. 2019, section 5.2).

    FLOP: add, 2 compares, scaling; backward 2 compares, 1 scaling.
    """

    op: ClassVar[str] = "hard_sigmoid"
    flop_per_element: ClassVar[int] = 4
    backward_flop_per_element: ClassVar[int] = 3
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardSwish(Pointwise):
    """x * hard_sigmoid(x). FLOP: hard sigmoid (4), multiply; backward 2 compares, and (x / 3 + 1 / 2) * dy (3)."""

    op: ClassVar[str] = "hard_swish"
    flop_per_element: ClassVar[int] = 5
    backward_flop_per_element: ClassVar[int] = 5
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated(Kind):
    """act(a) * b of the halves a and b of the last axis, [..., 2 K] to [..., K] (Shazeer 2020, equation 6, as engines fuse it).

    FLOP per result: a sigmoid (4), two multiplies; backward 10.
    """

    op: ClassVar[str] = "gated"
    flop_per_element: ClassVar[int] = 6
    backward_flop_per_element: ClassVar[int] = 10
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """That of a half."""
        data = only(inputs)
        if len(data) < 1 or data[-1] % 2:
            raise ValueError(f"needs two halves along the last axis, got {show(data)}")
        return (*data[:-1], data[-1] // 2)
