"""Rows of what was timed alone: kernels, library calls, layers inside a framework, each an op with concrete shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from archsim.evidence.case import WATCHED, Case, Skip
from archsim.evidence.row import PublishedRow, Refused, integer, integers, parameters
from archsim.trace import op as kinds
from archsim.trace.huggingface import catalog as models
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, FORWARD
from archsim.trace.op import Kind, Shape
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


def conv(sizes: Sequence[int], bias: bool = True, phase: str = FORWARD) -> BoundOp:
    """A convolution by its sizes: N, C, H, W, filters; height and width of window, stride, pad; groups. The output's follow."""
    n, c, h, w, filters, r, s, down, across, top, left, groups = sizes
    if min(r, s, down, across, groups) < 1:
        raise Refused("a convolution has no window or no stride")
    kind = kinds.Conv2d(kernel=(r, s), stride=(down, across), pad=(top, left), groups=groups, bias=bias)
    try:
        out = kind.shape(((n, c, h, w),), (n, filters, 0, 0))
    except ValueError as error:
        raise Refused(f"convolution {error}") from None
    return op(kind, phase, out, (n, c, h, w))


def product(count: int, m: int, n: int, k: int) -> BoundOp:
    """Products of `count` pairs of matrices."""
    return forward(kinds.Matmul(), (count, m, n), (count, m, k), (count, k, n))


# --------------------------------------------------------------------------------------------------------------- kernels

# element-wise kernels by the source's name: the kind that moves as much, and how many tensors it reads
STREAMS: dict[str, tuple[Kind, int]] = {
    "add": (kinds.Add(), 2), "mul": (kinds.Mul(), 2), "div": (kinds.Mul(), 2), "pow": (kinds.Mul(), 2),
    "addu": (kinds.Relu(), 1), "mulu": (kinds.Relu(), 1), "divu": (kinds.Relu(), 1), "relu": (kinds.Relu(), 1),
    "powu": (kinds.Tanh(), 1), "tanh": (kinds.Tanh(), 1), "gelu": (kinds.Gelu(), 1),
}  # fmt: skip
# roundings to one byte by the source's name: whether the scale is found first
ROUNDINGS = {"quantize_scale_matrix": False, "quantize_compute_scale": True}
CONV_SIZES = ("cin", "hin", "win", "cout", "kh", "kw", "stride", "pad")
# Latent attention: the model whose sizes rows without any have, and the kernel that reads the latent vectors of prompts too
LATENT, ABSORBED = "deepseek_v3", "flash_attention"


def read_kernel(row: PublishedRow) -> Iterator[Case | Skip]:
    """The case of a row's time, and that of its power where the file has both."""
    cells = row.cells
    op, kernel, built = cells["op"], str(parameters(cells).get("kernel", "")), kernel_op(cells)
    how, latency_s = row.conditions("latency_s", kernel=kernel), float(cells["latency_us"]) * 1e-6
    ran = row.ran(how)
    yield row.case(op, "latency_s", latency_s, built, how=how, ran=ran)
    if "energy_uj" not in cells or not cells.get("power_w"):
        return
    how = row.conditions("power_w", kernel=kernel)
    run_s = (how.meter.rounds or math.inf) * how.calls * latency_s
    if run_s < how.meter.every_s:
        reason = f"its repeats end within {1e3 * run_s:.0f} ms, before the meter's second reading"
        yield Skip(line=row.line, reason=f"the power is that before the kernel: {reason}", file=row.file,
                   fields={**cells, "source": row.source})  # fmt: skip
        return
    settled = {} if latency_s >= how.meter.settled_s else {"split": WATCHED}  # the meter's mean has other kernels in it
    yield row.case(op, "power_w", float(cells["power_w"]), built, how=how, ran=ran, **settled)


def read_clock(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row: the clock at which this kernel repeats at the TDP, whatever the spec's sustained clock is."""
    how = row.conditions("clock_hz")
    ran = row.ran(how)
    yield row.case(row.cells["op"], "clock_hz", float(row.cells["clock_mhz"]) * 1e6, kernel_op(row.cells), how=how, ran=ran,
                   clock=None, limit=float(ran.spec.device.power.tdp))  # fmt: skip


def kernel_op(cells: Cells) -> BoundOp:
    """The op of a row of a kernel. Refused for one that is not modelled."""
    if cells["op"] not in KERNELS:
        raise Refused(f"op {cells['op']!r} is not modelled")
    return KERNELS[cells["op"]](cells)


def _gemm(cells: Cells) -> BoundOp:
    m, n, k, count = integers(cells, "m n k batch=1")
    if count > 1:
        return product(count, m, n, k)
    return forward(kinds.Linear(bias=cells["sub_op"] == "linear_bias"), (m, n), (m, k))


def _conv_of_kernel(cells: Cells) -> BoundOp:
    sizes = {name: parameters(cells).get(name) for name in CONV_SIZES}
    if not all(isinstance(size, int) and 0 <= size <= 1 << 24 for size in sizes.values()):
        raise Refused(f"a convolution needs {', '.join(CONV_SIZES)}")
    words = {**cells, **{name: str(size) for name, size in sizes.items()}}
    return conv(integers(words, "batch=1 cin hin win cout kh kw stride stride pad pad groups=1"), bias=False)


def _elementwise(cells: Cells) -> BoundOp:
    if cells["sub_op"] in ROUNDINGS:
        values = integers(cells, "m k")
        return forward(kinds.Quantise(dynamic=ROUNDINGS[cells["sub_op"]]), values, values)
    if cells["sub_op"] not in STREAMS:
        raise Refused(f"element-wise op {cells['sub_op']!r} is not modelled")
    kind, inputs = STREAMS[cells["sub_op"]]
    return _on_matrix(kind, cells, inputs)


def _on_matrix(kind: Kind, cells: Cells, inputs: int = 1) -> BoundOp:
    shape = integers(cells, "m n")
    return forward(kind, shape, *[shape] * inputs)


def _latent(cells: Cells) -> BoundOp:
    """Multi-head latent attention, by the sizes of DeepSeek-V3, which the rows of their products have.

    One query, and prompts of SGLang's kernel, attend to the latent vectors themselves; prompts elsewhere to keys and values
    written out for every head, the latter padded to the size of the former.
    """
    sizes = models.find(LATENT).latent
    assert sizes is not None
    n, heads, keys = integers(cells, "batch heads seq_kv")
    queries = 1 if cells["sub_op"] == "mla_decode" else keys
    if queries == 1 or parameters(cells).get("kernel") == ABSORBED:
        rank, size = sizes.rank, sizes.rank + sizes.turned
        return forward(kinds.LatentAttention(heads=heads, rank=rank), (n, queries, heads * rank), (n, queries, heads * size),
                       (n, keys, size))  # fmt: skip
    seen = (n, keys, heads * (sizes.plain + sizes.turned))
    return forward(kinds.Attention(heads=heads, causal=True), seen, seen, seen, seen)


def _attention(cells: Cells) -> BoundOp:
    what = cells["sub_op"]
    if what in ("mla_prefill", "mla_decode"):
        return _latent(cells)
    if what not in ("prefill_causal", "decode", "encoder_full"):
        raise Refused(f"{what} is not modelled")
    queries, keys = integers(cells, "seq_q seq_kv")
    window = parameters(cells).get("window", 0)
    if isinstance(window, int) and 0 < window < keys:
        if what == "encoder_full":
            raise Refused("a window of keys on both sides is not modelled")
        keys = window if what == "decode" else keys  # one query sees no further back
    else:
        window = 0
    n, heads, size = integers(cells, "batch heads head_dim")
    shared = integer(cells, f"kv_heads={heads}")
    kind = kinds.Attention(heads=heads, kv_heads=shared, causal=what == "prefill_causal" or window > 0, window=window)
    seen = (n, keys, shared * size)
    return forward(kind, (n, queries, heads * size), (n, queries, heads * size), seen, seen)


KERNELS: dict[str, Callable[[Cells], BoundOp]] = {
    "gemm": _gemm, "conv": _conv_of_kernel, "elementwise": _elementwise, "attention": _attention,
    "bmm": lambda cells: product(*integers(cells, "batch=1 m n k")),
    "softmax": lambda cells: _on_matrix(kinds.Softmax(), cells),
    "layernorm": lambda cells: _on_matrix(kinds.LayerNorm(), cells),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- DeepBench

DIRECTIONS = (FORWARD, BACKWARD_DATA, BACKWARD_FILTER)
CELLS = {"LSTM": kinds.Lstm, "GRU": kinds.Gru, "Vanilla": kinds.Rnn}
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
    yield row.case(what, "latency_s", float(cells["time_ms"]) * 1e-3, DEEPBENCH[what](cells, phase), how=how,
                   ran=row.ran(how, library=what), task="inference" if phase == FORWARD else "backward")  # fmt: skip


def _column_major(cells: Cells, phase: str) -> BoundOp:
    """C[M, N] = A[M, K] B[K, N], column-major: the product of the phase of a layer that transposes the same operands."""
    m, n, k = integers(cells, "M N K")
    layout = LAYOUTS.get(cells.get("A_trans", "") + cells.get("B_trans", ""), phase)
    shapes = {BACKWARD_DATA: ((n, k), (n, m)), BACKWARD_FILTER: ((k, m), (k, n))}
    return op(kinds.Linear(bias=False), layout, *shapes.get(layout, ((n, m), (n, k))))


def _filter(cells: Cells, phase: str) -> BoundOp:
    """R is the height of the filter, S its width."""
    return conv(integers(cells, "batch C H W filters R S stride_h stride_w pad_h pad_w groups=1"), bias=False, phase=phase)


def _recurrent(cells: Cells, phase: str) -> BoundOp:
    """One layer whose input is as wide as its state and added to it without a product (CUDNN_SKIP_INPUT in rnn_bench.cu)."""
    if cells["cell"] not in CELLS:
        raise Refused(f"cell {cells['cell']!r} is not modelled")
    hidden, n, steps = integers(cells, "hidden rnn_batch timesteps")
    return op(CELLS[cells["cell"]](hidden=hidden, biases=2, skip_input=True), phase, (steps, n, hidden), (steps, n, hidden))


DEEPBENCH: dict[str, Callable[[Cells, str], BoundOp]] = {"gemm": _column_major, "conv": _filter, "rnn": _recurrent}


# ------------------------------------------------------------------------------------------- products and convolutions


def read_product(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row: a product of two tensors, or a convolution alone, without what reorders its tensors.

    Operands are there from the repetition before.
    """
    cells = row.cells
    if cells["kind"] == "conv":
        built = conv(integers(cells, "batch cin h h cout kernel kernel stride stride pad pad groups=1"), bias=False)
    elif cells["kind"] == "sgemm":
        built = product(1, *integers(cells, "m n k"))
    else:
        raise Refused(f"no kind {cells['kind']!r}; there are sgemm, conv")
    clocks = [float(cells[name]) for name in ("clock_before_ghz", "clock_after_ghz") if cells.get(name)]
    yield row.case(
        cells["kind"], "latency_s", float(cells.get("conv_node_seconds") or cells["seconds_min"]), built,
        batch=integer(cells, "batch=1"), threads=integer(cells, "threads=1"), clock=max(clocks) * 1e9 if clocks else None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- layers in a framework

# column -> the phases that it times together
PHASES: dict[str, tuple[str, ...]] = {
    "fwd_ms": (FORWARD,), "bwd_data_ms": (BACKWARD_DATA,), "bwd_filter_ms": (BACKWARD_FILTER,),
    "bwd_total_ms": (BACKWARD_DATA, BACKWARD_FILTER),
}  # fmt: skip


def read_layer(row: PublishedRow) -> Iterator[Case]:
    """One case for each time of a row; the sum of both gradients only where the row does not time each."""
    cells = row.cells
    kind = cells["layer_type"]
    if kind not in LAYERS:
        raise Refused(f"layer type {kind!r} is not modelled" if kind else "layers without a type, such as data, are not modelled")
    how = row.conditions("latency_s")
    ran = row.ran(how)
    apart = bool(cells.get("bwd_data_ms") or cells.get("bwd_filter_ms"))
    times = {column: float(cells[column]) for column, phases in PHASES.items() if cells.get(column)
             and not (column == "bwd_total_ms" and apart) and (phases == (FORWARD,) or kind in WITH_GRADIENTS)}  # fmt: skip
    if not all(times.values()):
        raise Refused("the measured time is below what the timer tells apart")
    for column, time_ms in times.items():
        ops = [LAYERS[kind](cells, phase) for phase in PHASES[column]]
        task = "backward" if column != "fwd_ms" else "forward" if kind in TRAINED else "inference"
        yield row.case(kind.lower(), "latency_s", time_ms * 1e-3, *ops, how=how, ran=ran, task=task, batch=integer(cells, "N"),
                       fields={**cells, "source": row.source, "timed": column})  # fmt: skip


def _image(cells: Cells) -> Shape:
    return integers(cells, "N C H=1 W=1")


def _inner_product(cells: Cells, phase: str) -> BoundOp:
    n, *features = _image(cells)
    return op(kinds.Linear(), phase, (n, integer(cells, "K")), (n, math.prod(features)))


def _pooling(cells: Cells, phase: str) -> BoundOp:
    """The mean over a window that is the whole plane, or where the layer's name has "ave"; otherwise the maximum.

    Whether a last, partial window counts follows from the size of the output.
    """
    image, window = _image(cells), integers(cells, "R S")
    if window == image[2:]:
        return forward(kinds.GlobalAvgPool(), (*image[:2], 1, 1), image)
    out = (*image[:2], *integers(cells, "out_h out_w"))
    down, across, top, left = integers(cells, "stride_h=1 stride_w=1 pad_h=0 pad_w=0")
    pool = kinds.AvgPool if "ave" in cells.get("layer", "").lower() else kinds.MaxPool
    full, partial = (pool(kernel=(window[0], window[1]), stride=(down, across), pad=(top, left), ceil_mode=partial)
                     for partial in (False, True))  # fmt: skip
    return forward(full if full.shape((image,), out) == out else partial, out, image)


def _concat(cells: Cells, phase: str) -> BoundOp:
    """As many values in two parts: the source does not record the shapes that are joined."""
    n, c, h, w = _image(cells)
    return forward(kinds.Concat(), (n, c, h, w), (n, c - c // 2, h, w), *([(n, c // 2, h, w)] if c > 1 else []))


def _on_image(kind: Kind) -> Callable[[Cells, str], BoundOp]:
    return lambda cells, phase: forward(kind, _image(cells), _image(cells))


def _scores(cells: Cells, phase: str) -> BoundOp:
    n, c, h, w = _image(cells)
    return forward(kinds.Softmax(), (n * h * w, c), (n * h * w, c))


LAYER_SIZES = "N C H=1 W=1 K R S stride_h=1 stride_w=1 pad_h=0 pad_w=0 groups=1"
LAYERS: dict[str, Callable[[Cells, str], BoundOp]] = {
    "CONVOLUTION": lambda cells, phase: conv(integers(cells, LAYER_SIZES), phase=phase),
    "INNERPRODUCT": _inner_product, "POOLING": _pooling, "CONCAT": _concat,
    "RELU": _on_image(kinds.Relu()), "LRN": _on_image(kinds.Lrn()), "SOFTMAX": _scores,
    "DROPOUT": _on_image(kinds.Dropout(training=True)),
}  # fmt: skip
TRAINED = ("DROPOUT",)  # `caffe time` runs the net of the training phase, in which this layer has work to do
WITH_GRADIENTS = ("CONVOLUTION", "INNERPRODUCT")
