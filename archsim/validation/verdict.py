"""A validation in words: how far predictions are off, how many intervals hold, and which prediction is the worst."""

from __future__ import annotations

import numpy as np

from archsim.base.units import show
from archsim.cost.cost import Array
from archsim.evidence.case import Case
from archsim.evidence.columns import quantity
from archsim.evidence.sources import published_stack
from archsim.validation.evaluation import GroupScore, Validation

SPEEDS = frozenset(("time", "prefill", "decode", "end to end", "tokens", "bandwidth"))  # quantities that are slow or fast
UNITS = {  # how the name of a metric ends -> its unit
    "_per_s": "/s", "_per_token": "J", "_s_per_token": "s", "_s": "s", "_w": "W", "_j": "J", "_hz": "Hz", "_bps": "B/s",
    "_v": "V", "_clk": "clk", "_load": "clk", "_iteration": "clk",
}  # fmt: skip
MOST = 3  # quantities that are told


def unit_of(case: Case) -> str:
    """The unit of a measured value; rates count what a batch consists of."""
    unit = UNITS[max((end for end in UNITS if case.metric.endswith(end)), key=len)]
    if unit != "/s":
        return unit
    return "tokens/s" if case.metric == "tokens_per_s" else f"{case.trace.sample if case.work is not None else '1'}/s"


def off_words(error: float, of: str) -> str:
    """How far a prediction of a quantity is off; of a rate, by the time that it stands for.

    >>> off_words(0.114, "time"), off_words(-0.023, "power"), off_words(0.0001, "energy")
    ('11.4 % too slow', '2.3 % too low', 'as measured')
    """
    if abs(error) < 0.0005:
        return "as measured"
    over, under = ("slow", "fast") if of in SPEEDS else ("high", "low")
    return f"{abs(100 * error):,.1f} % too {over if error > 0 else under}"


def inside(v: Validation, i: int) -> bool | None:
    """Whether the interval of a prediction holds the measured value; None without an interval."""
    return bool(v.low[i] <= v.cases[i].measured <= v.high[i]) if np.isfinite(v.low[i]) else None


def quantiles(ratios: Array) -> tuple[float, ...]:
    """The percentiles 10, 25, 50, 75 and 90."""
    return tuple(np.percentile(ratios, (10, 25, 50, 75, 90)).tolist())


def sentences(v: Validation) -> list[str]:
    """A sentence for each of the quantities with most rows, and the worst prediction."""
    if not v.cases:
        return ["Nothing could be predicted."]
    ranked = sorted(v.overall, key=lambda group: (-group.score.n, group.by["quantity"] not in SPEEDS))
    found = [_quantity(v, group) for group in ranked[:MOST]]
    if len(ranked) > MOST:
        others = ", ".join(group.by["quantity"] for group in ranked[MOST:])
        found.append(f"{len(ranked) - MOST} more behind --all: {others}.")
    return [*found, worst_words(v)] if len(v.cases) > 1 else found


def _quantity(v: Validation, group: GroupScore) -> str:
    """`Time: predictions are 2.0 % too fast in the median, half are within 7.8 %, nine in ten within 10.2 %; ...`."""
    s, name, level = group.score, group.by["quantity"], f"{100 * v.settings.calibration.level:.0f} %"
    have = [inside(v, i) for i in group.rows if np.isfinite(v.low[i])]
    holds, known = have.count(True), len(have)
    if s.n == 1:
        where = f", {'inside' if holds else 'outside'} its {level} interval" if known else ""
        return f"{name.capitalize()}: the prediction is {off_words(s.bias, name)}{where}."
    whole = f"are inside their {level} interval" if known == s.n else f"that have an interval of {level} are inside it"
    covered = f"; {holds:,} of {known:,} {whole}" if known else ""
    return (f"{name.capitalize()}: predictions are {off_words(s.bias, name)} in the median, half are within "
            f"{100 * s.median_ape:.1f} %, nine in ten within {100 * s.p90_ape:.1f} %{covered}.")  # fmt: skip


def furthest(v: Validation, most: int = 1) -> list[int]:
    """The rows whose predictions are furthest off, the worst first."""
    return sorted(range(len(v.cases)), key=lambda i: -abs(np.log1p(v.error[i])))[:most]


def worst_words(v: Validation) -> str:
    """The worst prediction, and why it is off where that is known."""
    (i,) = furthest(v)
    case, why = v.cases[i], f": {v.reasons[i]}" if v.reasons and v.reasons[i] else ""
    unit = unit_of(case)
    return (f"Worst: {case_words(case)}: {show(case.measured, unit)} measured, {show(float(v.predicted[i]), unit)} predicted, "
            f"{off_words(v.error[i], quantity(case))}{why}.")  # fmt: skip


def case_words(case: Case) -> str:
    """What a row is of."""
    size = f", batch {case.batch}" if case.work is not None else ""
    return f"{case.label} on {case.hardware}{size}, {case.precision}, {published_stack(case)}"
