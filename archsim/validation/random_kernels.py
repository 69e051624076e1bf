"""Random kernels on GPUs: what they take by the closed form and by the cycle model, and both beside published times."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from archsim.calibration.constants import Calibration, default
from archsim.cost.cost import Array
from archsim.device.catalog import find as find_spec
from archsim.device.catalog import names as device_names
from archsim.device.device import Gpu
from archsim.device.spec import unit_of
from archsim.estimation.fidelity import FITTED, SIMULATED
from archsim.estimation.fidelity import find as find_fidelity
from archsim.estimation.pipeline import lowered_of, priced
from archsim.estimation.request import Request, make_request
from archsim.evidence.op_rows import conv, forward, product
from archsim.evidence.readers import read_files
from archsim.lower.gemm import THIN
from archsim.trace.op import Add, Attention, BatchNorm, LayerNorm, Linear, Softmax
from archsim.trace.trace import BoundOp
from archsim.validation.predict import predict

Tell = Callable[[str], None]
Draw = Callable[[random.Random], BoundOp]
NET = "alexnet"  # of the requests whose device, stack and setting the random ops take


def gpus() -> list[str]:
    """The shipped GPUs, by name."""
    return [name for name in device_names() if find_spec(name).kind == "gpu"]


def gpu(hw: str) -> Gpu:
    """One of them."""
    device = find_spec(hw).device
    assert isinstance(device, Gpu)
    return device


def precisions(hw: str) -> tuple[str, ...]:
    """What kernels on a GPU are drawn in: fp32, and halves where it has tensor cores."""
    return ("fp32", "fp16") if gpu(hw).has_tensor("fp16") else ("fp32",)


def request_on(hw: str, precision: str, scales: Mapping[str, float] | None = None) -> Request:
    """A setting on a GPU. scales: keys of its spec = factor."""
    return make_request(NET, hw, precision=precision, task="training", scales=dict(scales or {}))


def times(request: Request, ops: Sequence[BoundOp], constants: Calibration, fidelity: str) -> Array:
    """Seconds of each op [s], [N]."""
    lowered = lowered_of(request, ops, (1,) * len(ops))  # ops that know nothing of each other
    costs = priced(replace(request, calibration=constants, fidelity=find_fidelity(fidelity)), lowered.kernels)
    return np.asarray(np.ravel(costs.cost.time_s[0])[lowered.plan_of])


def _between(rng: random.Random, low: float, high: float, step: int = 1) -> int:
    """A whole number of steps, as likely to lie within any factor as within another."""
    return max(step, round(math.exp(rng.uniform(math.log(low), math.log(high))) / step) * step)


def _linear(rng: random.Random) -> BoundOp:
    rows, wide, deep = _between(rng, 1, 16384), _between(rng, 16, 8192, 8), _between(rng, 16, 8192, 8)
    rows = 1 if rows <= THIN else rows  # a few are a matrix-vector product in one library and tiles in another
    return forward(Linear(bias=False), (rows, wide), (rows, deep))


def _matmul(rng: random.Random) -> BoundOp:
    return product(_between(rng, 1, 256), *[_between(rng, 16, 1024, 8) for _ in range(3)])


def _conv(rng: random.Random) -> BoundOp:
    side, window = _between(rng, 7, 112), rng.choice((1, 3, 5))
    n, channels, filters = _between(rng, 1, 64), _between(rng, 16, 512, 16), _between(rng, 16, 512, 16)
    return conv((n, channels, side, side, filters, window, window, 1, 1, window // 2, window // 2, 1))


def _attention(rng: random.Random) -> BoundOp:
    heads, features, length = _between(rng, 4, 64, 4), rng.choice((64, 128)), _between(rng, 64, 8192, 64)
    shape = _between(rng, 1, 32), length, heads * features
    return forward(Attention(heads=heads, causal=rng.random() < 0.5), shape, shape, shape, shape)


def _images(rng: random.Random) -> BoundOp:
    side = _between(rng, 7, 112)
    shape = _between(rng, 4, 128), _between(rng, 16, 1024, 16), side, side
    return forward(BatchNorm(training=True), shape, shape)


def _rows(kind: LayerNorm | Softmax, rng: random.Random) -> BoundOp:
    shape = _between(rng, 64, 65536), _between(rng, 64, 8192, 8)
    return forward(kind, shape, shape)


def _sum(rng: random.Random) -> BoundOp:
    return forward(Add(), *3 * ((_between(rng, 1e4, 1e8),),))


# Half of the ops are products; attention kernels are those of halves. How many of each is a choice.
OPS: tuple[Draw, ...] = (
    *4 * (_linear,), *3 * (_matmul,), *2 * (_conv,), _images, partial(_rows, LayerNorm()), partial(_rows, Softmax()), _sum,
)  # fmt: skip
OPS_OF_HALVES: tuple[Draw, ...] = (*OPS, *3 * (_attention,))


def random_op(rng: random.Random, precision: str) -> BoundOp:
    """One op with a shape, of those that networks consist of."""
    return rng.choice(OPS if precision == "fp32" else OPS_OF_HALVES)(rng)


# ----------------------------------------------------------------------------- the closed form beside the cycle model

KERNELS_OF_MACHINE = 25
SEED = 11
# Keys that random machines scale, which both models read.
SCALED = ("sm.count", "sm.schedulers", "sm.warps", "sm.registers", "rate.fp32", "rate.special", "memory.bandwidth",
          "memory.latency", "l2.size", "l2.bandwidth", "sm.shared_bandwidth")  # fmt: skip
FACTORS = 0.5, 2.0  # between which they are scaled; whole numbers, by one of the two
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
        scales = {key: rng.choice(FACTORS) if unit_of("gpu", key).whole else math.exp(rng.uniform(*map(math.log, FACTORS)))
                  for key in rng.sample(SCALED, 2)} if i % 2 else {}  # fmt: skip
        tell(f"machine {i + 1} of {machines}: {hw}")
        request, ops = request_on(hw, precision, scales), [random_op(rng, precision) for _ in range(KERNELS_OF_MACHINE)]
        closed, simulated = (times(request, ops, request.calibration, fidelity) for fidelity in (FITTED, SIMULATED))
        found += [
            SurrogateRow(hardware=hw, architecture=request.spec.identity.architecture, precision=precision, scaled=bool(scales),
                         op=op.kind.op, closed_s=float(a), simulated_s=float(b))
            for op, a, b in zip(ops, closed, simulated, strict=True) if a > 0.0 and b > 0.0
        ]  # fmt: skip
    return found


def judged() -> list[Judged]:
    """Which model published times agree with, of a sample of rows that are not kept for tests."""
    cases, _ = read_files()
    found = []
    for op in MEASURED_OPS:
        own = [c for c in cases if c.label == op and c.spec.kind == "gpu" and c.fitted and c.metric == "latency_s"]
        sample = random.Random(SEED).sample(own, min(MEASURED_ROWS, len(own)))
        measured = np.array([case.measured for case in sample])
        errors = [float(np.median(np.abs(predict(sample, default(), fidelity) / measured - 1.0)))
                  for fidelity in (FITTED, SIMULATED)]  # fmt: skip
        found.append(Judged(op=op, rows=len(sample), closed=errors[0], simulated=errors[1]))
    return found
