"""Rows of DeepBench: products, convolutions and recurrent layers, library calls repeated in a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, integer
from archsim.evidence.kernel_ops import case_of, conv, op
from archsim.evidence.resolve import Refused, as_library, device, setting
from archsim.evidence.software import stack_of
from archsim.evidence.table import Row
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, FORWARD
from archsim.trace.op import Gru, Linear, Lstm, Rnn
from archsim.trace.trace import BoundOp

# cuDNN 5 multiplies halves as halves wherever the chip can, whatever a sheet is called: the products of these rows
# reach 16 TFLOP/s on a P100, whose single precision ends at 9.5.
AS_HALF = {"fp16 storage (pseudo fp16)": "fp16"}
DIRECTIONS = (FORWARD, BACKWARD_DATA, BACKWARD_FILTER)
CELLS = {"LSTM": Lstm, "GRU": Gru, "Vanilla": Rnn}
LAYOUTS = {"NN": BACKWARD_DATA, "NT": BACKWARD_FILTER}  # of A and B; forward has the weights transposed


def read(row: Row, file: str) -> list[Case | Skip]:
    """The case of a row's time."""
    cells = row.cells
    what, phase = cells["op"], cells["direction"]
    if what not in BUILDERS:
        raise Refused("`archsim simulate allreduce` compares these" if what == "allreduce" else f"op {what!r} is not modelled")
    if cells.get("suspicious"):
        raise Refused("marked as misprinted in its source")
    if phase not in DIRECTIONS:
        raise Refused(f"direction {phase!r} does not say which gradients")
    built = BUILDERS[what](cells, phase)
    hardware = device(cells["hardware"]).identity.id
    written = cells["precision"]
    precision = AS_HALF.get(written, written) if what == "conv" else written
    found = as_library(setting(hardware, stack_of(cells, "deepbench", f"{hardware} {what}"), precision, 1), what)
    return [case_of(row, file, found, what, "latency_s", float(cells["time_ms"]) * 1e-3, built,
                    task="inference" if phase == FORWARD else "backward")]  # fmt: skip


def _gemm(cells: Mapping[str, str], phase: str) -> BoundOp:
    """C[M, N] = A[M, K] B[K, N], column-major: the product of the phase of a layer that transposes the same operands."""
    m, n, k = (integer(cells, name) for name in ("M", "N", "K"))
    layout = LAYOUTS.get(cells.get("A_trans", "") + cells.get("B_trans", ""), phase)
    shapes = {BACKWARD_DATA: ((n, k), (n, m)), BACKWARD_FILTER: ((k, m), (k, n))}
    return op(Linear(bias=False), layout, *shapes.get(layout, ((n, m), (n, k))))


def _conv(cells: Mapping[str, str], phase: str) -> BoundOp:
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


BUILDERS: dict[str, Callable[[Mapping[str, str], str], BoundOp]] = {"gemm": _gemm, "conv": _conv, "rnn": _recurrent}

FAMILY = Family(
    name="DeepBench",
    columns=("source_id", "op", "precision", "M", "N", "K", "W", "H", "C", "cell", "direction", "time_ms", "hardware"),
    words=("source_id", "op", "precision", "hardware"),
    numbers=("time_ms",),
    whole=("M", "N", "K", "W", "H", "C", "batch", "filters", "R", "S", "stride_h", "stride_w", "hidden", "rnn_batch",
           "timesteps"),
    offsets=("pad_h", "pad_w"),
    measured=("time_ms",),
    read=read,
)  # fmt: skip
