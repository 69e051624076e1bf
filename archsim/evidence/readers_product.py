"""Rows of products and convolutions that one machine ran by themselves, through NumPy and ONNX Runtime."""

from __future__ import annotations

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, integer
from archsim.evidence.kernel_ops import case_of, conv, forward
from archsim.evidence.resolve import Refused, setting
from archsim.evidence.software import stack_of
from archsim.evidence.table import Row
from archsim.trace.op import Matmul

HARDWARE = "epyc_9655"  # where a file does not say: two cores of an EPYC with Zen 5, which names no model


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row: a product of two tensors, or a convolution alone, without what reorders its tensors.

    Operands are there from the repetition before. Refused for a row that its source marks as disturbed.
    """
    cells = row.cells
    if cells.get("accepted") == "0":
        raise Refused("the source marks the row as disturbed")
    library = f"{cells['library']}: {cells['variant']}"
    found = setting(cells.get("hardware") or HARDWARE, stack_of(cells, "products", library), "fp32")
    if cells["kind"] == "conv":
        side, window = integer(cells, "h"), integer(cells, "kernel")
        op = conv(
            image=(integer(cells, "batch"), integer(cells, "cin"), side, side), filters=integer(cells, "cout"),
            window=(window, window), stride=(integer(cells, "stride"),) * 2, pad=(integer(cells, "pad"),) * 2,
            groups=integer(cells, "groups", 1), bias=False,
        )  # fmt: skip
    elif cells["kind"] == "sgemm":
        m, n, k = (integer(cells, name) for name in ("m", "n", "k"))
        op = forward(Matmul(), (1, m, n), (1, m, k), (1, k, n))
    else:
        raise Refused(f"no kind {cells['kind']!r}; there are sgemm, conv")
    clocks = [float(cells[name]) for name in ("clock_before_ghz", "clock_after_ghz") if cells.get(name)]
    return [case_of(
        row, file, found, cells["kind"], "latency_s", float(cells.get("conv_node_seconds") or cells["seconds_min"]), op,
        source="products", batch=integer(cells, "batch", 1),
        threads=integer(cells, "threads", 1), clock=max(clocks) * 1e9 if clocks else None,
    )]  # fmt: skip


FAMILY = Family(
    name="products and convolutions",
    columns=("kind", "library", "variant", "threads", "m", "n", "k", "cin", "cout", "kernel", "seconds_min"),
    words=("kind", "library", "variant"),
    numbers=("seconds_min", "conv_node_seconds", "clock_before_ghz", "clock_after_ghz"),
    whole=("threads", "batch", "m", "n", "k", "groups", "cin", "cout", "h", "kernel", "stride"),
    offsets=("pad",),
    measured=("seconds_min", "conv_node_seconds"),
    read=read,
)
