"""Kernels of a profile without calls beside a network: by families, since nothing says which op launched which kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from archsim.estimation.result import Estimate, OpEstimate
from archsim.study.profile_rows import MeasuredKernel, NotMatched, PredictedKernel, ProfiledOp
from archsim.trace.profiles.record import Profile

# family -> names of kernels, and kinds of ops; the first that fits
FAMILIES: tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...] = (
    ("attention", re.compile(r"flash|fmha|attention", re.I), ("attention",)),
    ("products", re.compile(r"gemm|gemv|conv|cutlass|xmma|winograd|splitk|implicit", re.I),
     ("conv2d", "linear", "matmul", "conv_transpose2d", "lstm")),
    ("normalisation and softmax", re.compile(r"norm|softmax|bn_", re.I), ("batch_norm", "layer_norm", "rms_norm", "softmax")),
    ("pooling", re.compile(r"pool", re.I), ("max_pool", "avg_pool", "global_avg_pool")),
)  # fmt: skip
REST = "pointwise and other"


def family_of_kernel(name: str) -> str:
    """The family of a kernel by its name.

    >>> family_of_kernel("sm80_xmma_gemm_f16f16"), family_of_kernel("at::native::vectorized_elementwise_kernel")
    ('products', 'pointwise and other')
    """
    return next((family for family, form, _ in FAMILIES if form.search(name)), REST)


def family_rows(profile: Profile, result: Estimate) -> tuple[list[ProfiledOp], list[NotMatched], float]:
    """A row for each family that has both, what has no prediction, and the time of ops without kernels [s]."""
    predicted: dict[str, list[OpEstimate]] = {}
    for op in result.ops:
        predicted.setdefault(next((f for f, _, kinds in FAMILIES if op.kind in kinds), REST), []).append(op)
    measured: dict[str, list[Any]] = {}
    copies: dict[str, list[float]] = {}
    for kernel in profile.kernels:
        if kernel.copy:
            copies.setdefault(kernel.name, []).append(kernel.duration_s)
        else:
            measured.setdefault(family_of_kernel(kernel.name), []).append(kernel)
    rows = [_row(name, measured[name], ops, profile.kernels[0].start_s) for name, ops in predicted.items() if name in measured]
    missed = [NotMatched(name=name, count=len(each), time_s=math.fsum(each), why="copy", cause="")
              for name, each in copies.items()]  # fmt: skip
    missed += [NotMatched(name=name, count=len(each), time_s=math.fsum(kernel.duration_s for kernel in each), cause="",
                          why="the network has no op of this family") for name, each in measured.items() if name not in predicted]
    apart = math.fsum(op.time_s - op.wait_s for name, ops in predicted.items() if name not in measured for op in ops)
    return rows, missed, apart


def _row(name: str, kernels: Sequence[Any], ops: Sequence[OpEstimate], origin_s: float) -> ProfiledOp:
    times: dict[str, list[float]] = {}
    for kernel in kernels:
        times.setdefault(kernel.name, []).append(kernel.duration_s)
    longest = max(ops, key=lambda op: op.time_s)
    return ProfiledOp(
        name=name, kind=name, operators=(), start_s=kernels[0].start_s - origin_s, bound=longest.bound, cause="",
        measured_s=math.fsum(kernel.duration_s for kernel in kernels), predicted_s=math.fsum(op.time_s - op.wait_s for op in ops),
        flop=math.fsum(op.flop for op in ops),
        kernels=tuple([MeasuredKernel(name=each, count=len(t), time_s=math.fsum(t)) for each, t in times.items()]),
        predicted_kernels=tuple([PredictedKernel(name=k.name, role=k.role, time_s=k.time_s) for op in ops for k in op.kernels]),
    )  # fmt: skip
