"""What estimates of one network on one device at several batches say: totals and where the time goes, a column for each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archsim.answers import estimate as one
from archsim.base.units import grouped, show
from archsim.cost.bounds import bound_word
from archsim.estimation.result import Estimate
from archsim.render.blocks import Block, Cell, Table, Verdict, columns, number, percent, words

MOST_GROUPS = 6  # kinds of layer that have a row; the others share one
SEEN = 0.005  # of the latency: less rounds to 0 %
ROWS: tuple[tuple[str, Callable[[Estimate], Cell]], ...] = (
    ("latency", lambda e: number(e.latency_s, "s")),
    ("per {sample}", lambda e: number(e.latency_s / e.batch, "s")),
    ("{sample}/s", lambda e: words(grouped(e.throughput_per_s))),
    ("power", lambda e: number(e.power_w, "W")),
    ("energy per {sample}", lambda e: number(e.energy_j / e.batch, "J")),
    ("memory", lambda e: words(show(e.memory_bytes, "B", 3) + ("" if e.fits else " NO"), tone="" if e.fits else "bad")),
    ("limited by", lambda e: words(bound_word(e.limited_by))),
)


def record(found: Sequence[Estimate]) -> list[dict[str, Any]]:
    """The records of the estimates."""
    return [one.record(e) for e in found]


def csv(found: Sequence[Estimate]) -> str:
    """One row per op and batch."""
    return one.csv(*found)


def sections(found: Sequence[Estimate]) -> list[Block]:
    """Totals, and the shares of the time by kind of layer."""
    first = found[0]
    head = [f"batch {e.batch}" for e in found]
    listed = f"batch {', '.join(str(e.batch) for e in found)}"
    asked = [listed if part == f"batch {first.batch}" else part for part in one.asked(first)]
    totals = [[words(name.format(sample=first.sample)), *(of(e) for e in found)] for name, of in ROWS]
    shares = [time_by_kind(e) for e in found]
    rows = [[words(kind), *(percent(share.get(kind, 0.0), ".0f") for share in shares)] for kind in kinds_of(shares)]
    missing = [] if all(e.fits for e in found) else ["NO: does not fit the memory"]
    right = range(1, len(found) + 1)
    return [Verdict(title=one.title(first), asked=asked, sentences=[verdict(found)]),
            Table(columns=columns("", *head, numbers=right), rows=totals, notes=missing),
            Table(title="Where the time goes", columns=columns("kind of layer", *head, numbers=right), rows=rows)]  # fmt: skip


def verdict(found: Sequence[Estimate]) -> str:
    """What the largest batch that fits gains over the smallest: its rate and the energy of a sample."""
    first, last = found[0], [e for e in found if e.fits or e is found[0]][-1]
    if first is last:
        return f"No larger batch than {first.batch} fits."
    energy = (last.energy_j / last.batch) / (first.energy_j / first.batch)
    faster = last.throughput_per_s / first.throughput_per_s
    more = f"{100 * abs(1.0 - energy):.0f} % {'less' if energy < 1 else 'more'} energy per {first.sample}"
    return (f"Batch {last.batch} does {faster:.2f} times the {one.rate_unit(first)} of batch {first.batch}, with {more}; "
            f"a batch takes {last.latency_s / first.latency_s:.3g} times as long.")  # fmt: skip


def time_by_kind(e: Estimate) -> dict[str, float]:
    """The share of the latency that each kind of layer adds."""
    found: dict[str, float] = {}
    for op in e.ops:
        found[op.kind] = found.get(op.kind, 0.0) + op.time_s / e.latency_s
    return found


def kinds_of(shares: Sequence[dict[str, float]]) -> list[str]:
    """The kinds of layer that take most at any batch, largest first; what is left is added to `others` in each of `shares`."""
    most = {kind: max(share.get(kind, 0.0) for share in shares) for share in shares for kind in share}
    shown = sorted((kind for kind in most if most[kind] >= SEEN), key=lambda kind: -most[kind])[:MOST_GROUPS]
    for share in shares:
        share["others"] = sum(value for kind, value in share.items() if kind not in shown)
    return [*shown, *(["others"] if any(share["others"] >= SEEN for share in shares) else [])]
