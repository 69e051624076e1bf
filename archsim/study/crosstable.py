"""Comparisons as tables of two ways: which stack on which device, and which device for which network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from archsim.study.comparison import Comparison
from archsim.study.contender import Contender

DOES_NOT_FIT, CANNOT_RUN = "does not fit", "cannot run"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossRow:
    """One device: for each column its score, or None and the reason, and whether it is marked as the best; then a note."""

    name: str
    cells: tuple[tuple[float | None, str, bool], ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossTable:
    """Scores of devices in several columns; `note` is the head of the column of notes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[CrossRow, ...]
    note: str


def by_stack(c: Comparison) -> CrossTable | None:
    """Which stack on which device, by the first criterion, the best of each device marked; None where no device has several.
    """
    criterion, stacks = c.rankings[0].criterion, c.stacks
    found = {(x.device_name, x.estimate.stack): x for x in c.all}
    asked = [*(device for device, _ in found), *(one.hardware for one in c.excluded)]
    if not stacks or len(set(asked)) == len(asked):
        return None
    excluded = {(one.hardware, one.stack) for one in c.excluded}
    rows = []
    for device in dict.fromkeys(x.device_name for x in c.all):
        here = {s: found.get((device, s)) for s in stacks}
        scores = {s: criterion.score(x) if x is not None and x.fits else None for s, x in here.items()}
        known = {s: score for s, score in scores.items() if score is not None}
        best = (min if criterion.less else max)(known, key=lambda s: known[s]) if known else ""
        cells = tuple([(scores[s], _why(here[s], (device, s) in excluded), s == best) for s in stacks])
        rows.append(CrossRow(name=device, cells=cells, note=best or "none"))
    return CrossTable(title=f"Which stack on which device, by {criterion.title} (*: best of the device)", columns=tuple(stacks),
                      rows=tuple(rows), note="best")  # fmt: skip


def _why(c: Contender | None, excluded: bool) -> str:
    """Why there is no score: it is out of the running, it does not fit, or nobody has asked or knows."""
    if excluded:
        return CANNOT_RUN
    return DOES_NOT_FIT if c is not None and not c.fits else "-"


def by_network(comparisons: Sequence[Comparison]) -> CrossTable | None:
    """Throughput of every device on every network, the best of each network marked; None for one network.

    The note is the geometric mean of the throughput as a share of the best, of devices that run all networks.
    """
    if len(comparisons) < 2:
        return None
    found = [{x.name: x for x in c.all} for c in comparisons]
    best = [max((x.throughput_per_s for x in c.contenders), default=0.0) for c in comparisons]
    rows = []
    for name in dict.fromkeys(name for column in found for name in column):
        cells, shares = list[tuple[float | None, str, bool]](), list[float]()
        for column, top in zip(found, best, strict=True):
            x = column.get(name)
            if x is None or not x.fits:
                cells.append((None, _why(x, x is None), False))
            else:
                cells.append((x.throughput_per_s, "", x.throughput_per_s == top))
                shares.append(x.throughput_per_s / top)
        mean = exp(fsum(map(log, shares)) / len(shares)) if len(shares) == len(comparisons) else None
        row = CrossRow(name=name, cells=tuple(cells), note="-" if mean is None else f"{mean:.3g}")
        rows.append((0.0 if mean is None else mean, row))
    rows.sort(key=lambda pair: -pair[0])
    title = "Throughput on every network (*: best of the network; mean: geometric, of the share of the best)"
    return CrossTable(title=title, columns=tuple([c.network for c in comparisons]), rows=tuple([row for _, row in rows]),
                      note="mean")  # fmt: skip
