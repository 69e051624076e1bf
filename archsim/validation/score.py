"""How far predictions are off: pure functions of arrays.

An error is predicted / measured - 1 of a time, power or energy; a rate is scored as the time that it stands for, so that
predictions that are too high and too low weigh alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archsim.base.record import by_key
from archsim.cost.cost import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Errors of a set of rows. `bias` is the median signed error."""

    n: int
    mape: float
    median_ape: float
    p90_ape: float
    bias: float
    coverage: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Kendall's tau of the device order: mean and least over the (network, task) groups that have two devices to order."""

    groups: int
    mean: float
    least: float


def score(error: Array, inside: NDArray[np.bool_] | None = None) -> Score:
    """The score of signed errors; `inside` says which rows their intervals cover. ValueError without rows."""
    if not error.size:
        raise ValueError("no rows to score")
    off = np.abs(error)
    return Score(
        n=int(error.size), mape=float(off.mean()), median_ape=float(np.median(off)), p90_ape=float(np.percentile(off, 90)),
        bias=float(np.median(error)), coverage=None if inside is None else float(inside.mean()),
    )  # fmt: skip


def _signs(values: Array) -> Array:
    """Which of each pair is the larger, as -1, 0 or 1."""
    return np.asarray(np.sign(values[:, None] - values[None, :])[np.triu_indices(values.size, k=1)])


def kendall_tau(first: Array, second: Array) -> float:
    """Kendall's tau-b of two orders (Kendall 1945), by comparing all pairs; nan when either does not order anything.

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.3333333333333333
    """
    a, b = _signs(first), _signs(second)
    norm = np.sqrt(np.sum(a != 0) * np.sum(b != 0))
    return float(np.sum(a * b) / norm) if norm else float("nan")


def device_order(
    groups: Sequence[Hashable], cells: Sequence[Hashable], devices: Sequence[str], measured: Array, predicted: Array
) -> Order | None:
    """Whether predicted times put devices in the measured order; None when no cell has two devices.

    Rows of equal `cells` did the same work. Each device counts once in a cell, by the median of its rows; the tau of a
    group is the mean over its cells, weighted by pairs of devices.
    """
    taus: dict[Hashable, list[tuple[float, int]]] = {}
    for (group, _), own in by_key(zip(zip(groups, cells, strict=True), enumerate(devices), strict=True)).items():
        rows = by_key((device, row) for row, device in own)
        seen, thought = (np.array([np.median(values[at]) for at in rows.values()]) for values in (measured, predicted))
        if len(rows) > 1 and not np.isnan(tau := kendall_tau(seen, thought)):
            taus.setdefault(group, []).append((tau, seen.size * (seen.size - 1) // 2))
    if not taus:
        return None
    means = [float(np.average([tau for tau, _ in found], weights=[pairs for _, pairs in found])) for found in taus.values()]
    return Order(groups=len(means), mean=float(np.mean(means)), least=min(means))
