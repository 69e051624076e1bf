"""Rows of single kernels, timed alone: products, convolutions, element-wise kernels, normalisation, softmax and attention."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archsim.device.device import PRECISION_BYTES, Gpu
from archsim.device.spec import Spec
from archsim.evidence.case import WATCHED, Case, Skip
from archsim.evidence.family import Family, integer
from archsim.evidence.kernel_ops import case_of, conv, forward
from archsim.evidence.resolve import PRECISIONS, UNFITTED, Refused, host_cpu, rounded_before, setting
from archsim.evidence.resolve import device as device_of
from archsim.evidence.software import stack_of
from archsim.evidence.sources import protocol
from archsim.evidence.table import Row
from archsim.trace.huggingface import catalog as models
from archsim.trace.op import (
    Add,
    Attention,
    Gelu,
    Kind,
    LatentAttention,
    LayerNorm,
    Linear,
    Matmul,
    Mul,
    Quantise,
    Relu,
    Shape,
    Softmax,
    Tanh,
)  # fmt: skip
from archsim.trace.trace import BoundOp

Cells = Mapping[str, str]
Build = Callable[[Cells, Mapping[str, Any]], BoundOp]

DOUBTFUL = "SUSPECT"  # in the notes of a row whose rate is above the device's peak

# element-wise kernels by the source's name: the kind that moves as much, and how many tensors it reads
STREAMS: dict[str, tuple[Kind, int]] = {
    "add": (Add(), 2), "mul": (Mul(), 2), "div": (Mul(), 2), "pow": (Mul(), 2),
    "addu": (Relu(), 1), "mulu": (Relu(), 1), "divu": (Relu(), 1), "relu": (Relu(), 1),
    "powu": (Tanh(), 1), "tanh": (Tanh(), 1), "gelu": (Gelu(), 1),
}  # fmt: skip


# roundings to one byte by the source's name: whether the scale is found first
ROUNDINGS = {"quantize_scale_matrix": False, "quantize_compute_scale": True}
WHOLE_ROUNDING = ("trtllm-",)  # whose rows with a scale move 5 B a value; those of vLLM less than the 2 B of reading it once

# Latent attention: the model whose sizes rows without any have, and kernels that read the latent vectors of prompts too
LATENT, ABSORBED = "deepseek_v3", ("flash_attention",)
MODULES = "vllm-"  # whose rows have the whole module in them, launched without a graph


def read(row: Row, file: str) -> list[Case | Skip]:
    """The case of a row's time, and that of its power where the file has both."""
    cells = row.cells
    if DOUBTFUL in cells.get("notes", ""):
        raise Refused("marked as faster than the device's peak")
    op, software = cells["op"], cells["software"]
    if op not in BUILDERS:
        raise Refused(f"op {op!r} is not modelled")
    script = protocol(cells["source_id"])
    chip = device_of(cells["hardware"])
    sets = script.sets_of(software, op, cells["dtype"], _filling(cells, chip))
    more = parameters(cells)
    architecture = chip.identity.kernels_of
    words = f"{software} {op} {cells['dtype']} {more.get('kernel', '')} {architecture}"
    found = setting(cells["hardware"], stack_of(cells, "kernels", words), cells["dtype"], sets)
    if script.rounded_before(software, op, cells["dtype"]):
        found = rounded_before(found)
    built = BUILDERS[op](cells, more)
    fields = {**cells, "source": cells["source_id"]}

    device = found.spec.device
    limit = script.power_limit(software, op, cells["dtype"], float(device.power.tdp)) if isinstance(device, Gpu) else None
    once = script.ran_once(software, op, cells["dtype"])

    def case(metric: str, measured: float, split: str) -> Case:
        return case_of(
            row, file, found, op, metric, measured, built, split=split,
            dispatch=script.dispatch(software, cells["dtype"]), ahead=script.ahead(software, cells["dtype"]),
            graph_calls=script.calls_of_graph(software, op, cells["dtype"]), wrappers=script.wrappers(op, cells["sub_op"]),
            host_cpu=host_cpu(script, found.spec), limit=limit if metric == "latency_s" else None,
            clock=float(device.clock.boost) if once else None, events=once, between=script.between(software, cells["dtype"]),
        )  # fmt: skip

    latency_s = float(cells["latency_us"]) * 1e-6
    split = WATCHED if cells["dtype"] in UNFITTED else cells.get("split", "")
    timed = case("latency_s", latency_s, split)
    if "energy_uj" not in cells or not cells.get("power_w"):
        return [timed]
    if script.meter is not None:
        run_s = script.meter.longest_run(op, cells["dtype"], latency_s)
        if run_s < script.meter.every_s:
            before = f"its repeats end within {1e3 * run_s:.0f} ms, before the meter's second reading"
            reason = f"the power is that before the kernel: {before}"
            return [timed, Skip(line=row.line, reason=reason, file=file, fields=fields)]
    if latency_s < script.metered_from_s or f"{op} {cells['dtype']}" in script.unwritten:
        split = WATCHED  # scored, not fitted: the meter's mean has other kernels in it, or operands may be zeros
    return [timed, case("power_w", float(cells["power_w"]), split)]


def _filling(cells: Cells, chip: Spec) -> float:
    """How many matrices of a product's weights are as large as the L2: infinite for other ops, and where either is not known."""
    element = PRECISION_BYTES.get(PRECISIONS.get(cells["dtype"], ""), 0)
    weights = integer(cells, "n", 0) * integer(cells, "k", 0) * element
    return float(np.ravel(chip.device.l2.size)[0]) / weights if weights and isinstance(chip.device, Gpu) else math.inf


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def parameters(cells: Cells) -> Mapping[str, Any]:
    """The JSON object in the column `kernel` or `params`."""
    text = cells.get("kernel") or cells.get("params") or "{}"
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Refused("kernel parameters are not JSON") from None
    if not isinstance(found, dict):
        raise Refused("kernel parameters are no JSON object")
    return found


def _gemm(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    m, n, k = (integer(cells, name) for name in ("m", "n", "k"))
    if integer(cells, "batch", 1) > 1:
        return _bmm(cells, more)
    return forward(Linear(bias=cells["sub_op"] == "linear_bias"), (m, n), (m, k))


def _bmm(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    m, n, k = (integer(cells, name) for name in ("m", "n", "k"))
    count = integer(cells, "batch", 1)
    return forward(Matmul(), (count, m, n), (count, m, k), (count, k, n))


def _conv(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
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
        if ROUNDINGS[cells["sub_op"]] and not cells["software"].startswith(WHOLE_ROUNDING):
            raise Refused("a scale found in less time than its values take to be read is not modelled")
        return forward(Quantise(dynamic=ROUNDINGS[cells["sub_op"]]), values, values)
    if cells["sub_op"] not in STREAMS:
        raise Refused(f"element-wise op {cells['sub_op']!r} is not modelled")
    kind, inputs = STREAMS[cells["sub_op"]]
    shape = _matrix(cells)
    return forward(kind, shape, *[shape] * inputs)


def _softmax(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    return forward(Softmax(), _matrix(cells), _matrix(cells))


def _layernorm(cells: Cells, more: Mapping[str, Any]) -> BoundOp:
    return forward(LayerNorm(), _matrix(cells), _matrix(cells))


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
        if cells["software"].startswith(MODULES):
            raise Refused("a module of Python that the host calls for each latent attention, 0.1 to 0.3 ms, is not modelled")
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


BUILDERS: dict[str, Build] = {
    "gemm": _gemm, "bmm": _bmm, "conv": _conv, "elementwise": _elementwise, "softmax": _softmax, "layernorm": _layernorm,
    "attention": _attention,
}  # fmt: skip

_COLUMNS = ("source_id", "op", "sub_op", "m", "n", "k", "dtype", "software", "latency_us", "hardware")
_SIZES = ("m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv", "elements")

FAMILY = Family(
    name="kernels",
    columns=_COLUMNS,
    words=("source_id", "op", "dtype", "software", "hardware"),
    numbers=("latency_us", "power_w"),
    whole=_SIZES,
    measured=("latency_us",),
    read=read,
)
POWER = Family(
    name="kernels with power",
    columns=(*_COLUMNS, "power_w", "energy_uj"),
    words=FAMILY.words,
    numbers=("latency_us", "power_w", "energy_uj"),
    whole=_SIZES,
    measured=("latency_us",),
    read=read,
)
