"""Rows of what was timed alone: single kernels, library calls and layers, each an op with concrete shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from archsim.evidence.case import WATCHED, Case, Skip
from archsim.evidence.resolve import Refused, as_library
from archsim.evidence.row import PublishedRow, integer, parameters
from archsim.trace.huggingface import catalog as models
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, FORWARD
from archsim.trace.op import (
    Add,
    Attention,
    Conv2d,
    Gelu,
    Gru,
    Kind,
    LatentAttention,
    LayerNorm,
    Linear,
    Lstm,
    Matmul,
    Mul,
    Quantise,
    Relu,
    Rnn,
    Shape,
    Softmax,
    Tanh,
)  # fmt: skip
from archsim.trace.trace import BoundOp

Cells = Mapping[str, str]


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


# --------------------------------------------------------------------------------------------------------------- kernels

# element-wise kernels by the source's name: the kind that moves as much, and how many tensors it reads
STREAMS: dict[str, tuple[Kind, int]] = {
    "add": (Add(), 2), "mul": (Mul(), 2), "div": (Mul(), 2), "pow": (Mul(), 2),
    "addu": (Relu(), 1), "mulu": (Relu(), 1), "divu": (Relu(), 1), "relu": (Relu(), 1),
    "powu": (Tanh(), 1), "tanh": (Tanh(), 1), "gelu": (Gelu(), 1),
}  # fmt: skip


# roundings to one byte by the source's name: whether the scale is found first
ROUNDINGS = {"quantize_scale_matrix": False, "quantize_compute_scale": True}
# Latent attention: the model whose sizes rows without any have, and kernels that read the latent vectors of prompts too
LATENT, ABSORBED = "deepseek_v3", ("flash_attention",)


def read_kernel(row: PublishedRow) -> Iterator[Case | Skip]:
    """The case of a row's time, and that of its power where the file has both."""
    cells = row.cells
    op, more = cells["op"], parameters(cells)
    built = kernel_op(cells)
    name = str(more.get("kernel", ""))
    how, latency_s = row.conditions("latency_s", kernel=name), float(cells["latency_us"]) * 1e-6
    ran = row.ran(how)
    yield row.case(how, ran, op, "latency_s", latency_s, built)
    if "energy_uj" not in cells or not cells.get("power_w"):
        return
    how = row.conditions("power_w", kernel=name)
    run_s = (how.meter.rounds or math.inf) * how.calls * latency_s
    if run_s < how.meter.every_s:
        reason = f"its repeats end within {1e3 * run_s:.0f} ms, before the meter's second reading"
        yield Skip(line=row.row.line, reason=f"the power is that before the kernel: {reason}", file=row.file,
                   fields={**cells, "source": row.source})  # fmt: skip
        return
    settled = {} if latency_s >= how.meter.settled_s else {"split": WATCHED}  # the meter's mean has other kernels in it
    yield row.case(how, ran, op, "power_w", float(cells["power_w"]), built, **settled)


def read_clock(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row: the clock at which this kernel repeats at the TDP, whatever the spec's sustained clock is."""
    how = row.conditions("clock_hz")
    ran = row.ran(how)
    yield row.case(how, ran, row.cells["op"], "clock_hz", float(row.cells["clock_mhz"]) * 1e6, kernel_op(row.cells), clock=None,
                   limit=float(ran.spec.device.power.tdp))  # fmt: skip


def kernel_op(cells: Cells) -> BoundOp:
    """The op of a row of a kernel. Refused for one that is not modelled."""
    if cells["op"] not in KERNELS:
        raise Refused(f"op {cells['op']!r} is not modelled")
    return KERNELS[cells["op"]](cells, parameters(cells))


def _gemm(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    m, n, k = (integer(cells, name) for name in ("m", "n", "k"))
    if integer(cells, "batch", 1) > 1:
        return _bmm(cells, more)
    return forward(Linear(bias=cells["sub_op"] == "linear_bias"), (m, n), (m, k))


def _bmm(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    m, n, k = (integer(cells, name) for name in ("m", "n", "k"))
    count = integer(cells, "batch", 1)
    return forward(Matmul(), (count, m, n), (count, m, k), (count, k, n))


def _conv_of_kernel(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    names = ("cin", "hin", "win", "cout", "kh", "kw", "stride", "pad")
    sizes = [more.get(name) for name in names]
    if not all(isinstance(size, int) and 0 <= size <= 1 << 24 for size in sizes):
        raise Refused(f"a convolution needs {', '.join(names)}")
    c, h, w, k, r, s, stride, pad = (int(size) for size in sizes if size is not None)
    return conv(
        image=(integer(cells, "batch", 1), c, h, w), filters=k, window=(r, s), stride=(stride, stride), pad=(pad, pad),
        bias=False,
    )  # fmt: skip


def _elementwise(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    if cells["sub_op"] in ROUNDINGS:
        values = (integer(cells, "m"), integer(cells, "k"))
        return forward(Quantise(dynamic=ROUNDINGS[cells["sub_op"]]), values, values)
    if cells["sub_op"] not in STREAMS:
        raise Refused(f"element-wise op {cells['sub_op']!r} is not modelled")
    kind, inputs = STREAMS[cells["sub_op"]]
    shape = _matrix(cells)
    return forward(kind, shape, *[shape] * inputs)


def _matrix(cells: Cells) -> Shape:
    return (integer(cells, "m"), integer(cells, "n"))


def _latent(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    """Multi-head latent attention, by the sizes of DeepSeek-V3, which the rows of their products have.

    One query, and prompts of SGLang's kernel, attend to the latent vectors themselves; prompts elsewhere to keys and values
    written out for every head, the latter padded to the size of the former.
    """
    sizes = models.find(LATENT).latent
    assert sizes is not None
    n, heads, keys = (integer(cells, name) for name in ("batch", "heads", "seq_kv"))
    queries = 1 if cells["sub_op"] == "mla_decode" else keys
    if queries == 1 or more.get("kernel") in ABSORBED:
        rank, size = sizes.rank, sizes.rank + sizes.turned
        return forward(LatentAttention(heads=heads, rank=rank), (n, queries, heads * rank), (n, queries, heads * size),
                       (n, keys, size))  # fmt: skip
    features = heads * (sizes.plain + sizes.turned)
    seen = (n, keys, features)
    return forward(Attention(heads=heads, causal=True), (n, queries, features), (n, queries, features), seen, seen)


def _attention(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    what = cells["sub_op"]
    if what in ("mla_prefill", "mla_decode"):
        return _latent(cells, more)
    if what not in ("prefill_causal", "decode", "encoder_full"):
        raise Refused(f"{what} is not modelled")
    queries, keys, window = integer(cells, "seq_q"), integer(cells, "seq_kv"), more.get("window", 0)
    if isinstance(window, int) and 0 < window < keys:
        if what == "encoder_full":
            raise Refused("a window of keys on both sides is not modelled")
        keys = window if what == "decode" else keys  # one query sees no further back
    else:
        window = 0
    n, heads, size = (integer(cells, name) for name in ("batch", "heads", "head_dim"))
    shared = integer(cells, "kv_heads", heads)
    causal = what == "prefill_causal"
    kind = Attention(heads=heads, kv_heads=shared, causal=causal or window > 0, window=window)
    seen = (n, keys, shared * size)
    return forward(kind, (n, queries, heads * size), (n, queries, heads * size), seen, seen)


KERNELS: dict[str, Callable[[Cells, Mapping[str, Any]], BoundOp]] = {
    "gemm": _gemm, "bmm": _bmm, "conv": _conv_of_kernel, "elementwise": _elementwise, "attention": _attention,
    "softmax": lambda cells, more: forward(Softmax(), _matrix(cells), _matrix(cells)),
    "layernorm": lambda cells, more: forward(LayerNorm(), _matrix(cells), _matrix(cells)),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- DeepBench

DIRECTIONS = (FORWARD, BACKWARD_DATA, BACKWARD_FILTER)
CELLS = {"LSTM": Lstm, "GRU": Gru, "Vanilla": Rnn}
LAYOUTS = {"NN": BACKWARD_DATA, "NT": BACKWARD_FILTER}  # of A and B; forward has the weights transposed


def read_deepbench(row: PublishedRow) -> Iterator[Case]:
    """The case of the time of a library call, repeated in a loop."""
    cells = row.cells
    what, phase = cells["op"], cells["direction"]
    if what not in DEEPBENCH:
        raise Refused("`archsim simulate allreduce` compares these" if what == "allreduce" else f"op {what!r} is not modelled")
    how = row.conditions("latency_s")
    if phase not in DIRECTIONS:
        raise Refused(f"direction {phase!r} does not say which gradients")
    yield row.case(how, as_library(row.ran(how), what), what, "latency_s", float(cells["time_ms"]) * 1e-3,
                   DEEPBENCH[what](cells, phase), task="inference" if phase == FORWARD else "backward")  # fmt: skip


def _column_major(cells: Mapping[str, str], phase: str) -> BoundOp:
    """C[M, N] = A[M, K] B[K, N], column-major: the product of the phase of a layer that transposes the same operands."""
    m, n, k = (integer(cells, name) for name in ("M", "N", "K"))
    layout = LAYOUTS.get(cells.get("A_trans", "") + cells.get("B_trans", ""), phase)
    shapes = {BACKWARD_DATA: ((n, k), (n, m)), BACKWARD_FILTER: ((k, m), (k, n))}
    return op(Linear(bias=False), layout, *shapes.get(layout, ((n, m), (n, k))))


def _filter(cells: Mapping[str, str], phase: str) -> BoundOp:
    """R is the height of the filter, S its width."""
    n, c, h, w, k, r, s = (integer(cells, name) for name in ("batch", "C", "H", "W", "filters", "R", "S"))
    return conv(
        image=(n, c, h, w), filters=k, window=(r, s), stride=(integer(cells, "stride_h"), integer(cells, "stride_w")),
        pad=(integer(cells, "pad_h"), integer(cells, "pad_w")), bias=False, phase=phase,
    )  # fmt: skip


def _recurrent(cells: Mapping[str, str], phase: str) -> BoundOp:
    """One layer whose input is as wide as its state and added to it without a product (CUDNN_SKIP_INPUT in rnn_bench.cu)."""
    if cells["cell"] not in CELLS:
        raise Refused(f"cell {cells['cell']!r} is not modelled")
    hidden, n, steps = (integer(cells, name) for name in ("hidden", "rnn_batch", "timesteps"))
    return op(CELLS[cells["cell"]](hidden=hidden, biases=2, skip_input=True), phase, (steps, n, hidden), (steps, n, hidden))


DEEPBENCH: dict[str, Callable[[Cells, str], BoundOp]] = {"gemm": _column_major, "conv": _filter, "rnn": _recurrent}
