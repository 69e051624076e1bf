"""Rows of single layers inside a framework, and of products and convolutions that one machine ran by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from archsim.evidence.case import Case
from archsim.evidence.op_rows import conv, forward, op
from archsim.evidence.resolve import Refused
from archsim.evidence.row import PublishedRow, integer
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, FORWARD
from archsim.trace.op import AvgPool, Concat, Dropout, GlobalAvgPool, Linear, Lrn, Matmul, MaxPool, Relu, Shape, Softmax
from archsim.trace.trace import BoundOp

Cells = Mapping[str, str]

# column -> the phases that it times together
PHASES: dict[str, tuple[str, ...]] = {
    "fwd_ms": (FORWARD,),
    "bwd_data_ms": (BACKWARD_DATA,),
    "bwd_filter_ms": (BACKWARD_FILTER,),
    "bwd_total_ms": (BACKWARD_DATA, BACKWARD_FILTER),
}


def read_layer(row: PublishedRow) -> Iterator[Case]:
    """One case for each time of a row; the sum of both gradients only where the row does not time each."""
    cells = row.cells
    kind = cells["layer_type"]
    if kind not in LAYERS:
        raise Refused(f"layer type {kind!r} is not modelled" if kind else "layers without a type, such as data, are not modelled")
    how = row.conditions("latency_s")
    ran = row.ran(how)
    apart = bool(cells.get("bwd_data_ms") or cells.get("bwd_filter_ms"))
    fields = {**cells, "source": row.source}
    times = {column: float(cells[column]) for column, phases in PHASES.items() if cells.get(column)
             and not (column == "bwd_total_ms" and apart) and (phases == (FORWARD,) or kind in WITH_GRADIENTS)}  # fmt: skip
    if not all(times.values()):
        raise Refused("the measured time is below what the timer tells apart")
    for column, time_ms in times.items():
        ops = [LAYERS[kind](cells, phase) for phase in PHASES[column]]
        task = "backward" if PHASES[column] != (FORWARD,) else "forward" if kind in TRAINED else "inference"
        yield row.case(how, ran, kind.lower(), "latency_s", time_ms * 1e-3, *ops, task=task, batch=integer(cells, "N"),
                       fields={**fields, "timed": column})  # fmt: skip


def read_product(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row: a product of two tensors, or a convolution alone, without what reorders its tensors.

    Operands are there from the repetition before.
    """
    cells, how = row.cells, row.conditions("latency_s")
    if cells["kind"] == "conv":
        side, window = integer(cells, "h"), integer(cells, "kernel")
        built = conv(
            image=(integer(cells, "batch"), integer(cells, "cin"), side, side), filters=integer(cells, "cout"),
            window=(window, window), stride=(integer(cells, "stride"),) * 2, pad=(integer(cells, "pad"),) * 2,
            groups=integer(cells, "groups", 1), bias=False,
        )  # fmt: skip
    elif cells["kind"] == "sgemm":
        m, n, k = (integer(cells, name) for name in ("m", "n", "k"))
        built = forward(Matmul(), (1, m, n), (1, m, k), (1, k, n))
    else:
        raise Refused(f"no kind {cells['kind']!r}; there are sgemm, conv")
    clocks = [float(cells[name]) for name in ("clock_before_ghz", "clock_after_ghz") if cells.get(name)]
    yield row.case(
        how, row.ran(how), cells["kind"], "latency_s", float(cells.get("conv_node_seconds") or cells["seconds_min"]), built,
        batch=integer(cells, "batch", 1), threads=integer(cells, "threads", 1), clock=max(clocks) * 1e9 if clocks else None,
    )  # fmt: skip


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


def _scores(cells: Cells, phase: str) -> BoundOp:
    n, c, h, w = _image(cells)
    return forward(Softmax(), (n * h * w, c), (n * h * w, c))


LAYERS: dict[str, Callable[[Cells, str], BoundOp]] = {
    "CONVOLUTION": _convolution, "INNERPRODUCT": _inner_product, "POOLING": _pooling, "CONCAT": _concat,
    "RELU": _same(Relu()), "LRN": _same(Lrn()), "SOFTMAX": _scores, "DROPOUT": _same(Dropout(training=True)),
}  # fmt: skip
TRAINED = ("DROPOUT",)  # `caffe time` runs the net of the training phase, in which this layer has work to do
WITH_GRADIENTS = ("CONVOLUTION", "INNERPRODUCT")
