"""How far predictions are off: pure functions of arrays.

An error is predicted / measured - 1 of a time, power or energy; a rate is scored as the time that it stands for, so that
predictions that are too high and too low weigh alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.record import by_key
from archsim.cost.cost import Array

LEVEL = 0.95  # of the bootstrap interval
RESAMPLES = 1000
SEED = 20160816
BLOCK = 1 << 21  # values drawn at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Errors of a set of rows. `bias` is the median signed error, `mape_interval` the 95 % bootstrap interval of the MAPE."""

    n: int
    mape: float
    median_ape: float
    p90_ape: float
    bias: float
    mape_interval: tuple[float, float]
    coverage: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Kendall's tau of the device order: mean and least over the (network, task) groups that have two devices to order."""

    groups: int
    mean: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs that are compared, and those of them in the measured order."""

    right: int
    all: int


def score(error: Array, inside: NDArray[np.bool_] | None = None) -> Score:
    """The score of signed errors; `inside` says which rows their intervals cover. ValueError without rows."""
    if not error.size:
        raise ValueError("no rows to score")
    off = np.abs(error)
    return Score(
        n=int(error.size), mape=float(off.mean()), median_ape=float(np.median(off)), p90_ape=float(np.percentile(off, 90)),
        bias=float(np.median(error)), mape_interval=bootstrap(off),
        coverage=None if inside is None else float(inside.mean()),
    )  # fmt: skip


def bootstrap(values: Array) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean (Efron 1979), the same on every run."""
    random, means = np.random.default_rng(SEED), np.empty(RESAMPLES)
    for block in np.array_split(means, -(-RESAMPLES * values.size // BLOCK)):
        block[:] = values[random.integers(0, values.size, (block.size, values.size), dtype=np.int32)].mean(axis=1)
    low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


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


def _by_cell(cells: Sequence[Any], names: Sequence[str], measured: Array, predicted: Array) -> Iterator[tuple[Any, Array, Array]]:
    """Measured and predicted values of the names in each cell that has several, each once, by the median of its rows."""
    for cell, own in by_key((cell, (name, row)) for row, (cell, name) in enumerate(zip(cells, names, strict=True))).items():
        rows = by_key(own)
        if len(rows) > 1:
            seen, thought = (np.array([np.median(values[at]) for at in rows.values()]) for values in (measured, predicted))
            yield cell, seen, thought


def device_order(
    groups: Sequence[Hashable], cells: Sequence[Hashable], devices: Sequence[str], measured: Array, predicted: Array
) -> Order | None:
    """Whether predicted times put devices in the measured order; None when no cell has two devices.

    Rows of equal `cells` did the same work. Each device counts once in a cell, by the median of its rows; the tau of a
    group is the mean over its cells, weighted by pairs of devices.
    """
    both = _by_cell([*zip(groups, cells, strict=True)], devices, measured, predicted)
    taus = by_key((group, (tau, seen.size * (seen.size - 1) // 2)) for (group, _), seen, thought in both
                  if not np.isnan(tau := kendall_tau(seen, thought)))  # fmt: skip
    if not taus:
        return None
    means = [float(np.average([tau for tau, _ in found], weights=[pairs for _, pairs in found])) for found in taus.values()]
    return Order(groups=len(means), mean=float(np.mean(means)), least=min(means))


def pairs_in_order(cells: Sequence[Hashable], names: Sequence[str], measured: Array, predicted: Array) -> Pairs | None:
    """How many pairs of `names` have the measured order of times in equal `cells`; None when no cell has two.

    A name counts once in a cell, by the median of its rows. Pairs that were measured equal are left out.

    >>> pairs_in_order([1, 1, 1], ["a", "b", "c"], np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    Pairs(right=2, all=3)
    """
    signs = [(_signs(seen), _signs(thought)) for _, seen, thought in _by_cell(cells, names, measured, predicted)]
    pairs = sum(int(np.sum(a != 0)) for a, _ in signs)
    return Pairs(right=sum(int(np.sum(a * b > 0)) for a, b in signs), all=pairs) if pairs else None
