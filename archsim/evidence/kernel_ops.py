"""What was timed alone: single ops with concrete shapes, checked by the rule of their kind, and the case of such a row."""

from __future__ import annotations

from typing import Any

from archsim.evidence.case import Case
from archsim.evidence.resolve import Refused, Setting
from archsim.evidence.table import Row
from archsim.trace.op import FORWARD, Conv2d, Kind, Shape
from archsim.trace.trace import BoundOp, BoundTrace


def alone(name: str, *ops: BoundOp) -> BoundTrace:
    """Single ops as what was timed; they read nothing from each other."""
    return BoundTrace(name=name, inputs={}, ops=ops, symbols={})


def case_of(
    row: Row, file: str, ran: Setting, label: str, metric: str, measured: float, *ops: BoundOp, source: str = "", **more: Any
) -> Case:  # fmt: skip
    """The case of a row that times ops, or a pattern, alone; `more` are fields that are otherwise than of most such rows.

    source: of a file whose rows name none
    """
    source = row.cells.get("source") or row.cells.get("source_id") or source
    usual: dict[str, Any] = {
        "task": "inference", "batch": 1, "dispatch": 0.0, "stored": ran.stored, "precision": ran.precision,
        "split": row.cells.get("split", ""), "fields": {**row.cells, "source": source},
        "trace": alone(label, *ops),
    }  # fmt: skip
    return Case(
        line=row.line, file=file, source=source, label=label, hardware=ran.spec.identity.id, stack_id=ran.stack.id, metric=metric,
        measured=measured, spec=ran.spec, stack=ran.stack, **(usual | more),
    )  # fmt: skip


def forward(kind: Kind, out: Shape, *inputs: Shape) -> BoundOp:
    """The forward op; Refused when the shapes do not fit the kind."""
    return op(kind, FORWARD, out, *inputs)


def op(kind: Kind, phase: str, out: Shape, *inputs: Shape) -> BoundOp:
    """One op in one phase; `inputs` and `out` are the shapes of its forward op. Refused when they do not fit the kind."""
    try:
        shape = kind.shape(inputs, out)
    except (ValueError, IndexError) as error:
        raise Refused(f"{kind.op} {error}") from None
    if shape != out:
        raise Refused(f"{kind.op} has the output {list(shape)}, not {list(out)}")
    return BoundOp(name=kind.op, kind=kind, inputs=(), input_shapes=inputs, shape=out, phase=phase)


def conv(
    *, image: Shape, filters: int, window: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int], groups: int = 1,
    bias: bool = True, phase: str = FORWARD,
) -> BoundOp:  # fmt: skip
    """A convolution of [N, C, H, W] with `filters` filters; the output size follows."""
    if min(stride) < 1 or min(window) < 1 or groups < 1:
        raise Refused("a convolution has no window or no stride")
    kind = Conv2d(kernel=window, stride=stride, pad=pad, groups=groups, bias=bias)
    try:
        out = kind.shape((image,), (image[0], filters, 0, 0))
    except ValueError as error:
        raise Refused(f"convolution {error}") from None
    return op(kind, phase, out, image)
