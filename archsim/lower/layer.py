"""The geometry of one convolution in one phase."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archsim.trace.kind import BACKWARD_DATA, FORWARD
from archsim.trace.kinds.convolution import Conv2d, ConvTranspose2d
from archsim.trace.trace import BoundOp


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The geometry of one convolution in one phase.

    batch: images; groups: independent convolutions, each from `ci` to `co` channels; h, w: rows and columns of the input; ho, wo:
    those of the output; kh, kw: of a filter; sh, sw: stride; dense: no dilation; element: size of a value [B].

    >>> layer = Layer(phase="forward", batch=2, groups=1, ci=3, co=96, h=227, w=227, ho=55, wo=55, kh=11, kw=11, sh=4, sw=4,
    ...               dense=True, element=4)
    >>> layer.product, layer.macs
    ((96, 6050, 363), 210830400.0)
    """

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
    dense: bool
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
        """Sizes of the tensors that are A, B and C of the product in this phase, all groups [B]."""
        if self.phase == "backward_data":
            return self.filter_bytes, self.output_bytes, self.input_bytes
        if self.phase == "backward_filter":
            return self.output_bytes, self.input_bytes, self.filter_bytes
        return self.filter_bytes, self.input_bytes, self.output_bytes

    @property
    def product(self) -> tuple[int, int, int]:
        """(m, n, k) of the product in this phase, for each group (Chetlur et al. 2014, cuDNN, section 3).

            forward            m = co    n = batch ho wo    k = ci kh kw
            backward_data      m = ci    n = batch h w      k = co kh kw
            backward_filter    m = co    n = ci kh kw       k = batch ho wo

        In a strided data gradient B has zeros between its pixels: of sh sw products one is not with a zero.
        """
        if self.phase == "backward_data":
            return self.ci, self.batch * self.h * self.w, self.co * self.taps
        if self.phase == "backward_filter":
            return self.co, self.ci * self.taps, self.batch * self.ho * self.wo
        return self.co, self.batch * self.ho * self.wo, self.ci * self.taps

    @property
    def macs(self) -> float:
        """Multiply-accumulates without those with zeros, all groups: groups co ci kh kw batch ho wo."""
        return float(self.groups * self.co * self.ci * self.taps) * self.batch * self.ho * self.wo

    @property
    def target(self) -> tuple[int, int, int]:
        """What an algorithm with transforms cuts into tiles: (channels summed over, height, width of the result)."""
        return (self.co, self.h, self.w) if self.phase == "backward_data" else (self.ci, self.ho, self.wo)


TRANSPOSED = {FORWARD: BACKWARD_DATA, BACKWARD_DATA: FORWARD}  # a filter gradient is a filter gradient in both


def untransposed(op: BoundOp) -> BoundOp:
    """A transposed convolution as a phase of the plain convolution from its output to its input; any other op as it is.

    Its forward pass is that convolution's data gradient, and the other way round. The bias is left to the caller: it belongs to
    the output, which is the input here.
    """
    kind = op.kind
    if not isinstance(kind, ConvTranspose2d):
        return op
    plain = Conv2d(kernel=kind.kernel, stride=kind.stride, pad=kind.pad, dilation=kind.dilation, groups=kind.groups,
                   bias=False)  # fmt: skip
    phase = TRANSPOSED.get(op.phase, op.phase)
    return replace(op, kind=plain, input_shapes=(op.shape,), shape=op.input_shapes[0], phase=phase)


def layer_of(op: BoundOp, element: int) -> Layer:
    """The geometry of a convolution op on [N, C, H, W] whose values take `element` bytes."""
    kind = op.kind
    assert isinstance(kind, Conv2d)
    n, c, h, w = op.input_shapes[0]
    _, k, ho, wo = op.shape
    return Layer(
        phase=op.phase, batch=n, groups=kind.groups, ci=c // kind.groups, co=k // kind.groups, h=h, w=w, ho=ho, wo=wo,
        kh=kind.kernel[0], kw=kind.kernel[1], sh=kind.stride[0], sw=kind.stride[1], dense=kind.dilation == (1, 1),
        element=element,
    )  # fmt: skip
