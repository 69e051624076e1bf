"""A profile beside the prediction of the same run: op by op, kernel by kernel, and what the gap between the totals is made of.

    measured - predicted = (idle - predicted wait for the host) - overlap of kernels
                           + sum over ops of (measured - predicted) + kernels and calls without a prediction

measured: from the first kernel (or call, on a CPU) of the run to the end of the last [s]
idle: time of it in which nothing ran on the device [s]
Each term is charged to one named cause (`archsim.study.profile_gap`); the causes add up to the gap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from archsim.base.errors import ArgumentError
from archsim.base.record import Answer, by_key
from archsim.device.variant import device_fields
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request, make_request
from archsim.estimation.result import Estimate, OpEstimate
from archsim.study.profile_gap import GapCause, MeasuredKernel, NotMatched, PredictedKernel, ProfiledOp, TimelinePiece, gap_of
from archsim.trace.file import hold
from archsim.trace.profiles.network import ProfiledNetwork, network_of
from archsim.trace.profiles.reader import read
from archsim.trace.profiles.record import Profile, ProfiledCall
from archsim.trace.trace import Trace

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
    predicted = by_key((next((f for f, _, kinds in FAMILIES if op.kind in kinds), REST), op) for op in result.ops)
    measured = by_key((family_of_kernel(kernel.name), kernel) for kernel in profile.kernels if not kernel.copy)
    first = profile.kernels[0].start_s
    rows = [_row(name, ops, own, own, kind=name, start_s=own[0].start_s - first)
            for name, ops in predicted.items() if (own := measured.get(name))]  # fmt: skip
    missed = _unmatched(((kernel.name, "copy"), kernel.duration_s) for kernel in profile.kernels if kernel.copy)
    missed += _unmatched(((name, "the network has no op of this family"), kernel.duration_s)
                         for name, each in measured.items() if name not in predicted for kernel in each)  # fmt: skip
    apart = math.fsum(op.time_s - op.wait_s for name, ops in predicted.items() if name not in measured for op in ops)
    return rows, missed, apart


def _row(
    name: str, ops: Sequence[OpEstimate], kernels: Sequence[Any], timed: Sequence[Any], host: bool = False, **own: Any
) -> ProfiledOp:  # fmt: skip
    """A row of ops with their kernels, and with the calls or kernels whose time counts."""
    longest = max(ops, key=lambda op: op.time_s)
    usual = {"kind": next((op.kind for op in ops if op.kind == "attention"), longest.kind), "operators": (), "cause": ""}
    return ProfiledOp(
        name=name, bound=longest.bound, measured_s=math.fsum(one.duration_s for one in timed),
        predicted_s=math.fsum(_time(op, host) for op in ops), flop=math.fsum(op.flop for op in ops),
        kernels=tuple([MeasuredKernel(name=kernel, count=len(each), time_s=math.fsum(each))
                       for kernel, each in by_key((one.name, one.duration_s) for one in kernels).items()]),
        predicted_kernels=tuple([PredictedKernel(name=k.name, role=k.role, time_s=k.time_s) for op in ops for k in op.kernels]),
        **(usual | own),
    )  # fmt: skip


def _unmatched(found: Iterable[tuple[tuple[str, str], float]]) -> list[NotMatched]:
    """What has no prediction, from the name, the reason and the time of each call or kernel."""
    return [NotMatched(name=name, count=len(each), time_s=math.fsum(each), why=why, cause="")
            for (name, why), each in by_key(found).items()]  # fmt: skip


SCHEMA, NSIGHT = "archsim-profile/1", "Nsight Systems"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileComparison(Answer):
    """A profile beside the prediction of its run.

    path, source: the file, and the tool that wrote it
    run_s: time of each recorded run [s], of which `shown` is the one compared, that of the median
    measured_s, predicted_s: of the whole run; busy_s: time in which the device worked, idle_s: the rest
    wait_s: time in which the device is predicted to wait for the host
    gap: what measured - predicted is made of; the causes add up to it, largest first
    not_matched: calls and kernels without a prediction
    """

    path: str
    source: str
    network: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    stack: str
    precision: str
    batch: int
    run_s: tuple[float, ...]
    shown: int
    measured_s: float
    busy_s: float
    idle_s: float
    overlap_s: float
    predicted_s: float
    wait_s: float
    gap: tuple[GapCause, ...]
    ops: tuple[ProfiledOp, ...]
    not_matched: tuple[NotMatched, ...]
    measured_timeline: tuple[TimelinePiece, ...]
    predicted_timeline: tuple[TimelinePiece, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def compare_profile(
    path: str, hw: str, *, net: str | None = None, batch: int | None = None, ran_at: float | None = None, **choices: Any
) -> ProfileComparison:  # fmt: skip
    """The comparison of a profile with a device; `choices` are those of `make_request`, without network, batch and task.

    net, batch: what ran, for a profile that holds kernels alone; others say it themselves
    ran_at: core clock at which the device ran [Hz]; what it changes in the prediction is a cause of its own
    Raises MissingFile, InputError for the file, Unsupported for one without shapes, and what `make_request` raises.
    """
    profile = read(Path(path))
    if net is None and profile.calls == () and profile.source == NSIGHT:
        raise ArgumentError(f"net: {path} holds kernels and no shapes; --net NETWORK [--batch N] says what ran")
    if profile.source != NSIGHT and (net is not None or batch is not None):
        raise ArgumentError(f"net: the network and batch are those of {path}; they are named for kernels of Nsight alone")
    if net is None:
        network = network_of(profile)
        usual = network.trace.dtype if network.trace.dtype != "fp32" else None
        what, asked = hold(network.trace), choices | {"precision": choices.get("precision") or usual}
        if ran_at is not None and choices.get("clock") is not None:
            raise ArgumentError("ran_at: the clock at which the device ran; clock names the one of the prediction: give one of "
                                "them")  # fmt: skip
    else:
        network, what, asked = None, net, choices | {"batch": batch}
    request = make_request(what, hw, **asked)
    if network is None:
        network = ProfiledNetwork(trace=Trace(name=request.network, inputs={}, ops=()), calls={}, left_out=())
    slow = None if ran_at is None else estimate_of(make_request(what, hw, **{**asked, "clock": ran_at}), references=False)
    return compared(profile, network, request, estimate_of(request, references=False), slow)


def compared(
    profile: Profile, network: ProfiledNetwork, request: Request, result: Estimate, slow: Estimate | None = None
) -> ProfileComparison:  # fmt: skip
    """The comparison of a profile with an estimate of its network; `slow` is that at the clock at which it ran."""
    host = not profile.kernels
    if profile.source == NSIGHT:
        ops, missed, apart = family_rows(profile, result)
    else:
        ops, apart = _ops(profile, network, result, host)
        missed = _missed(profile, network, host)
    spans = [(one.start_s, one.start_s + one.duration_s) for one in (profile.calls if host else profile.kernels)]
    busy, summed = union(spans), math.fsum(end - start for start, end in spans)
    measured = max(end for _, end in spans) - min(start for start, _ in spans)
    wait = 0.0 if host else result.host_wait_s  # the calls of a CPU hold their own dispatch
    causes = gap_of(
        ops=ops, missed=missed, idle_s=measured - busy, wait_s=wait, overlap_s=summed - busy, unmeasured_s=apart,
        at_clock=None if slow is None else {op.name: op.predicted_s for op in (
            family_rows(profile, slow)[0] if profile.source == NSIGHT else _ops(profile, network, slow, host)[0])},
        precision=request.precision,
    )  # fmt: skip
    ops = [replace(one, cause=causes.of_op.get(one.name, "")) for one in ops]
    missed = [replace(one, cause=causes.of_missed.get((one.name, one.why), "")) for one in missed]
    return ProfileComparison(
        path=profile.path, source=profile.source, network=network.trace.name, **device_fields(request.spec),
        stack=request.stack.id, precision=request.precision, batch=request.batch, run_s=profile.run_s, shown=profile.shown,
        measured_s=measured, busy_s=busy, idle_s=measured - busy, overlap_s=summed - busy, predicted_s=result.latency_s,
        wait_s=wait, gap=causes.causes, ops=tuple(ops), not_matched=tuple(missed),
        measured_timeline=_measured(profile, network, host), predicted_timeline=_predicted(result),
        notes=(*profile.notes, *request.notes), warnings=result.warnings,
    )  # fmt: skip


def union(spans: Iterable[tuple[float, float]]) -> float:
    """The time that intervals cover together [s].

    >>> union([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    total, reach = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total


def _op_of(name: str, calls: Mapping[str, tuple[int, ...]]) -> str:
    """The op of the network that one of the estimate is part of: parts of an attention bear its name with a dot behind."""
    while name and name not in calls:
        name = name.rpartition(".")[0]
    return name


def _ops(
    profile: Profile, network: ProfiledNetwork, result: Estimate, host: bool
) -> tuple[list[ProfiledOp], float]:  # fmt: skip
    """The ops with both times, in the order of the calls; and the time predicted for ops without calls [s]."""
    named = [(_op_of(op.name, network.calls), op) for op in result.ops]
    groups = by_key((network.calls[name], (name, op)) for name, op in named if name)
    launched = by_key((kernel.call, kernel) for kernel in profile.kernels)
    found = []
    for group, parts in sorted(groups.items()):
        kernels = [kernel for place in group for kernel in launched.get(place, [])]
        calls = [profile.calls[place] for place in group]
        timed: Sequence[Any] = calls if host else kernels
        found.append(_row(
            parts[-1][0].partition("/")[0], [op for _, op in parts], kernels, timed, host, cause=_within(calls),
            operators=tuple([call.operator for call in calls]),
            start_s=min((one.start_s for one in timed), default=calls[0].start_s),
        ))  # fmt: skip
    return found, sum((_time(op, host) for name, op in named if not name), 0.0)


def _time(op: OpEstimate, host: bool) -> float:
    """What a call of a CPU takes with its dispatch, and the kernels of a GPU without [s]."""
    return op.time_s if host else op.time_s - op.wait_s


def _within(calls: Sequence[ProfiledCall]) -> str:
    """What the calls say of how attention ran: apart, or not at all."""
    inner = {name for call in calls for name in (call.operator, *call.within)}
    return "apart" if len(calls) > 1 or any("attention_math" in name for name in inner) else ""


def _missed(profile: Profile, network: ProfiledNetwork, host: bool) -> list[NotMatched]:
    """Calls and kernels that are part of no op, those that took longest first."""
    why = {one.call: one.why for one in network.left_out}
    inside = {place for group in network.calls.values() for place in group}
    times = [((call.operator, why.get(place, "")), call.duration_s)
             for place, call in enumerate(profile.calls if host else ()) if place not in inside]  # fmt: skip
    for kernel in profile.kernels:
        if kernel.call is None:
            said = "copy" if kernel.copy else "no call is known to have launched it"
            times.append(((kernel.name, said), kernel.duration_s))
        elif kernel.call not in inside:
            times.append(((profile.calls[kernel.call].operator, why.get(kernel.call, "")), kernel.duration_s))
    return sorted(_unmatched(times), key=lambda one: -one.time_s)


def _measured(profile: Profile, network: ProfiledNetwork, host: bool) -> tuple[TimelinePiece, ...]:
    if host:
        op_of = {place: name for name, group in network.calls.items() for place in group}
        return tuple([TimelinePiece(name=op_of.get(place, call.operator), start_s=call.start_s, kind=call.operator,
                                    end_s=call.start_s + call.duration_s, track="measured")
                      for place, call in enumerate(profile.calls)])  # fmt: skip
    first = profile.kernels[0].start_s
    return tuple([
        TimelinePiece(
            name=kernel.name, start_s=kernel.start_s - first, end_s=kernel.start_s + kernel.duration_s - first, track="measured",
            kind="copy" if kernel.copy else "kernel" if kernel.call is None else profile.calls[kernel.call].operator,
        ) for kernel in profile.kernels
    ])  # fmt: skip


def _predicted(result: Estimate) -> tuple[TimelinePiece, ...]:
    """The ops one after the other, each behind its wait for the host."""
    ends = list(accumulate(op.time_s for op in result.ops))
    return tuple([TimelinePiece(name=op.name, start_s=begin + op.wait_s, end_s=end, kind=op.kind, track="predicted")
                  for op, begin, end in zip(result.ops, [0.0, *ends], ends, strict=False) if op.time_s > op.wait_s])  # fmt: skip
