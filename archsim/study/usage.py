"""How a device is used, and what that costs: wear, rent, electricity, and work of a given size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from archsim.study.price import Price

TRAINING = ("training_step", "forward_backward")  # tasks of which an epoch is made
YEAR = 365.0 * 24.0  # h
LIFETIME = 3.0  # years; what a buyer writes a device off over, if he does not say
KILO = 1000.0  # W/kW


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How long and how hard a device is used, and what electricity costs; what is None takes its default, or is not counted.

    lifetime_years: years until a device that was bought is written off
    duty: share of that time in which it works; it idles in the rest
    electricity: price of electricity [USD/kWh]; without it, electricity is not counted
    pue: energy of the whole room / energy of the devices (power usage effectiveness)
    """

    lifetime_years: float | None = None
    duty: float | None = None
    electricity: float | None = None
    pue: float | None = None

    @property
    def years(self) -> float:
        """The lifetime, 3 years if not given."""
        return LIFETIME if self.lifetime_years is None else self.lifetime_years

    @property
    def share(self) -> float:
        """The duty, 1 if not given: it always works."""
        return 1.0 if self.duty is None else self.duty

    @property
    def overhead(self) -> float:
        """The PUE, 1 if not given: no energy for cooling."""
        return 1.0 if self.pue is None else self.pue

    @property
    def given(self) -> bool:
        """Whether anything was said about the use."""
        return any(v is not None for v in (self.lifetime_years, self.duty, self.electricity, self.pue))


def hourly_cost(price: Price, usage: Usage, power_w: float, idle_w: float) -> Mapping[str, float] | None:
    """Cost of an hour of work by part [USD/h]; None without a price.

    rented: price per hour, electricity included; only hours of work are paid
    bought: price / (lifetime x duty) + electricity x PUE x (P + P_idle (1 - duty) / duty)

    power_w: P, power at work [W]; idle_w: P_idle, power in the hours without work [W]

    >>> bought = Price(usd=2628.0, usd_per_h=None, kind="given", source="")
    >>> hourly_cost(bought, Usage(duty=0.5, electricity=0.25, pue=2.0), 200.0, 20.0)
    {'purchase': 0.2, 'electricity': 0.1, 'idle electricity': 0.01}
    """
    if price.usd_per_h is not None:
        return {"rent": price.usd_per_h}
    if price.usd is None:
        return None
    parts = {"purchase": price.usd / (usage.years * YEAR * usage.share)}
    if usage.electricity is not None:
        tariff = usage.electricity * usage.overhead / KILO
        parts["electricity"] = tariff * power_w
        parts["idle electricity"] = tariff * idle_w * (1.0 - usage.share) / usage.share
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Work of a given size: all samples of a data set, `epochs` times."""

    samples: int
    epochs: int = 1

    def batches(self, batch: int) -> int:
        """How many batches that takes; the last of each epoch may be filled in part, and takes as long as a full one.

        >>> Workload(samples=1000, epochs=3).batches(128)
        24
        """
        return ceil(self.samples / batch) * self.epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """What work of a given size takes on one device: batches, time with its interval [s], energy [J], cost [USD]."""

    batches: int
    time_s: float
    interval_s: tuple[float, float]
    energy_j: float
    cost_usd: float | None
