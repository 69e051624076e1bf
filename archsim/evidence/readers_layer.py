"""Rows of single layers, timed inside a framework: forward, and the gradients where they were timed too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, integer
from archsim.evidence.kernel_ops import case_of, conv, forward, op
from archsim.evidence.resolve import Refused, setting
from archsim.evidence.software import stack_of
from archsim.evidence.table import Row
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, FORWARD
from archsim.trace.op import AvgPool, Concat, Dropout, GlobalAvgPool, Linear, Lrn, MaxPool, Relu, Shape, Softmax
from archsim.trace.trace import BoundOp

Cells = Mapping[str, str]

# column -> the phases that it times together
PHASES: dict[str, tuple[str, ...]] = {
    "fwd_ms": (FORWARD,),
    "bwd_data_ms": (BACKWARD_DATA,),
    "bwd_filter_ms": (BACKWARD_FILTER,),
    "bwd_total_ms": (BACKWARD_DATA, BACKWARD_FILTER),
}


def read(row: Row, file: str) -> list[Case | Skip]:
    """One case for each time of a row; the sum of both gradients only where the row does not time each."""
    cells = row.cells
    kind = cells["layer_type"]
    if kind not in BUILDERS:
        raise Refused(f"layer type {kind!r} is not modelled" if kind else "layers without a type, such as data, are not modelled")
    found = setting(cells["hardware"], stack_of(cells, "layers", f"{cells['framework']}: {cells['library']}"), cells["precision"])
    apart = bool(cells.get("bwd_data_ms") or cells.get("bwd_filter_ms"))
    cases: list[Case | Skip] = []
    for column, phases in PHASES.items():
        text = cells.get(column, "")
        if not text or (column == "bwd_total_ms" and apart) or (phases != (FORWARD,) and kind not in WITH_GRADIENTS):
            continue
        if not float(text):
            raise Refused("the measured time is below what the timer tells apart")
        cases.append(
            case_of(
                row, file, found, kind.lower(), "latency_s", float(text) * 1e-3,
                *(BUILDERS[kind](cells, phase) for phase in phases), task=_task(kind, phases),
                batch=integer(cells, "N"), dispatch=1.0,
                fields={**cells, "source": cells["source_id"], "timed": column},
            )
        )  # fmt: skip
    return cases


def _task(kind: str, phases: tuple[str, ...]) -> str:
    if phases != (FORWARD,):
        return "backward"
    return "forward" if kind in TRAINED else "inference"


def _image(cells: Cells) -> Shape:
    return (integer(cells, "N"), integer(cells, "C"), integer(cells, "H", 1), integer(cells, "W", 1))


def _pair(cells: Cells, name: str, default: int | None = None) -> tuple[int, int]:
    return integer(cells, f"{name}_h", default), integer(cells, f"{name}_w", default)


def _convolution(cells: Cells, phase: str) -> BoundOp:
    return conv(
        image=_image(cells), filters=integer(cells, "K"), window=(integer(cells, "R"), integer(cells, "S")),
        stride=_pair(cells, "stride", 1), pad=_pair(cells, "pad", 0), groups=integer(cells, "groups", 1), phase=phase,
    )  # fmt: skip


def _inner_product(cells: Cells, phase: str) -> BoundOp:
    n, c, h, w = _image(cells)
    return op(Linear(), phase, (n, integer(cells, "K")), (n, c * h * w))


def _pooling(cells: Cells, phase: str) -> BoundOp:
    """The mean over a window that is the whole plane, or where the layer's name has "ave"; otherwise the maximum.

    Whether a last, partial window counts follows from the size of the output.
    """
    image, window = _image(cells), (integer(cells, "R"), integer(cells, "S"))
    n, c, h, w = image
    if window == (h, w):
        return forward(GlobalAvgPool(), (n, c, 1, 1), image)
    out = (n, c, *_pair(cells, "out"))
    stride, pad = _pair(cells, "stride", 1), _pair(cells, "pad", 0)
    pool = AvgPool if "ave" in cells.get("layer", "").lower() else MaxPool
    full = pool(kernel=window, stride=stride, pad=pad)
    exact = full.shape((image,), out) == out
    return forward(full if exact else pool(kernel=window, stride=stride, pad=pad, ceil_mode=True), out, image)


def _concat(cells: Cells, phase: str) -> BoundOp:
    """As many values in two parts: the source does not record the shapes that are joined."""
    n, c, h, w = _image(cells)
    return forward(Concat(), (n, c, h, w), (n, c - c // 2, h, w), *([(n, c // 2, h, w)] if c > 1 else []))


def _same(kind: Relu | Lrn | Dropout) -> Callable[[Cells, str], BoundOp]:
    return lambda cells, phase: forward(kind, _image(cells), _image(cells))


def _softmax(cells: Cells, phase: str) -> BoundOp:
    n, c, h, w = _image(cells)
    return forward(Softmax(), (n * h * w, c), (n * h * w, c))


BUILDERS: dict[str, Callable[[Cells, str], BoundOp]] = {
    "CONVOLUTION": _convolution, "INNERPRODUCT": _inner_product, "POOLING": _pooling, "CONCAT": _concat,
    "RELU": _same(Relu()), "LRN": _same(Lrn()), "SOFTMAX": _softmax, "DROPOUT": _same(Dropout(training=True)),
}  # fmt: skip
TRAINED = ("DROPOUT",)  # `caffe time` runs the net of the training phase, in which this layer has work to do
WITH_GRADIENTS = ("CONVOLUTION", "INNERPRODUCT")

FAMILY = Family(
    name="layers",
    columns=("source_id", "layer_type", "framework", "library", "precision", "N", "C", "H", "W", "K", "R", "S", "fwd_ms",
             "hardware"),
    words=("source_id", "framework", "library", "precision", "hardware"),
    readings=tuple(PHASES),
    whole=("N", "C", "H", "W", "K", "R", "S", "stride_h", "stride_w", "groups", "out_h", "out_w"),
    offsets=("pad_h", "pad_w"),
    measured=tuple(PHASES),
    read=read,
)  # fmt: skip
