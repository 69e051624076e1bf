"""Several devices on one task, ranked by speed, by speed per watt and by speed per dollar, with the certainty of each order."""

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
from archsim.study.certainty import in_order, least, less, log_normal
from archsim.trace.kind import FORWARD

# Correlation of the errors of two GPUs on the same network, stack, task and batch of one source, in the rows of networks.csv that
# constants may be fitted to: 581 pairs; 0.1 where the stacks differ. tests/bench/correlation.py computes both.
SAME_STACK = 0.8
HOST_ELEMENT = 4  # B, values of inputs and results in host memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One device in a comparison. `back_s` is the time to bring the results to the host, where copies count.

    `price_usd` is the price at launch, None where the spec has none.
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
        """Energy of one batch [J]; while results are copied the device idles."""
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
    """What devices are ranked by: a score, more is better, and whether the error of the power counts."""

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
    """The order by one criterion, best first. `ahead[i]` is the probability that place i is before place i + 1.

    `best[i]` is the probability that the device at place i is the best of all, `whole` that the whole order is right, `shared`
    the same if errors are correlated by `SAME_STACK`, where all are GPUs with one stack. `unranked` are those without
    a score.
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
    """The estimate of a request with its price. With `copies` a GPU fetches its input from the host and the result goes back."""
    device, entry = request.spec.device, request.spec.entries.get("market.price")
    shown = with_host_inputs(request) if copies else request
    back = result_time(request) if copies else 0.0
    return Contender(
        estimate=estimate_of(shown, references=references and not copies),
        price_usd=None if entry is None else float(entry.value),
        price_kind="" if entry is None else entry.kind, copies=copies, back_s=back, idle_w=float(np.ravel(device.power.idle)[0]),
    )  # fmt: skip


def with_host_inputs(request: Request) -> Request:
    """The same run, fed from host memory; nothing changes on a CPU, or on a chip without a link of its own."""
    return replace(request, stack=replace(request.stack, inputs="host"))


def result_time(request: Request) -> float:
    """Time to bring what an inference ends with to the host [s]: outputs that nobody reads, over the link."""
    device = request.spec.device
    if not isinstance(device, Gpu) or device.link is None or request.task != "inference":
        return 0.0
    read = {name for op in request.trace.ops for name in op.inputs}
    values = sum(prod(op.shape) for op in request.trace.ops if op.phase == FORWARD and op.name not in read)
    return float(HOST_ELEMENT * values / (device.link.bandwidth * device.link.achievable))


def rank(contenders: Sequence[Contender], criterion: Criterion, correlation: float = 0.0) -> Ranking:
    """The order by `criterion`; errors of any two devices have this `correlation` (0: none shared).

    The log of a score has the spread of the log of the time, with that of the power beside it in quadrature for a score per
    watt. Prices are exact.
    """
    scored = [(score, c) for c in contenders if (score := criterion.score(c)) is not None]
    scored.sort(key=lambda pair: -pair[0])
    order = tuple([c for _, c in scored])
    both = [_log_cost(c, criterion) for c in order]
    mean, deviation = np.array([m for m, _ in both]), np.array([s for _, s in both])
    ahead = tuple([less((a[0], b[0]), (a[1], b[1]), correlation) for a, b in pairwise(both)])
    return Ranking(
        criterion=criterion, order=order, scores=tuple([score for score, _ in scored]), ahead=ahead,
        best=tuple(least(mean, deviation, correlation).tolist()) if len(order) > 1 else (1.0,) * len(order),
        whole=in_order(mean, deviation, correlation) if len(order) > 1 else 1.0, correlation=correlation,
        shared=in_order(mean, deviation, SAME_STACK) if len(order) > 1 and correlation == 0.0 and _alike(order) else None,
        unranked=tuple([c.name for c in contenders if c not in order]),
    )  # fmt: skip


def _alike(contenders: Sequence[Contender]) -> bool:
    """Whether all are GPUs that run one stack: their intervals then come from one class."""
    return len({(c.estimate.stack, c.estimate.interval_class, c.estimate.threads) for c in contenders}) == 1 and (
        contenders[0].estimate.threads is None
    )


def _log_cost(c: Contender, criterion: Criterion) -> tuple[float, float]:
    """Mean and deviation of the log of 1 / score: what is smallest is best. Energy has the errors of time and power together."""
    e = c.estimate
    mean, deviation = log_normal(*(e.energy_interval_j if criterion.power else e.latency_interval_s), e.interval_level)
    score, centre = criterion.score(c), e.energy_j if criterion.power else e.latency_s
    assert score is not None
    return mean - log(centre) - log(score), deviation


def time_spread(c: Contender) -> tuple[float, float]:
    """Mean and deviation of the log of the true time; the copy back widens nothing."""
    e = c.estimate
    mean, deviation = log_normal(*e.latency_interval_s, e.interval_level)
    return mean + log(c.latency_s / e.latency_s), deviation
