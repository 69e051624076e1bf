"""Serving a network: arrivals, dynamic batching, latency percentiles; time and energy of a batch are those of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArgumentError, refuse_arguments
from archsim.base.units import grouped, show
from archsim.cost.idle import idle_parts
from archsim.device.variant import first_of
from archsim.estimation.estimate import provenance_of
from archsim.estimation.measured import trust
from archsim.estimation.memory import largest_batch
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, with_batch
from archsim.schedule.observer import Observer
from archsim.schedule.serving import Batching, ServingRun, closed_loop, serve
from archsim.simulate.requests import poisson
from archsim.stack.catalog import MeasuredRows, rows_of

Array = NDArray[np.float64]
Tell = Callable[[str], object]  # is told how far a simulation is; `str` tells nobody

SCHEMA = "archsim-serve/1"
SCENARIOS = ("SingleStream", "MultiStream", "Server", "Offline")  # of MLPerf inference
MULTI_STREAM = 8  # samples in one query of MultiStream (MLPerf inference rules, section 3)
QUERIES = {"SingleStream": 1, "MultiStream": MULTI_STREAM}  # samples of a query, where one follows the other
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
SHARES = (*(round(0.02 * i, 2) for i in range(1, 50)), 0.99, 0.995, 0.999)  # points of the distribution
LEAST_TAIL = 4.0  # requests beyond a percentile that each group must hold, else the percentile has no interval
MOST_DEVICES = 100_000
MOST_REQUESTS = 10_000_000
LOADS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)  # shares of the capacity of a load curve
DRAWN = 10_000  # requests of each of its rates, at most
STEPS = 14  # bisections of the rate: a resolution of 1/16384 of the capacity
NEARLY = 0.9  # of the capacity: what is as fast is limited by it
MUCH = 0.5  # of the capacity: a server that is asked for more fills its batches
MORE = 1.05  # times what full batches serve: a smaller batch that serves as much is worth a word
GROUPS = 20
STUDENT_95 = 2.093  # 97.5 % quantile of Student's t distribution with GROUPS - 1 = 19 degrees of freedom
ROUNDING = 1e-9  # relative; values that differ by less are equal
WARM_UP = 0.1  # share of the requests, from the first on, that is discarded


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load: a scenario of MLPerf, with `requests` Poisson arrivals at `rate` [1/s] from `seed`, or recorded ones."""

    scenario: str = "Server"
    rate: float | None = None
    requests: int = 100_000
    seed: int = 1
    recorded_s: Array | None = None
    bound_s: float | None = None  # p99 latency below which the highest rate is wanted

    @property
    def drawn(self) -> bool:
        """Whether requests arrive at times that are drawn."""
        return self.scenario == "Server" and self.recorded_s is None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean:
    """A figure with its 95 % confidence interval; None where the run is too short for one."""

    value: float
    interval: tuple[float, float] | None


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
    stack_rows: MeasuredRows
    precision: str
    scenario: str
    devices: int
    batching: Batching
    rate_per_s: float | None
    requests: int
    seed: int | None
    stable: bool
    capacity_per_s: float
    latency_s: Mapping[str, BatchMean] | None = None
    distribution: tuple[tuple[float, float], ...] | None = None  # (share of the requests, latency that they do not exceed [s])
    wait_s: BatchMean | None = None
    throughput_per_s: float | None = None
    utilisation: float | None = None
    mean_batch: float | None = None
    energy_per_request_j: float | None = None
    power_w: float | None = None
    bound_s: float | None
    highest_rate_per_s: float | None
    batch_latency_s: Mapping[int, float]
    assumptions: tuple[str, ...]
    provenance: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ServingDevices:
    """Equal devices that share a queue; what a batch takes is computed on its first use.

    costs: time [s] and energy [J] of each size of batch that occurred
    """

    request: Request  # inputs are in host memory, where requests arrive, and cross the link
    batching: Batching
    count: int
    costs: dict[int, tuple[float, float]] = field(default_factory=dict)

    def cost(self, size: int) -> tuple[float, float]:
        """Time [s] and energy [J] of a batch."""
        if size not in self.costs:
            result = run(self.request if size == self.request.batch else with_batch(self.request, size))
            self.costs[size] = float(result.latency_s[0]), float(result.energy_j[0].sum())
        return self.costs[size]

    def time_s(self, size: int) -> float:
        """Time of a batch [s]."""
        return self.cost(size)[0]

    @cached_property
    def idle_w(self) -> float:
        """Power of a device without a batch [W]."""
        parts = idle_parts(self.request.device, self.request.clock, self.request.calibration)
        return sum(map(first_of, parts.values()))

    def power_w(self, size: int) -> float:
        """Mean power of a device during a batch, or without one (0) [W]."""
        return self.cost(size)[1] / self.cost(size)[0] if size else self.idle_w

    def served(self, load: Load, rate: float | None, observers: Sequence[Observer] = ()) -> ServingRun:
        """The run of a load, with drawn arrivals at this rate [1/s]."""
        if load.scenario in QUERIES:
            return closed_loop(load.requests, QUERIES[load.scenario], self.time_s, observers, self.power_w)
        arrivals = [0.0] * load.requests
        if load.recorded_s is not None:
            arrivals = load.recorded_s.tolist()
        elif load.scenario == "Server":
            assert rate is not None
            arrivals = poisson(rate, load.requests, load.seed).tolist()
        return serve(arrivals, self.time_s, self.batching, self.count, observers, self.power_w)


def serving_devices(request: Request, batching: Batching, devices: int = 1) -> ServingDevices:
    """Devices that serve a request's network."""
    asked = replace(request, stack=replace(request.stack, inputs="host"))
    return ServingDevices(request=asked, batching=batching, count=devices)


def simulate_serving(
    request: Request, load: Load, batching: Batching | None = None, devices: int = 1, observers: Sequence[Observer] = (),
    tell: Tell = str,
) -> Serving:  # fmt: skip
    """Simulate a load on `devices` equal devices. Raises ArgumentError for a load or batching that is impossible."""
    batching = batching or Batching()
    _check(request, load, batching, devices)
    on = serving_devices(request, batching, devices)
    most = QUERIES.get(load.scenario, batching.most)
    capacity = devices * most / on.time_s(most)
    highest = None if load.bound_s is None else _highest_rate(load, load.bound_s, on, capacity, tell)
    times = load.recorded_s
    rate = load.rate if times is None else (len(times) - 1) / float(times[-1] - times[0])
    rate = (rate or highest or None) if load.scenario == "Server" else None
    stable = load.scenario != "Server" or (rate is not None and rate < capacity)
    figures = _figures(load.scenario, on.served(load, rate, observers), on) if stable else {}
    notes = (*request.notes, trust(request), "inputs arrive in host memory and cross the link; a device runs one batch at a time")
    return Serving(
        **request.labels, stack_rows=rows_of(request.stack), scenario=load.scenario, devices=devices, batching=batching,
        rate_per_s=rate, requests=load.requests if times is None else len(times), seed=load.seed if load.drawn else None,
        stable=stable, capacity_per_s=capacity, bound_s=load.bound_s, highest_rate_per_s=highest,
        batch_latency_s={size: time_s for size, (time_s, _) in sorted(on.costs.items())},
        assumptions=(*notes, f"arrivals: Poisson, seed {load.seed}") if load.drawn else notes,
        provenance=provenance_of(request), **figures,
    )  # fmt: skip


def _highest_rate(load: Load, bound_s: float, on: ServingDevices, capacity: float, tell: Tell) -> float:
    """The highest rate [1/s] whose p99 keeps the bound, by bisection: all rates stretch one draw, so p99 rises with the rate."""
    low, high = 0.0, capacity
    for step in range(STEPS):
        middle = 0.5 * (low + high)
        tell(f"rate {step + 1} of {STEPS}: {middle:.4g} requests per second")
        kept = batch_means(on.served(load, middle).latency_s, quantile(0.99)).value <= bound_s
        low, high = (middle, high) if kept else (low, middle)
    return low


def _figures(scenario: str, served: ServingRun, on: ServingDevices) -> dict[str, Any]:
    samples, span = float(served.batches.sum()), served.span_s
    sizes, counts = np.unique(served.batches, return_counts=True)
    worked = sum(int(n) * on.cost(int(size))[1] for size, n in zip(sizes, counts, strict=True))
    energy = worked + max(0.0, on.count * span - float(served.batch_s.sum())) * on.idle_w
    use: dict[str, Any] = {
        "throughput_per_s": samples / span, "utilisation": served.utilisation, "mean_batch": samples / len(served.batches),
        "energy_per_request_j": energy / samples, "power_w": energy / span,
    }  # fmt: skip
    if scenario == "Offline":  # all samples arrive at the start, so their latencies only repeat the throughput
        return use
    latency = {"mean": batch_means(served.latency_s, np.mean)} | {
        name: batch_means(served.latency_s, quantile(share), int(LEAST_TAIL / (1 - share) + 0.5))
        for name, share in PERCENTILES.items()
    }
    curve = tuple((share, batch_means(served.latency_s, quantile(share)).value) for share in SHARES)
    return use | {"latency_s": latency, "distribution": curve, "wait_s": batch_means(served.wait_s, np.mean)}


def _check(request: Request, load: Load, batching: Batching, devices: int) -> None:
    server, recorded = load.scenario == "Server", load.recorded_s is not None
    arrivals = (load.rate is not None, recorded, load.bound_s is not None)
    rate, bound = (1.0 if given is None else given for given in (load.rate, load.bound_s))
    refuse_arguments({
        f"scenario {load.scenario!r} is not one of {', '.join(SCENARIOS)}": load.scenario not in SCENARIOS,
        f"rate {rate:g} is not a number of requests per second above 0": not 0 < rate < 1e12,
        "a server needs arrivals: give --rate, --trace or, to find a rate, --p99": server and not any(arrivals),
        "arrivals are either drawn at a rate or read from a file: give one of --rate and --trace": all(arrivals[:2]),
        "--p99 searches over drawn arrivals: leave out --p99 or --trace": all(arrivals[1:]),
        f"{load.scenario} has no arrivals of its own: leave out --rate, --trace and --p99": not server and any(arrivals),
        f"p99 {bound:g} s is not a time above 0": bound <= 0,
        f"requests {load.requests} is not between 1 and {MOST_REQUESTS}": not 1 <= load.requests <= MOST_REQUESTS,
        f"seed {load.seed} is less than 0": load.seed < 0,
        f"devices {devices} is not between 1 and {MOST_DEVICES}": not 1 <= devices <= MOST_DEVICES,
        f"batching max={batching.most} is less than 1": batching.most < 1,
        f"batching wait={batching.wait_s:g} s is not a time from 0": not 0 <= batching.wait_s < 1e6,
        f"{load.scenario} sends one query at a time, to one device: leave out --devices":
            devices > 1 and load.scenario in QUERIES,
    })  # fmt: skip
    most, fixed = MULTI_STREAM if load.scenario == "MultiStream" else batching.most, request.template.fixed_batch
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


def load_curve(request: Request, load: Load, answer: Serving, batching: Batching, tell: Tell = str) -> tuple[LoadPoint, ...]:
    """Percentiles at each of `LOADS` of a server with drawn arrivals; nothing for another load.

    All rates stretch one draw of at most `DRAWN` requests; as in the simulation, the first tenth is left out.
    """
    if not load.drawn:
        return ()
    on, drawn = serving_devices(request, batching, answer.devices), replace(load, requests=min(load.requests, DRAWN))
    found = []
    for share in LOADS:
        rate = share * answer.capacity_per_s
        tell(f"load of {100 * share:.0f} %: {rate:.4g} requests per second")
        latency = on.served(drawn, rate).latency_s
        named = {name: batch_means(latency, quantile(at)).value for name, at in PERCENTILES.items()}
        found.append(LoadPoint(rate_per_s=rate, share=share, latency_s=named))
    return tuple(found)


# ------------------------------------------------------------------------------------------------------- why it is as it is


def why_rate(s: Serving) -> str:
    """Why a server keeps its rate and no higher one, or what its requests wait for; empty where they do not queue."""
    if s.scenario != "Server":
        return ""
    if s.highest_rate_per_s is None or s.bound_s is None:
        return _load(s)
    alone, bound = s.batch_latency_s[min(s.batch_latency_s)], show(s.bound_s, "s", 3)
    if not s.highest_rate_per_s:
        waits = f" after waiting {show(s.batching.wait_s, 's', 3)} for others" if s.batching.wait_s else ""
        return f"a request alone takes {show(alone, 's', 3)}{waits}"
    if s.highest_rate_per_s > NEARLY * s.capacity_per_s:
        return f"full batches are served at {grouped(s.capacity_per_s, 3)} requests/s, and the queue grows beyond"
    if s.devices == 1 and alone + s.batching.wait_s <= s.bound_s < 2 * alone:
        each = show(alone, "s", 2)
        return (f"a request that meets a batch under way waits up to {each} and then takes {each}, more than {bound}: only one "
                f"in a hundred may; from {show(2 * alone, 's', 3)} on the rate rises")  # fmt: skip
    size = min(s.batch_latency_s, key=lambda size: abs(size - (s.mean_batch or 1.0)))
    usual = f"batches of {size} are usual and take {show(s.batch_latency_s[size], 's', 3)}"
    return f"{usual}: a request that just misses one waits for it, takes as long again, and now and then meets a larger one"


def _load(s: Serving) -> str:
    if not s.stable:
        served = f"full batches are served ({grouped(s.capacity_per_s, 3)}/s)"
        return f"requests arrive faster than {served}, so the queue grows without end"
    if s.rate_per_s is None or s.latency_s is None or s.wait_s is None:
        return ""
    share = f"at {100 * s.rate_per_s / s.capacity_per_s:.0f} % of what full batches serve ({grouped(s.capacity_per_s, 3)}/s)"
    waited, whole = show(s.wait_s.value, "s", 3), show(s.latency_s["mean"].value, "s", 3)
    return f"{share} a request waits {waited} of its {whole} on average"


def better_batch(s: Serving) -> list[str]:
    """A size of batch of those that occurred in which a device serves more than in full ones, if there is one."""
    rates = {size: size / time for size, time in s.batch_latency_s.items()}
    best = max(rates, key=lambda size: rates[size])
    full = s.scenario == "Offline" or (s.rate_per_s or 0.0) > MUCH * s.capacity_per_s
    if not full or rates[best] < MORE * s.capacity_per_s / s.devices:
        return []
    return [f"Batches of {best} serve more, {grouped(rates[best], 3)}/s on a device: try --batching max={best}."]


# ------------------------------------------------------------------------------- confidence intervals of one long simulation


def batch_means(values: Array, figure: Callable[[Array], float], least: int = 1) -> BatchMean:
    """`figure` of all values after the warm-up, with a 95 % confidence interval by batch means.

    interval = figure +- t s / sqrt(n)      (Law and Kelton 2000, Simulation Modeling and Analysis, section 9.5.3)

    values: in order of time, [M]
    n: `GROUPS` groups of consecutive values; s: standard deviation of the figures of the groups; t: Student's quantile
    least: values that a group must have, else the interval is None

    Holds where a group is long compared with the time over which requests influence each other, so that groups are nearly
    independent; single requests are not.

    >>> batch_means(np.arange(1000.0), np.mean).value  # without the first tenth
    549.5
    """
    settled = values[int(WARM_UP * len(values)) :]
    value = float(figure(settled))
    if len(settled) > 1 and float(np.ptp(settled)) <= ROUNDING * abs(value):
        return BatchMean(value=value, interval=(value, value))
    size = len(settled) // GROUPS
    if size < least:
        return BatchMean(value=value, interval=None)
    groups = settled[len(settled) - GROUPS * size :].reshape(GROUPS, size)
    half = STUDENT_95 * float(np.std([figure(group) for group in groups], ddof=1)) / sqrt(GROUPS)
    return BatchMean(value=value, interval=(value - half, value + half))


def quantile(share: float) -> Callable[[Array], float]:
    """The smallest value that at least this share of the values does not exceed (MLPerf's definition of a percentile).

    >>> quantile(0.5)(np.array([1.0, 2.0, 3.0, 4.0]))
    2.0
    """
    return lambda values: float(np.quantile(values, share, method="inverted_cdf"))
