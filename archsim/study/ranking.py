"""Several devices ranked by speed, speed per watt and speed per dollar, with the probability that each order is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log, prod

import numpy as np

from archsim.device.device import Gpu
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request
from archsim.estimation.result import Estimate
from archsim.study.certainty import log_normal, probability_in_order, probability_least, probability_less
from archsim.trace.kind import FORWARD

# Correlation of the log errors of two GPUs on the same network, stack, task and batch of one source, over 581 pairs of rows of
# split `calibrate` in networks.csv; 0.1 where the stacks differ. tests/bench/correlation.py computes both.
SAME_STACK = 0.8
HOST_ELEMENT = 4  # B, values of inputs and results in host memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One device in a comparison. `back_s` is the time of copying the results to the host, where copies count [s].

    `price_usd` is the launch price, None where the spec has none.
    """

    estimate: Estimate
    price_usd: float | None
    price_kind: str
    copies: bool
    back_s: float
    idle_w: float

    @property
    def name(self) -> str:
        """The device."""
        return self.estimate.hardware

    @property
    def latency_s(self) -> float:
        """Time of one batch [s], copies included where they count."""
        return self.estimate.latency_s + self.back_s

    @property
    def throughput_per_s(self) -> float:
        """Samples per second."""
        return self.estimate.batch / self.latency_s

    @property
    def energy_j(self) -> float:
        """Energy of one batch [J]; during the copy of results the device draws idle power."""
        return self.estimate.energy_j + self.back_s * self.idle_w

    @property
    def throughput_per_w(self) -> float:
        """Samples per joule."""
        return self.estimate.batch / self.energy_j

    @property
    def throughput_per_usd(self) -> float | None:
        """Samples per second for each dollar of the launch price."""
        return None if self.price_usd is None else self.throughput_per_s / self.price_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A score by which devices are ranked, more is better; `power` says whether it depends on the predicted energy."""

    name: str
    title: str
    unit: str
    score: Callable[[Contender], float | None]
    power: bool


CRITERIA = (
    Criterion(name="speed", title="speed", unit="", score=lambda c: c.throughput_per_s, power=False),
    Criterion(name="watt", title="speed per watt", unit="/W", score=lambda c: c.throughput_per_w, power=True),
    Criterion(name="dollar", title="speed per dollar", unit="/USD", score=lambda c: c.throughput_per_usd, power=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The order by one criterion, best first.

    ahead[i]: probability that place i is really before place i + 1
    best[i]: probability that the device at place i is the best of all
    whole: probability that the whole order is right
    shared: the same if errors are correlated by `SAME_STACK`; None unless all are GPUs with one stack
    unranked: devices without a score
    """

    criterion: Criterion
    order: tuple[Contender, ...]
    scores: tuple[float, ...]
    ahead: tuple[float, ...]
    best: tuple[float, ...]
    whole: float
    correlation: float
    shared: float | None
    unranked: tuple[str, ...]


def contender(request: Request, copies: bool, references: bool = True) -> Contender:
    """The estimate of a request with its price. With `copies` a GPU's inputs come from the host and its results go back."""
    device, entry = request.spec.device, request.spec.entries.get("market.price")
    shown = with_host_inputs(request) if copies else request
    back = result_time(request) if copies else 0.0
    return Contender(
        estimate=estimate_of(shown, references=references and not copies),
        price_usd=None if entry is None else float(entry.value),
        price_kind="" if entry is None else entry.kind, copies=copies, back_s=back, idle_w=float(np.ravel(device.power.idle)[0]),
    )  # fmt: skip


def with_host_inputs(request: Request) -> Request:
    """The same run with inputs in host memory; no change on a CPU, or on a chip that shares the host's memory."""
    return replace(request, stack=replace(request.stack, inputs="host"))


def result_time(request: Request) -> float:
    """Time of copying the results of an inference to the host [s].

    t = 4 B x values / (link bandwidth x achievable share); values: those of outputs that no other op reads

    >>> from archsim.estimation.request import make_request
    >>> round(1e9 * result_time(make_request("alexnet", "gtx_1080")))  # 1000 probabilities [ns]
    334
    """
    device = request.spec.device
    if not isinstance(device, Gpu) or device.link is None or request.task != "inference":
        return 0.0
    read = {name for op in request.trace.ops for name in op.inputs}
    values = sum(prod(op.shape) for op in request.trace.ops if op.phase == FORWARD and op.name not in read)
    return float(HOST_ELEMENT * values / (device.link.bandwidth * device.link.achievable))


def rank(contenders: Sequence[Contender], criterion: Criterion, correlation: float = 0.0) -> Ranking:
    """The order by `criterion`; the log errors of any two devices have this `correlation`.

    The log of a speed has the spread of the time. The log of a speed per watt has that of the energy, which adds the errors of
    time and power in quadrature. Prices are exact.
    """
    scored = [(score, c) for c in contenders if (score := criterion.score(c)) is not None]
    scored.sort(key=lambda pair: -pair[0])
    order = tuple([c for _, c in scored])
    both = [_log_cost(c, criterion) for c in order]
    mean, deviation = np.array([m for m, _ in both]), np.array([s for _, s in both])
    ahead = tuple([probability_less((a[0], b[0]), (a[1], b[1]), correlation) for a, b in pairwise(both)])
    several = len(order) > 1
    comparable = several and correlation == 0.0 and _one_stack(order)
    return Ranking(
        criterion=criterion, order=order, scores=tuple([score for score, _ in scored]), ahead=ahead,
        best=tuple(probability_least(mean, deviation, correlation).tolist()) if several else (1.0,) * len(order),
        whole=probability_in_order(mean, deviation, correlation) if several else 1.0, correlation=correlation,
        shared=probability_in_order(mean, deviation, SAME_STACK) if comparable else None,
        unranked=tuple([c.name for c in contenders if c not in order]),
    )  # fmt: skip


def _one_stack(contenders: Sequence[Contender]) -> bool:
    """Whether all are GPUs with one stack, so that their intervals come from one class."""
    return len({(c.estimate.stack, c.estimate.interval_class, c.estimate.threads) for c in contenders}) == 1 and (
        contenders[0].estimate.threads is None
    )


def _log_cost(c: Contender, criterion: Criterion) -> tuple[float, float]:
    """Mean and standard deviation of ln(1 / score), the least being the best."""
    e = c.estimate
    mean, deviation = log_normal(*(e.energy_interval_j if criterion.power else e.latency_interval_s), e.interval_level)
    score, centre = criterion.score(c), e.energy_j if criterion.power else e.latency_s
    assert score is not None
    return mean - log(centre) - log(score), deviation


def time_spread(c: Contender) -> tuple[float, float]:
    """Mean and standard deviation of the log of the true time [ln s]; the copy of results adds no uncertainty."""
    e = c.estimate
    mean, deviation = log_normal(*e.latency_interval_s, e.interval_level)
    return mean + log(c.latency_s / e.latency_s), deviation
