"""What limits a run: the resource whose relief saves most, which need not be the one that most of the time is spent on.

While a device waits for the host CPU, faster kernels only make it wait longer. So the question is not where the time goes, but
what the latency would be if one resource were faster and all others as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from archsim.cost.bounds import INPUT
from archsim.cost.relief import FASTER
from archsim.estimation.pipeline import Run
from archsim.estimation.request import Request

HOST = "host"
NEGLIGIBLE = 1e-9  # of the latency: less is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What limits a run.

    relief_s: time saved if the resource of that name were `FASTER` times as fast [s], largest first, without those that save none
    host_wait_s: time in which the device waits for the host CPU [s]
    host_floor_s: latency if the device took no time at all [s]
    graph: whether a replayed graph would lower that floor
    """

    relief_s: Mapping[str, float]
    host_wait_s: float
    host_floor_s: float
    graph: bool

    @property
    def limited_by(self) -> str:
        """The resource whose relief saves most; `none` where none saves anything."""
        return next(iter(self.relief_s), "none")


def limits_of(request: Request, result: Run) -> Limits:
    """What limits the outcome of a request, on the first of its devices."""
    share = result.share
    now = _latency(result.order(result.cost.time_s, result.host, share=share).latency_s)
    after = {name: _latency(result.order(plan_s, result.host, share=share).latency_s)
             for name, plan_s in result.cost.eased_s.items()}  # fmt: skip
    after[HOST] = _latency(result.order(result.cost.time_s, result.host.scaled(1 / FASTER), 1 / FASTER, share).latency_s)
    if result.late_s is not None:
        after[INPUT] = _latency(result.order(result.cost.time_s, result.host, share=share, input_factor=1 / FASTER).latency_s)
    saved = {name: now - then for name, then in after.items() if now - then > NEGLIGIBLE * now}
    nothing = np.zeros_like(result.cost.time_s)
    return Limits(
        relief_s=dict(sorted(saved.items(), key=lambda one: -one[1])),
        host_wait_s=float(result.timeline.wait_s[0].sum()),
        host_floor_s=_latency(result.order(nothing, result.host).latency_s),
        graph=request.stack.graphs and not request.graph,
    )  # fmt: skip


def _latency(of_devices: np.ndarray) -> float:
    return float(of_devices[0])
