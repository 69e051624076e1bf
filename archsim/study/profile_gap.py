"""The rows of a profile beside its prediction, and what the gap between them is made of, by named causes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archsim.base.record import by_key
from archsim.cost.bounds import BOUNDS

# ----------------------------------------------------------------------------------------------------------------- rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernel:
    """Kernels of one name: how often they ran in the run, and for how long together [s]."""

    name: str
    count: int
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedKernel:
    """A kernel that the stack would launch, and its time [s]."""

    name: str
    role: str
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledOp:
    """One op of the network, with the calls that it stands for.

    measured_s: its kernels, or its calls where there are no kernels; predicted_s: of a GPU without waits for the host
    start_s: when its first kernel or call began, from the start of the run
    bound: what limits it in the prediction
    """

    name: str
    kind: str
    operators: tuple[str, ...]
    start_s: float
    measured_s: float
    predicted_s: float
    bound: str
    flop: float
    kernels: tuple[MeasuredKernel, ...]
    predicted_kernels: tuple[PredictedKernel, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMatched:
    """Calls or kernels of one name that no op of the network stands for, and why."""

    name: str
    count: int
    time_s: float
    why: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePiece:
    """An interval on one of the two timelines [s]."""

    name: str
    start_s: float
    end_s: float
    kind: str
    track: str


# -------------------------------------------------------------------------------------------------------------- the gap

HOST, OVERLAP, CLOCK = "host gaps", "kernels that overlap", "clock"
ATTENTION, PRECISION, LAYOUT, POINTWISE = ("attention not fused", "precision", "layout and type conversions",
                                           "pointwise ops not fused")  # fmt: skip
COPIES, COMMUNICATION, UNKNOWN, UNMEASURED = ("copies", "communication", "ops without a prediction",
                                              "predicted, not measured")  # fmt: skip
VIEWED, OTHER = "views", "other"
LIMITED = "took longer than predicted (above zero) or less"
SAYS = {
    HOST: "the device is idle between kernels, more than predicted: launches, Python, synchronisation",
    OVERLAP: "kernels of several streams run at once",
    CLOCK: "the device ran at the clock that --ran-at names",
    ATTENTION: "run as products around a softmax, where the stack has one kernel",
    PRECISION: "products run in another arithmetic than the prediction, by the names of their kernels",
    LAYOUT: "kernels that only move values: transpositions, copies into another layout or type",
    POINTWISE: "kernels of their own, which the stack merges into the op before",
    COPIES: "copies between host and device, and fills, of which the network knows nothing",
    COMMUNICATION: "collective operations of several devices",
    UNKNOWN: "calls and kernels that no op of the network stands for",
    UNMEASURED: "ops that are predicted and have no call in the profile",
    VIEWED: "calls that only change how a tensor is seen: dispatch alone",
}  # fmt: skip
MOVES = re.compile(r"nchwToNhwc|nhwcToNchw|transpose|copy_kernel|_to_copy|cat_?array|reorder|convert_?tensor|permute|"
                   r"direct_copy|float16_copy|bfloat16_copy", re.IGNORECASE)  # fmt: skip
SENDS = re.compile(r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter", re.IGNORECASE)
COPIED = re.compile(r"^Mem(cpy|set)|\[CUDA mem(cpy|set)", re.IGNORECASE)
PRODUCTS = ("conv2d", "linear", "matmul", "attention", "conv_transpose2d", "lstm")
# arithmetic of a product by the name of its kernel; the first that matches. cuBLAS, cuDNN and CUTLASS name their kernels so.
ARITHMETIC = (
    ("tf32", re.compile(r"tf32|s1688|tensorop_s\d+")), ("bf16", re.compile(r"bf16|bfloat16")),
    ("fp16", re.compile(r"f16f16|h(884|1688|16816)|_h_|hgemm|half|fp16|f16_")), ("int8", re.compile(r"i8816|i16832|int8|imma")),
    ("fp32", re.compile(r"sgemm|ffma|scudnn|simt_s|f32f32_f32f32|winograd_\w*32|fp32")),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GapCause:
    """A named part of measured - predicted [s]; below zero where the run was faster. `ops`: how many ops or names it has."""

    name: str
    time_s: float
    ops: int
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GapCauses:
    """All parts, largest first, with the causes of ops by name and of what was not matched."""

    causes: tuple[GapCause, ...]
    of_op: Mapping[str, str]
    of_missed: Mapping[tuple[str, str], str]


def gap_of(
    *, ops: Sequence[ProfiledOp], missed: Sequence[NotMatched], idle_s: float, wait_s: float, overlap_s: float,
    unmeasured_s: float, at_clock: Mapping[str, float] | None, precision: str,
) -> GapCauses:  # fmt: skip
    """The causes, which add up to measured - predicted.

    at_clock: what is predicted of each op at the clock at which the device ran [s]; None where nobody says that clock. What
        it adds is the clock's part, and not the op's own.
    """
    parts = [(HOST, idle_s - wait_s)]
    parts += [(name, -time_s) for name, time_s in ((OVERLAP, overlap_s), (UNMEASURED, unmeasured_s)) if time_s > 0]
    of_op: dict[str, str] = {}
    for op in ops:
        moved = math.fsum(kernel.time_s for kernel in op.kernels if MOVES.search(kernel.name))
        rest = op.measured_s - op.predicted_s
        if moved and moved < op.measured_s:
            parts.append((LAYOUT, moved))
            rest -= moved
        if at_clock is not None:
            slower = at_clock.get(op.name, op.predicted_s) - op.predicted_s
            parts.append((CLOCK, slower))
            rest -= slower
        of_op[op.name] = cause_of(op, precision, wholly_moved=bool(moved) and moved >= op.measured_s)
        parts.append((of_op[op.name], rest))
    of_missed = {(one.name, one.why): cause_of_missed(one) for one in missed}
    parts += [(of_missed[one.name, one.why], one.time_s) for one in missed]
    causes = [GapCause(name=name, time_s=math.fsum(each), ops=len(each), says=SAYS.get(name, LIMITED))
              for name, each in by_key(parts).items()]  # fmt: skip
    causes.sort(key=lambda cause: -abs(cause.time_s))
    return GapCauses(causes=tuple(causes), of_op=of_op, of_missed=of_missed)


def cause_of(op: ProfiledOp, precision: str, wholly_moved: bool = False) -> str:
    """Why an op took another time than predicted: the first cause that its kernels and its prediction show."""
    if wholly_moved:
        return LAYOUT
    if op.kind == "attention" and op.cause == "apart":
        return ATTENTION
    if op.predicted_s == 0 and op.measured_s > 0:
        return POINTWISE
    if op.kind in PRODUCTS:
        found = {arithmetic_of(kernel.name) for kernel in op.kernels} - {""}
        if found and precision not in found:
            return PRECISION
    return f"{BOUNDS[op.bound].side if op.bound in BOUNDS else OTHER} ops"


def cause_of_missed(one: NotMatched) -> str:
    """The cause of what has no prediction, by its name and by why it has none."""
    if COPIED.search(one.name) or one.why == "copy":
        return COPIES
    if SENDS.search(one.name):
        return COMMUNICATION
    if "seen" in one.why:
        return VIEWED
    if "layout" in one.why or MOVES.search(one.name):
        return LAYOUT
    return UNKNOWN


def arithmetic_of(name: str) -> str:
    """The arithmetic of a product by the name of its kernel; empty where the name does not say it.

    >>> arithmetic_of("ampere_sgemm_128x64_tn"), arithmetic_of("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n"), arithmetic_of("gemv")
    ('fp32', 'fp16', '')
    """
    return next((precision for precision, form in ARITHMETIC if form.search(name)), "")
