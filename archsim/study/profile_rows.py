"""The rows of a profile beside its prediction: ops, kernels, what was not matched, and intervals of the two timelines."""

from __future__ import annotations

from dataclasses import dataclass


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
