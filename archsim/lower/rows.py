"""Rows that a kernel sums up before it writes them: of a channel's values, or along the last axis."""

from __future__ import annotations

from math import prod

from archsim.lower.context import Context
from archsim.trace.trace import BoundOp

ALONG_AXIS = ("layer_norm", "rms_norm", "softmax")
OF_ITS_OWN = 2  # kernels of an op; in a chain of more the sums are kernels of their own


def row_of(op: BoundOp, context: Context, launches: float) -> tuple[float, float]:
    """Values whose sum a CTA needs before it writes any of them, and how many of these lie side by side; 0, 0: it needs none.

    batch_norm [N, C, ...]      N ... values of a channel, in N pieces; only in training, else the sums are known
    along the last axis         the values of a row, in one piece

    >>> from types import SimpleNamespace
    >>> from archsim.trace.kinds.normalise import Softmax
    >>> op = BoundOp(name="s", kind=Softmax(axis=-1), inputs=("x",), input_shapes=((8, 512),), shape=(8, 512))
    >>> row_of(op, SimpleNamespace(training=False), 1)
    (512.0, 512.0)
    """
    shape, kind = op.input_shapes[0], op.kind.op
    if launches > OF_ITS_OWN:
        return 0.0, 0.0
    if kind == "batch_norm" and (context.training or op.phase != "forward"):
        piece = float(prod(shape[2:]))
        return shape[0] * piece, piece
    axis = getattr(op.kind, "axis", -1) % len(shape)
    if kind in ALONG_AXIS and prod(shape[axis + 1 :]) == 1:
        return float(shape[axis]), float(shape[axis])
    return 0.0, 0.0
