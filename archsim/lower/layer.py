"""The geometry of one convolution in one phase."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archsim.trace.kind import BACKWARD_DATA, FORWARD
from archsim.trace.kinds.convolution import Conv2d, ConvTranspose2d
from archsim.trace.trace import BoundOp


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The geometry of one convolution in one phase; channels are per group."""

    phase: str
    batch: int
    groups: int
    ci: int
    co: int
    h: int
    w: int
    ho: int
    wo: int
    kh: int
    kw: int
    sh: int
    sw: int
    dense: bool  # no dilation
    element: int

    @property
    def taps(self) -> int:
        """Values of one filter in one channel."""
        return self.kh * self.kw

    @property
    def input_bytes(self) -> float:
        """The input tensor, all groups [B]."""
        return float(self.batch * self.groups * self.ci * self.h * self.w * self.element)

    @property
    def output_bytes(self) -> float:
        """The output tensor, all groups [B]."""
        return float(self.batch * self.groups * self.co * self.ho * self.wo * self.element)

    @property
    def filter_bytes(self) -> float:
        """The filters, all groups [B]."""
        return float(self.groups * self.co * self.ci * self.taps * self.element)

    @property
    def operands(self) -> tuple[float, float, float]:
        """Unique bytes of A, B and C of the product in this phase, all groups."""
        if self.phase == "backward_data":
            return self.filter_bytes, self.output_bytes, self.input_bytes
        if self.phase == "backward_filter":
            return self.output_bytes, self.input_bytes, self.filter_bytes
        return self.filter_bytes, self.input_bytes, self.output_bytes

    @property
    def product(self) -> tuple[int, int, int]:
        """(m, n, k) per group. A strided data gradient multiplies zeros between the pixels of its B, stride^2 as many."""
        if self.phase == "backward_data":
            return self.ci, self.batch * self.h * self.w, self.co * self.taps
        if self.phase == "backward_filter":
            return self.co, self.ci * self.taps, self.batch * self.ho * self.wo
        return self.co, self.batch * self.ho * self.wo, self.ci * self.taps

    @property
    def macs(self) -> float:
        """Useful multiply-accumulates, all groups."""
        return float(self.groups * self.co * self.ci * self.taps) * self.batch * self.ho * self.wo

    @property
    def target(self) -> tuple[int, int, int]:
        """What a fast algorithm tiles: (channels summed over, height, width of the result)."""
        return (self.co, self.h, self.w) if self.phase == "backward_data" else (self.ci, self.ho, self.wo)


TRANSPOSED = {FORWARD: BACKWARD_DATA, BACKWARD_DATA: FORWARD}  # the filter gradient is one in both


def untransposed(op: BoundOp) -> BoundOp:
    """A transposed convolution as the phase that it is of the convolution from its output to its input; other ops as they are.

    The bias is left to the caller: it belongs to the output, which here is the input.
    """
    kind = op.kind
    if not isinstance(kind, ConvTranspose2d):
        return op
    plain = Conv2d(kernel=kind.kernel, stride=kind.stride, pad=kind.pad, bias=False)
    phase = TRANSPOSED.get(op.phase, op.phase)
    return replace(op, kind=plain, input_shapes=(op.shape,), shape=op.input_shapes[0], phase=phase)


def layer_of(op: BoundOp, element: int) -> Layer:
    """The geometry of a convolution op."""
    kind = op.kind
    assert isinstance(kind, Conv2d)
    n, c, h, w = op.input_shapes[0]
    _, k, ho, wo = op.shape
    return Layer(
        phase=op.phase, batch=n, groups=kind.groups, ci=c // kind.groups, co=k // kind.groups, h=h, w=w, ho=ho, wo=wo,
        kh=kind.kernel[0], kw=kind.kernel[1], sh=kind.stride[0], sw=kind.stride[1], dense=kind.dilation == (1, 1),
        element=element,
    )  # fmt: skip
