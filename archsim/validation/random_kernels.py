"""Random kernels on GPUs: the ops, what they take by either model, and the devices that they run on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.device.catalog import find as find_spec
from archsim.device.catalog import names as device_names
from archsim.device.device import Gpu
from archsim.estimation.fidelity import find as find_fidelity
from archsim.estimation.pipeline import lowered_of, priced
from archsim.estimation.request import Request, make_request
from archsim.evidence.op_rows import conv, forward
from archsim.lower.gemm import THIN
from archsim.trace.op import Add, Attention, BatchNorm, LayerNorm, Linear, Matmul, Softmax
from archsim.trace.trace import BoundOp

NET = "alexnet"  # of the requests whose device, stack and setting the random ops take


def gpus() -> list[str]:
    """The shipped GPUs, by name."""
    return [name for name in device_names() if find_spec(name).kind == "gpu"]


def precisions(hw: str) -> tuple[str, ...]:
    """What kernels on a GPU are drawn in: fp32, and halves where it has tensor cores."""
    device = find_spec(hw).device
    return ("fp32", "fp16") if isinstance(device, Gpu) and device.has_tensor("fp16") else ("fp32",)


def request_on(hw: str, precision: str, scales: Mapping[str, float] | None = None, share: float | None = None) -> Request:
    """A setting on a GPU. scales: keys of its spec = factor; share: of its lanes that an SM feeds, where it is set."""
    settings = {} if share is None else {"sm.issue_share": f"{share:.4f}"}
    return make_request(NET, hw, precision=precision, task="training", scales=dict(scales or {}), settings=settings)


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
