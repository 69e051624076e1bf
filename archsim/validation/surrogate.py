"""The closed form as a surrogate of the cycle model: how far it is from it on random kernels, and the constants that follow."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from archsim.base.errors import MissingExtra, Unsupported
from archsim.calibration.constants import Calibration, default
from archsim.calibration.derived import Derived, derived
from archsim.cost.cost import Array
from archsim.cycle.kernels import Known, trip_clocks
from archsim.cycle.machine import machine_of
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import Source
from archsim.cycle.run import prepared
from archsim.device.catalog import find as find_spec
from archsim.device.catalog import names as device_names
from archsim.device.device import Gpu
from archsim.estimation.fidelity import FITTED, SIMULATED
from archsim.estimation.fidelity import find as find_fidelity
from archsim.estimation.memo import memo
from archsim.estimation.pipeline import lowered_ops, priced
from archsim.estimation.request import Request, make_request
from archsim.evidence.kernel_ops import conv, forward
from archsim.evidence.readers import read_files
from archsim.evidence.shipped import shipped_files
from archsim.lower.gemm import THIN
from archsim.trace.op import Add, Attention, BatchNorm, LayerNorm, Linear, Matmul, Softmax
from archsim.trace.trace import BoundOp
from archsim.validation.predict import predict

Tell = Callable[[str], None]
LACKING = {"gemm.page_clk": 0.0}  # what the cycle model has no mechanism for, and so must not be laid on other constants
NET = "alexnet"  # of the requests whose device, stack and setting the random ops take
KERNELS_OF_MACHINE = 25
DEVICES_OF_ARCHITECTURE = 3
KERNELS_OF_DEVICE = 120  # in each precision
SEED = 11
SOFT = 0.1  # residuals above this count linearly, not squared
TIE = 0.02  # how far, in log, a constant that kernels do not tell leaves where it began, in units of a kernel that is 100 % off
TOLD = 0.1  # least change of all residuals, as a norm, by twice a constant that is kept
DOUBLE = math.log(2.0)
STEP = 0.03  # relative step of the differences
# Keys that random machines scale, which both models read.
SCALED = ("rate.special", "memory.bandwidth", "memory.latency", "l2.size", "l2.bandwidth", "sm.shared_bandwidth")
FACTORS = 0.5, 2.0
# Fitted beside what is derived, and left out: the start of a library's attention kernel is not that of a simulated program.
BESIDE = "attention.prologue_clk"
# A few warps that start late and many that start at once come equally near: the search begins from either side.
HALVED = "gemm.tensor_saturation"
HALVED_FACTORS = 1.0, 0.5
START = "gemm.tensor_prologue_clk"
START_FACTORS = 0.02, 0.1, 0.3, 1.0
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


@dataclass(frozen=True, eq=False, slots=True)
class _Sample:
    """Random ops on one device, lowered, and what they take when simulated.

    A library has the fastest of its tiles, as timing them or its rules tell. The closed form alone would name the one that its
    constants favour, so each op has the least time of what it names with starts of several lengths.
    """

    request: Request
    ops: tuple[BoundOp, ...]
    simulated_s: Array

    @classmethod
    def of(cls, request: Request, ops: Sequence[BoundOp], constants: Calibration) -> _Sample:
        starts = _starts(constants) if _rings(request) else [constants]
        times = [_times(request, ops, start, SIMULATED) for start in starts]
        return cls(request, tuple(ops), np.asarray(np.minimum.reduce(times)))

    def residuals(self, constants: Calibration) -> Array:
        """log(closed form / simulated) of the ops that take time."""
        logs = np.log(_times(self.request, self.ops, constants, FITTED) / self.simulated_s)
        return np.asarray(logs[np.isfinite(logs)])


def derive(architecture: str, names: Sequence[str], kernels: int = KERNELS_OF_DEVICE) -> Derived:
    """The constants that bring the closed form nearest to the cycle model, on random kernels of an architecture's devices.

    names: of the constants; those that change no kernel are left out. kernels: of each device in each precision

    Raises MissingExtra without scipy, Unsupported for an architecture whose devices the cycle model does not simulate.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingExtra("calibrate", "calibrate") from None
    begin, known = _as_derived(names), memo()
    devices = _devices(architecture)
    samples = [
        _Sample.of(request, [random_op(rng, precision, _rings(request)) for _ in range(kernels)], begin)
        for hw in devices for precision in _precisions(hw)
        for request, rng in [(_request(hw, precision, share=issue_share(hw, known)), random.Random(SEED))]
    ]  # fmt: skip
    free = (*names, BESIDE)
    rows = [begin.constants[name] for name in free]
    low, high = np.log([row.low for row in rows]), np.log([row.high for row in rows])
    first = np.log([row.value for row in rows])

    def logs_of(x: Array) -> Array:
        constants = begin.with_values(dict(zip(free, np.exp(x).tolist(), strict=True)))
        return np.concatenate([sample.residuals(constants) for sample in samples])

    starts = [first + math.log(factor) * np.array([name == HALVED for name in free]) for factor in HALVED_FACTORS]
    answers = [
        least_squares(lambda x: np.concatenate([logs_of(x), TIE * (x - first)]), start, bounds=(low, high),
                      loss="soft_l1", f_scale=SOFT, diff_step=STEP, max_nfev=20)
        for start in starts
    ]  # fmt: skip
    answer = min(answers, key=lambda found: float(found.cost))
    start = logs_of(first)
    told = [np.linalg.norm(logs_of(first + DOUBLE * np.eye(len(free))[i]) - start) >= TOLD for i in range(len(names))]
    values = {name: float(f"{v:.4g}") for name, v, kept in zip(names, np.exp(answer.x)[: len(names)], told, strict=True) if kept}
    errors = np.abs(np.expm1(logs_of(answer.x)))
    return Derived(devices=tuple(devices), kernels=len(errors), median=float(np.median(errors)),
                   p90=float(np.quantile(errors, 0.9)), constants=values)  # fmt: skip


def _devices(architecture: str) -> Sequence[str]:
    """The devices that stand for an architecture: those of the shipped table while they are there, so that a card that joins
    moves no other."""
    simulated, shipped = _simulated_devices(architecture), derived().get(architecture)
    if shipped is not None and set(shipped.devices) <= set(simulated):
        return shipped.devices
    return _spread(simulated, DEVICES_OF_ARCHITECTURE)


def issue_share(hw: str, known: Known) -> float | None:
    """The share of its lanes that an SM feeds in the loop of a large tile, simulated; None for a device that states none.

    Other constants must not make up for a published share that differs from it.
    """
    device = find_spec(hw).device
    if not isinstance(device, Gpu) or device.sm.issue_share is None:
        return None
    machine = machine_of(device, float(np.ravel(device.clock.sustained)[0]))
    near = Source(past_l2=0.0)
    tile = TiledProduct(m=128, n=128, k=8, threads=256, registers=120, shared=16384, depth=4096, a=near, b=near)
    on = prepared(machine, on_lanes(machine, tile))
    ctas = max(1, on.held)
    return min(1.0, ctas * tile.m * tile.n * tile.k / trip_clocks(on, ctas, known) / float(np.ravel(device.rate.fp32)[0]))


def architectures() -> tuple[str, ...]:
    """Those whose devices the cycle model simulates."""
    return tuple(sorted({spec.identity.architecture for spec in map(find_spec, device_names()) if spec.kind == "gpu"}))


def compare(kernels: int, seed: int = SEED, tell: Tell = lambda text: None) -> list[SurrogateRow]:
    """Random ops on random machines: one half of the machines as they are shipped, the other with keys scaled.

    kernels: in all; seed: of the choice
    """
    rng = random.Random(seed)
    machines = max(1, kernels // KERNELS_OF_MACHINE)
    gpus = [name for architecture in architectures() for name in _simulated_devices(architecture)]
    found: list[SurrogateRow] = []
    for i in range(machines):
        hw = rng.choice(gpus)
        precision = rng.choice(_precisions(hw))
        scales = {key: math.exp(rng.uniform(*map(math.log, FACTORS))) for key in rng.sample(SCALED, 2)} if i % 2 else {}
        tell(f"machine {i + 1} of {machines}: {hw}")
        ops = [random_op(rng, precision) for _ in range(KERNELS_OF_MACHINE)]
        found += _compared(_request(hw, precision, scales), ops, bool(scales))
    return found


def judged(ops: Sequence[str] = MEASURED_OPS, rows: int = MEASURED_ROWS, seed: int = SEED) -> list[Judged]:
    """Which model published times agree with, of a sample of rows that are not kept for tests."""
    cases, _ = read_files(shipped_files())
    found = []
    for op in ops:
        own = [c for c in cases if c.label == op and c.spec.kind == "gpu" and c.split != "test" and c.metric == "latency_s"]
        sample = random.Random(seed).sample(own, min(rows, len(own)))
        measured = np.array([case.measured for case in sample])
        errors = [float(np.median(np.abs(predict(sample, default(), fidelity) / measured - 1.0)))
                  for fidelity in (FITTED, SIMULATED)]  # fmt: skip
        found.append(Judged(op=op, rows=len(sample), closed=errors[0], simulated=errors[1]))
    return found


def _compared(request: Request, ops: Sequence[BoundOp], scaled: bool) -> list[SurrogateRow]:
    closed, simulated = (_times(request, ops, request.calibration, fidelity) for fidelity in (FITTED, SIMULATED))
    return [
        SurrogateRow(hardware=request.spec.identity.id, architecture=request.spec.identity.architecture,
                   precision=request.precision, scaled=scaled, op=op.kind.op, closed_s=float(a), simulated_s=float(b))
        for op, a, b in zip(ops, closed, simulated, strict=True) if a > 0.0 and b > 0.0
    ]  # fmt: skip


def _times(request: Request, ops: Sequence[BoundOp], constants: Calibration, fidelity: str) -> Array:
    """Seconds of each op [s], [N]."""
    lowered = lowered_ops(request, ops, (1,) * len(ops))  # ops that know nothing of each other
    costs = priced(replace(request, calibration=constants, fidelity=find_fidelity(fidelity)), lowered.kernels)
    return np.asarray(np.ravel(costs.cost.time_s[0])[lowered.plan_of])


def _as_derived(names: Sequence[str]) -> Calibration:
    """All constants as they are before a fit, so that none of what is derived hangs on measurements.

    Without what the cycle model lacks; those of `names` as they are on no architecture in particular.
    """
    shipped = default().before_fit()
    return shipped.with_values({**LACKING, **{name: shipped.constants[name].value for name in names}})


def _rings(request: Request) -> bool:
    """Whether products on tensor cores fill rings of stages, so large that their CTA often has its SM alone, start and all."""
    device = request.device
    return isinstance(device, Gpu) and request.precision == "fp16" and device.sm.copies in ("async", "bulk")


def _starts(constants: Calibration) -> list[Calibration]:
    """The constants, and others by which CTAs on tensor cores start sooner, so that the closed form names smaller tiles, too."""
    row = constants.constants[START]
    return [constants.with_values({START: max(row.low, row.value * factor)}) for factor in START_FACTORS]


def _request(hw: str, precision: str, scales: Mapping[str, float] | None = None, share: float | None = None) -> Request:
    settings = {} if share is None else {"sm.issue_share": f"{share:.4f}"}
    return make_request(NET, hw, precision=precision, task="training", scales=dict(scales or {}), settings=settings)


def _simulated_devices(architecture: str) -> list[str]:
    """The shipped devices of an architecture, by name; Unsupported if there is none."""
    found = [name for name in device_names() for spec in [find_spec(name)]
             if spec.kind == "gpu" and spec.identity.architecture == architecture]  # fmt: skip
    if not found:
        raise Unsupported(f"architecture {architecture}: no shipped GPU has it; one of {', '.join(architectures())}")
    return found


def _spread(devices: Sequence[str], most: int) -> list[str]:
    """Some of the devices: the smallest, the largest, and those in even steps between them."""
    by_size = sorted(devices, key=lambda name: (float(find_spec(name).device.pipe("fp32")) * _units(name), name))
    count = min(most, len(by_size))
    return [by_size[round(i * (len(by_size) - 1) / max(1, count - 1))] for i in range(count)]


def _units(hw: str) -> float:
    device = find_spec(hw).device
    return float(np.ravel(device.sm.count)[0]) if isinstance(device, Gpu) else 1.0


def _precisions(hw: str) -> tuple[str, ...]:
    device = find_spec(hw).device
    return ("fp32", "fp16") if isinstance(device, Gpu) and device.has_tensor("fp16") else ("fp32",)


def _between(rng: random.Random, low: float, high: float, step: int = 1) -> int:
    """A whole number of steps, as likely to lie within any factor as within another."""
    return max(step, round(math.exp(rng.uniform(math.log(low), math.log(high))) / step) * step)


def _linear(rng: random.Random) -> BoundOp:
    rows, wide, deep = _between(rng, 1, 16384), _between(rng, 16, 8192, 8), _between(rng, 16, 8192, 8)
    rows = 1 if rows <= THIN else rows  # a few are a matrix-vector product in one library and tiles in another
    return forward(Linear(bias=False), (rows, wide), (rows, deep))


def _small(rng: random.Random) -> BoundOp:
    """A product of some CTAs with a few steps each, which mostly starts and ends."""
    rows, wide, deep = _between(rng, 16, 512), _between(rng, 16, 512, 8), _between(rng, 16, 512, 8)
    return forward(Linear(bias=False), (rows, wide), (rows, deep))


def _shallow(rng: random.Random) -> BoundOp:
    """Products of many CTAs with a few steps each, one wave after the other."""
    count, rows = _between(rng, 1, 128), _between(rng, 256, 8192)
    wide, deep = _between(rng, 128, 1024, 8), _between(rng, 16, 256, 8)
    return forward(Matmul(), (count, rows, wide), (count, rows, deep), (count, deep, wide))


def _matmul(rng: random.Random) -> BoundOp:
    count = _between(rng, 1, 256)
    m, n, k = (_between(rng, 16, 1024, 8) for _ in range(3))
    return forward(Matmul(), (count, m, n), (count, m, k), (count, k, n))


def _conv(rng: random.Random) -> BoundOp:
    side, window = _between(rng, 7, 112), rng.choice((1, 3, 5))
    image = _between(rng, 1, 64), _between(rng, 16, 512, 16), side, side
    return conv(image=image, filters=_between(rng, 16, 512, 16), window=(window, window), stride=(1, 1), pad=(window // 2,) * 2)


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
    shape = (_between(rng, 1e4, 1e8),)
    return forward(Add(), shape, shape, shape)


# Half of the ops are products; attention kernels are those of halves, and products that mostly start and end those of rings of
# stages. How many of each is a choice, made by products on an A100, an H100 and an L40S.
OPS: tuple[Callable[[random.Random], BoundOp], ...] = (
    *4 * (_linear,), *3 * (_matmul,), *2 * (_conv,), _images, partial(_rows, LayerNorm()), partial(_rows, Softmax()), _sum,
)  # fmt: skip
OPS_OF_HALVES = (*OPS, *3 * (_attention,))
OPS_OF_RINGS = (*OPS_OF_HALVES, *6 * (_small,), _shallow)


def random_op(rng: random.Random, precision: str, rings: bool = False) -> BoundOp:
    """One op with a shape, of those that networks consist of; with `rings` more of those that mostly start and end."""
    return rng.choice(OPS if precision == "fp32" else OPS_OF_RINGS if rings else OPS_OF_HALVES)(rng)
