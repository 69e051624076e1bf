"""The closed form as a surrogate of the cycle model: how far it is from it on random kernels, and both beside published times."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from archsim.calibration.constants import default
from archsim.estimation.fidelity import FITTED, SIMULATED
from archsim.estimation.request import Request
from archsim.evidence.family import shipped_files
from archsim.evidence.readers import read_files
from archsim.trace.trace import BoundOp
from archsim.validation.predict import predict
from archsim.validation.random_kernels import gpus, precisions, random_op, request_on, times

Tell = Callable[[str], None]
KERNELS_OF_MACHINE = 25
SEED = 11
# Keys that random machines scale, which both models read.
SCALED = ("rate.special", "memory.bandwidth", "memory.latency", "l2.size", "l2.bandwidth", "sm.shared_bandwidth")
FACTORS = 0.5, 2.0
MEASURED_OPS = ("gemm", "bmm", "conv", "attention", "softmax", "layernorm", "elementwise")
MEASURED_ROWS = 60  # of each op


@dataclass(frozen=True, slots=True, kw_only=True)
class SurrogateRow:
    """One op on one machine: seconds by the closed form and by the cycle model [s].

    scaled: whether keys of the device were scaled; op: its kind
    """

    hardware: str
    architecture: str
    precision: str
    scaled: bool
    op: str
    closed_s: float
    simulated_s: float

    @property
    def distance(self) -> float:
        """log(closed form / simulated)."""
        return math.log(self.closed_s / self.simulated_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Published times of one op on GPUs beside both models: medians of |predicted / measured - 1|."""

    op: str
    rows: int
    closed: float
    simulated: float


def compare(kernels: int, seed: int = SEED, tell: Tell = lambda text: None) -> list[SurrogateRow]:
    """Random ops on random machines: one half of the machines as they are shipped, the other with keys scaled.

    kernels: in all; seed: of the choice
    """
    rng = random.Random(seed)
    machines = max(1, kernels // KERNELS_OF_MACHINE)
    devices = sorted(gpus())
    found: list[SurrogateRow] = []
    for i in range(machines):
        hw = rng.choice(devices)
        precision = rng.choice(precisions(hw))
        scales = {key: math.exp(rng.uniform(*map(math.log, FACTORS))) for key in rng.sample(SCALED, 2)} if i % 2 else {}
        tell(f"machine {i + 1} of {machines}: {hw}")
        ops = [random_op(rng, precision) for _ in range(KERNELS_OF_MACHINE)]
        found += _compared(request_on(hw, precision, scales), ops, bool(scales))
    return found


def judged(ops: Sequence[str] = MEASURED_OPS, rows: int = MEASURED_ROWS, seed: int = SEED) -> list[Judged]:
    """Which model published times agree with, of a sample of rows that are not kept for tests."""
    cases, _ = read_files(shipped_files())
    found = []
    for op in ops:
        own = [c for c in cases if c.label == op and c.spec.kind == "gpu" and c.fitted and c.metric == "latency_s"]
        sample = random.Random(seed).sample(own, min(rows, len(own)))
        measured = np.array([case.measured for case in sample])
        errors = [float(np.median(np.abs(predict(sample, default(), fidelity) / measured - 1.0)))
                  for fidelity in (FITTED, SIMULATED)]  # fmt: skip
        found.append(Judged(op=op, rows=len(sample), closed=errors[0], simulated=errors[1]))
    return found


def _compared(request: Request, ops: Sequence[BoundOp], scaled: bool) -> list[SurrogateRow]:
    closed, simulated = (times(request, ops, request.calibration, fidelity) for fidelity in (FITTED, SIMULATED))
    return [
        SurrogateRow(hardware=request.spec.identity.id, architecture=request.spec.identity.architecture,
                   precision=request.precision, scaled=scaled, op=op.kind.op, closed_s=float(a), simulated_s=float(b))
        for op, a, b in zip(ops, closed, simulated, strict=True) if a > 0.0 and b > 0.0
    ]  # fmt: skip
