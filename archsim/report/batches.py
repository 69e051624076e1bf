"""Estimates of one network on one device at several batches, side by side as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archsim.base.units import grouped, show
from archsim.estimation.result import Estimate
from archsim.report.text import bound_name, clean, heading, rate_unit, table

MOST_GROUPS = 6  # kinds of layer that have a row; the others share one
SEEN = 0.005  # of the latency: less rounds to 0 %
ROWS: tuple[tuple[str, Callable[[Estimate], str]], ...] = (
    ("latency", lambda e: show(e.latency_s, "s", 3)),
    ("per {sample}", lambda e: show(e.latency_s / e.batch, "s", 3)),
    ("{sample}/s", lambda e: grouped(e.throughput_per_s)),
    ("power", lambda e: show(e.power_w, "W", 3)),
    ("energy per {sample}", lambda e: show(e.energy_j / e.batch, "J", 3)),
    ("memory", lambda e: show(e.memory_bytes, "B", 3) + ("" if e.fits else " NO")),
    ("limited by", lambda e: bound_name(e, e.limited_by)),
)


def batches_text(found: Sequence[Estimate]) -> str:
    """Totals, and the shares of the time by kind of layer, one column for each batch."""
    first = found[0]
    head = tuple(f"batch {e.batch}" for e in found)
    totals = [(name.format(sample=first.sample), *map(of, found)) for name, of in ROWS]
    shares = [time_by_kind(e) for e in found]
    rows = [(clean(kind), *(f"{100 * share.get(kind, 0.0):.0f} %" for share in shares)) for kind in kinds_of(shares)]
    title = heading(first).replace(f"batch {first.batch}", f"batch {', '.join(str(e.batch) for e in found)}")
    missing = [] if all(e.fits for e in found) else ["NO: does not fit the memory"]
    return "\n\n".join([title, verdict(found), "\n".join([table(("", *head), totals), *missing]),
                        "Where the time goes:\n" + table(("kind of layer", *head), rows)])  # fmt: skip


def verdict(found: Sequence[Estimate]) -> str:
    """What the largest batch that fits gains over the smallest: its rate and the energy of a sample."""
    first, last = found[0], [e for e in found if e.fits or e is found[0]][-1]
    if first is last:
        return f"No larger batch than {first.batch} fits."
    energy = (last.energy_j / last.batch) / (first.energy_j / first.batch)
    more = f"{100 * abs(1.0 - energy):.0f} % {'less' if energy < 1 else 'more'} energy per {first.sample}"
    return (f"Batch {last.batch} does {last.throughput_per_s / first.throughput_per_s:.2f} times the {rate_unit(first)} of batch "
            f"{first.batch}, with {more}; a batch takes {last.latency_s / first.latency_s:.3g} times as long.")  # fmt: skip


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
