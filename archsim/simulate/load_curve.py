"""Latency of a server against its load: the same queue at several rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from archsim.estimation.request import Request
from archsim.schedule.serving import Batching, serve
from archsim.simulate.arrivals import poisson
from archsim.simulate.interval import batch_means, quantile
from archsim.simulate.serve import PERCENTILES, Load, Serving, batch_costs

LOADS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)  # shares of the capacity
MOST_REQUESTS = 10_000  # of each rate


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

    All rates stretch one draw of at most `MOST_REQUESTS` requests; as in the simulation, the first tenth is left out.
    """
    if load.scenario != "Server" or load.recorded_s is not None:
        return ()
    batches = batch_costs(request)
    drawn = replace(load, requests=min(load.requests, MOST_REQUESTS))
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
