"""Serving a network: arrivals, dynamic batching, latency percentiles; time and energy of a batch are those of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArgumentError
from archsim.cost.idle import idle_parts
from archsim.device.variant import device_fields
from archsim.estimation.estimate import provenance_of
from archsim.estimation.intervals import trust
from archsim.estimation.memory import largest_batch
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, with_batch
from archsim.schedule.observer import Observer
from archsim.schedule.serving import Batching, ServingRun, closed_loop, serve
from archsim.simulate.requests import poisson

SCHEMA = "archsim-serve/1"
SCENARIOS = ("SingleStream", "MultiStream", "Server", "Offline")  # of MLPerf inference
MULTI_STREAM = 8  # samples in one query of MultiStream (MLPerf inference rules, section 3)
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
FIGURES = (
    "latency_s", "distribution", "wait_s", "throughput_per_s", "utilisation", "mean_batch", "energy_per_request_j", "power_w",
)  # fmt: skip
SHARES = (*(round(0.02 * i, 2) for i in range(1, 50)), 0.99, 0.995, 0.999)  # points of the distribution
LEAST_TAIL = 4.0  # requests beyond a percentile that each group must hold, else the percentile has no interval
MOST_DEVICES = 100_000
MOST_REQUESTS = 10_000_000
LOADS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)  # shares of the capacity of a load curve
DRAWN = 10_000  # requests of each of its rates, at most
STEPS = 14  # bisections of the rate: a resolution of 1/16384 of the capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load: a scenario of MLPerf, with `requests` Poisson arrivals at `rate` [1/s] from `seed`, or recorded ones."""

    scenario: str = "Server"
    rate: float | None = None
    requests: int = 100_000
    seed: int = 1
    recorded_s: NDArray[np.float64] | None = None
    bound_s: float | None = None  # p99 latency below which the highest rate is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The result. Latencies are None for Offline, and where the queue grows without end (`stable` is False).

    `rate_per_s` arrives, `capacity_per_s` is served in full batches, `throughput_per_s` was served. `highest_rate_per_s` is the
    highest rate that keeps the wanted p99, 0 where none does.
    """

    network: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    stack: str
    precision: str
    scenario: str
    devices: int
    batching: Batching
    rate_per_s: float | None
    requests: int
    seed: int | None
    stable: bool
    capacity_per_s: float
    latency_s: Mapping[str, BatchMean] | None
    distribution: tuple[tuple[float, float], ...] | None  # (share of the requests, latency that they do not exceed [s])
    wait_s: BatchMean | None
    throughput_per_s: float | None
    utilisation: float | None
    mean_batch: float | None
    energy_per_request_j: float | None
    power_w: float | None
    bound_s: float | None
    highest_rate_per_s: float | None
    batch_latency_s: Mapping[int, float]
    assumptions: tuple[str, ...]
    provenance: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """Time [s] and energy [J] of a batch of any size on one device, computed on first use."""

    of: Callable[[int], tuple[float, float]]
    idle_w: float
    seen: dict[int, float]

    def time_s(self, size: int) -> float:
        """Time of a batch of `size` samples [s]."""
        time = self.of(size)[0]
        self.seen[size] = time
        return time

    def energy_j(self, size: int) -> float:
        """Energy of a batch of `size` samples [J]."""
        return self.of(size)[1]

    def power_w(self, size: int) -> float:
        """Mean power of a device during a batch of `size` samples [W]; without a batch (0) its idle power."""
        return self.energy_j(size) / self.of(size)[0] if size else self.idle_w


def batch_costs(request: Request) -> BatchCosts:
    """Costs of the batches of a request. Inputs are in host memory, where requests arrive, and cross the link."""
    asked = replace(request, stack=replace(request.stack, inputs="host"))

    @cache
    def of(size: int) -> tuple[float, float]:
        result = run(asked if size == asked.batch else with_batch(asked, size))
        return float(result.latency_s[0]), float(result.energy_j[0].sum())

    parts = idle_parts(request.device, request.clock, request.calibration)
    return BatchCosts(of=of, idle_w=float(sum(np.ravel(part)[0] for part in parts.values())), seen={})


def simulate_serving(
    request: Request, load: Load, batching: Batching | None = None, devices: int = 1, observers: Sequence[Observer] = (),
    tell: Callable[[str], None] | None = None,
) -> Serving:  # fmt: skip
    """Simulate a load on `devices` equal devices. Raises ArgumentError for a load or batching that is impossible."""
    batching = batching or Batching()
    _check(request, load, batching, devices)
    batches = batch_costs(request)
    most = {"SingleStream": 1, "MultiStream": MULTI_STREAM}.get(load.scenario, batching.most)
    capacity = devices * most / batches.time_s(most)
    highest = None if load.bound_s is None else _highest_rate(load, batching, devices, batches, capacity, tell)
    rate = load.rate if load.recorded_s is None else _mean_rate(load.recorded_s)
    if load.scenario == "Server" and rate is None:
        rate = highest or None
    stable = load.scenario != "Server" or (rate is not None and rate < capacity)
    served = _served(load, rate, batching, devices, batches, observers) if stable else None
    return _answer(request, load, batching, devices, batches, rate, capacity, highest, served, stable)


def _served(
    load: Load, rate: float | None, batching: Batching, devices: int, batches: BatchCosts, observers: Sequence[Observer] = ()
) -> ServingRun:
    if load.scenario in ("SingleStream", "MultiStream"):
        size = 1 if load.scenario == "SingleStream" else MULTI_STREAM
        return closed_loop(load.requests, size, batches.time_s, observers, batches.power_w)
    if load.scenario == "Offline":
        return serve([0.0] * load.requests, batches.time_s, batching, devices, observers, batches.power_w)
    if load.recorded_s is not None:
        return serve(load.recorded_s.tolist(), batches.time_s, batching, devices, observers, batches.power_w)
    assert rate is not None
    arrivals = poisson(rate, load.requests, load.seed).tolist()
    return serve(arrivals, batches.time_s, batching, devices, observers, batches.power_w)


def _highest_rate(
    load: Load, batching: Batching, devices: int, batches: BatchCosts, capacity: float, tell: Callable[[str], None] | None
) -> float:
    """The highest rate [1/s] whose p99 keeps the bound, by bisection: all rates stretch one draw, so p99 rises with the rate."""
    low, high = 0.0, capacity
    for step in range(STEPS):
        middle = 0.5 * (low + high)
        if tell is not None:
            tell(f"rate {step + 1} of {STEPS}: {middle:.4g} requests per second")
        served = _served(replace(load, recorded_s=None), middle, batching, devices, batches)
        assert load.bound_s is not None
        kept = batch_means(served.latency_s, quantile(0.99)).value <= load.bound_s
        low, high = (middle, high) if kept else (low, middle)
    return low


def _mean_rate(times: NDArray[np.float64]) -> float:
    return (len(times) - 1) / float(times[-1] - times[0])


def _answer(
    request: Request, load: Load, batching: Batching, devices: int, batches: BatchCosts, rate: float | None, capacity: float,
    highest: float | None, served: ServingRun | None, stable: bool,
) -> Serving:  # fmt: skip
    figures: dict[str, object] = dict.fromkeys(FIGURES)
    if served is not None:
        figures = _figures(load.scenario, served, devices, batches)
    notes = (
        *request.notes,
        trust(request),
        "inputs arrive in host memory and cross the link; a device runs one batch at a time",
        *(() if load.recorded_s is not None or load.scenario != "Server" else (f"arrivals: Poisson, seed {load.seed}",)),
    )
    drawn = load.scenario == "Server" and load.recorded_s is None
    requests = load.requests if load.recorded_s is None else len(load.recorded_s)
    return Serving(
        network=request.network, **device_fields(request.spec), stack=request.stack.id, precision=request.precision,
        scenario=load.scenario, devices=devices, batching=batching, rate_per_s=rate if load.scenario == "Server" else None,
        requests=requests, seed=load.seed if drawn else None, stable=stable, capacity_per_s=capacity, bound_s=load.bound_s,
        highest_rate_per_s=highest, batch_latency_s=dict(sorted(batches.seen.items())), assumptions=notes,
        provenance=provenance_of(request),
        **figures,  # type: ignore[arg-type]
    )  # fmt: skip


def _figures(scenario: str, served: ServingRun, devices: int, batches: BatchCosts) -> dict[str, object]:
    samples, span = float(served.batches.sum()), served.span_s
    sizes, counts = np.unique(served.batches, return_counts=True)
    worked = sum(int(n) * batches.energy_j(int(size)) for size, n in zip(sizes, counts, strict=True))
    idle = devices * span - float(served.batch_s.sum())
    energy = worked + max(0.0, idle) * batches.idle_w
    use: dict[str, object] = {
        "throughput_per_s": samples / span, "utilisation": served.utilisation, "mean_batch": samples / len(served.batches),
        "energy_per_request_j": energy / samples, "power_w": energy / span,
    }  # fmt: skip
    if scenario == "Offline":  # all samples arrive at the start, so their latencies only repeat the throughput
        return use | {"latency_s": None, "distribution": None, "wait_s": None}
    latency = {"mean": batch_means(served.latency_s, mean)} | {
        name: batch_means(served.latency_s, quantile(share), int(LEAST_TAIL / (1 - share) + 0.5))
        for name, share in PERCENTILES.items()
    }
    curve = tuple((share, batch_means(served.latency_s, quantile(share)).value) for share in SHARES)
    return use | {"latency_s": latency, "distribution": curve, "wait_s": batch_means(served.wait_s, mean)}


def _check(request: Request, load: Load, batching: Batching, devices: int) -> None:
    if load.scenario not in SCENARIOS:
        raise ArgumentError(f"scenario {load.scenario!r} is not one of {', '.join(SCENARIOS)}")
    if load.rate is not None and not 0 < load.rate < 1e12:
        raise ArgumentError(f"rate {load.rate:g} is not a number of requests per second above 0")
    if load.scenario == "Server" and load.rate is None and load.recorded_s is None and load.bound_s is None:
        raise ArgumentError("a server needs arrivals: give --rate, --trace or, to find a rate, --p99")
    if load.rate is not None and load.recorded_s is not None:
        raise ArgumentError("arrivals are either drawn at a rate or read from a file: give one of --rate and --trace")
    if load.bound_s is not None and load.recorded_s is not None:
        raise ArgumentError("--p99 searches over drawn arrivals: leave out --p99 or --trace")
    if load.scenario != "Server" and any(given is not None for given in (load.rate, load.recorded_s, load.bound_s)):
        raise ArgumentError(f"{load.scenario} has no arrivals of its own: leave out --rate, --trace and --p99")
    if load.bound_s is not None and load.bound_s <= 0:
        raise ArgumentError(f"p99 {load.bound_s:g} s is not a time above 0")
    if not 1 <= load.requests <= MOST_REQUESTS:
        raise ArgumentError(f"requests {load.requests} is not between 1 and {MOST_REQUESTS}")
    if load.seed < 0:
        raise ArgumentError(f"seed {load.seed} is less than 0")
    if not 1 <= devices <= MOST_DEVICES:
        raise ArgumentError(f"devices {devices} is not between 1 and {MOST_DEVICES}")
    if batching.most < 1:
        raise ArgumentError(f"batching max={batching.most} is less than 1")
    if not 0 <= batching.wait_s < 1e6:
        raise ArgumentError(f"batching wait={batching.wait_s:g} s is not a time from 0")
    if devices > 1 and load.scenario in ("SingleStream", "MultiStream"):
        raise ArgumentError(f"{load.scenario} sends one query at a time, to one device: leave out --devices")
    _check_size(request, MULTI_STREAM if load.scenario == "MultiStream" else batching.most)


def _check_size(request: Request, most: int) -> None:
    fixed = request.template.fixed_batch
    if fixed is not None and (most > 1 or fixed > 1):
        way = "batching max=1" if fixed == 1 else "write 'N' in place of it in its file"
        raise ArgumentError(f"network {request.network} fixes its batch, {fixed}, and takes no other number of requests: {way}")
    fitting = largest_batch(request, run(request))
    if fitting is not None and most > fitting:
        raise ArgumentError(f"batching max={most} does not fit the memory of {request.spec.identity.id}; {fitting} at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """A rate [1/s], its share of the capacity, and percentiles of the latency [s] by name."""

    rate_per_s: float
    share: float
    latency_s: dict[str, float]


def load_curve(
    request: Request, load: Load, answer: Serving, batching: Batching, tell: Callable[[str], None] | None = None
) -> tuple[LoadPoint, ...]:  # fmt: skip
    """Percentiles at each of `LOADS` of a server with drawn arrivals; nothing for another load.

    All rates stretch one draw of at most `DRAWN` requests; as in the simulation, the first tenth is left out.
    """
    if load.scenario != "Server" or load.recorded_s is not None:
        return ()
    batches = batch_costs(request)
    drawn = replace(load, requests=min(load.requests, DRAWN))
    found = []
    for share in LOADS:
        rate = share * answer.capacity_per_s
        if tell is not None:
            tell(f"load of {100 * share:.0f} %: {rate:.4g} requests per second")
        times = poisson(rate, drawn.requests, drawn.seed).tolist()
        latency = serve(times, batches.time_s, batching, answer.devices, (), batches.power_w).latency_s
        named = {name: batch_means(latency, quantile(at)).value for name, at in PERCENTILES.items()}
        found.append(LoadPoint(rate_per_s=rate, share=share, latency_s=named))
    return tuple(found)


Array = NDArray[np.float64]

GROUPS = 20
STUDENT_95 = 2.093  # 97.5 % quantile of Student's t distribution with GROUPS - 1 = 19 degrees of freedom
ROUNDING = 1e-9  # relative; values that differ by less are equal
WARM_UP = 0.1  # share of the requests, from the first on, that is discarded


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean:
    """A figure with its 95 % confidence interval; None where the run is too short for one."""

    value: float
    interval: tuple[float, float] | None


def batch_means(values: Array, figure: Callable[[Array], float], least: int = 1) -> BatchMean:
    """`figure` of all values after the warm-up, with a 95 % confidence interval by batch means.

    interval = figure +- t s / sqrt(n)      (Law and Kelton 2000, Simulation Modeling and Analysis, section 9.5.3)

    values: in order of time, [M]
    n: `GROUPS` groups of consecutive values; s: standard deviation of the figures of the groups; t: Student's quantile
    least: values that a group must have, else the interval is None

    Holds where a group is long compared with the time over which requests influence each other, so that groups are nearly
    independent; single requests are not.

    >>> batch_means(np.arange(1000.0), mean).value  # without the first tenth
    549.5
    """
    settled = values[int(WARM_UP * len(values)) :]
    if len(settled) > 1 and float(np.ptp(settled)) <= ROUNDING * abs(figure(settled)):
        return BatchMean(value=figure(settled), interval=(figure(settled), figure(settled)))
    size = len(settled) // GROUPS
    if size < least:
        return BatchMean(value=figure(settled), interval=None)
    groups = settled[len(settled) - GROUPS * size :].reshape(GROUPS, size)
    figures = np.array([figure(group) for group in groups])
    half = STUDENT_95 * float(figures.std(ddof=1)) / sqrt(GROUPS)
    value = figure(settled)
    return BatchMean(value=value, interval=(value - half, value + half))


def mean(values: Array) -> float:
    """The mean of the values, [M], in their unit."""
    return float(values.mean())


def quantile(share: float) -> Callable[[Array], float]:
    """The smallest value that at least this share of the values does not exceed (MLPerf's definition of a percentile).

    >>> quantile(0.5)(np.array([1.0, 2.0, 3.0, 4.0]))
    2.0
    """

    def figure(values: Array) -> float:
        return float(np.quantile(values, share, method="inverted_cdf"))

    return figure
