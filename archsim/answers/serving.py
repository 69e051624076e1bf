"""What a simulated server says: the rate that it keeps and why, latencies, use and energy, how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.answers.estimate import counted, interval, listed, spread_of
from archsim.base.units import grouped, show
from archsim.render.blocks import Axis, Block, Cell, Chart, Facts, Piece, Series, Table, Verdict, columns, number, stacked, words
from archsim.simulate.serve import MULTI_STREAM, SCHEMA, BatchMean, LoadPoint, Serving, better_batch, why_rate

SOME = 8  # sizes of batches that are listed
CONFIDENCE = 0.95  # of the intervals of a simulation
SAME = 1e-9  # relative; an interval that is no longer is none
STEADY = {"SingleStream": "one sample after the other", "MultiStream": f"queries of {MULTI_STREAM} samples"}


def record(s: Serving) -> dict[str, Any]:
    """Plain values for JSON; batch sizes are keys and therefore text."""
    found: dict[str, Any] = {"schema": SCHEMA, **asdict(s)}
    found["batching"] = {"max": s.batching.most, "wait_s": s.batching.wait_s}
    found["batch_latency_s"] = {str(size): time for size, time in s.batch_latency_s.items()}
    return found


def sections(s: Serving, curve: Sequence[LoadPoint] = ()) -> list[Block]:
    """The blocks of an answer; `curve` is the latency at other loads."""
    expected, chosen = spread_of(s.assumptions)
    trust = [("expected", expected), ("simulated", f"{s.requests:,} requests; percentiles leave out the first tenth of them"),
             ("stack", s.stack_rows.words), ("assumed", counted(chosen))]  # fmt: skip
    table = [latency_table(s)] if s.latency_s is not None else []
    return [verdict(s), *table, Facts(title="How far to trust it", rows=trust), *([load_chart(s, curve)] if curve else []),
            batch_table(s), listed(chosen)]  # fmt: skip


def verdict(s: Serving) -> Verdict:
    """The rate that was asked for or found, the latency of the slowest, energy and use; and why it is no more."""
    rule = STEADY.get(s.scenario, f"batches of up to {s.batching.most}")
    rule += f", wait {show(s.batching.wait_s, 's', 3)}" if s.batching.wait_s and s.scenario not in STEADY else ""
    many = "" if s.devices == 1 else f"{s.devices} x "
    asked = [s.scenario, s.precision, s.stack, rule, *([f"p99 within {show(s.bound_s, 's', 3)}"] if s.bound_s else [])]
    lines = [_rate(s)]
    if s.latency_s is not None:
        tail, half = s.latency_s["p99"], s.latency_s["p50"]
        lines.append((f"{show(tail.value, 's', 3)} at p99", _sure(tail), f"{show(half.value, 's', 3)} at p50"))
    if s.throughput_per_s is not None and s.utilisation is not None and s.mean_batch is not None:
        lines.append((f"{100 * s.utilisation:.3g} % busy", "one device" if s.devices == 1 else f"{s.devices} devices",
                      f"{s.mean_batch:.3g} in a batch, {grouped(s.throughput_per_s)} samples/s"))  # fmt: skip
    if s.energy_per_request_j is not None and s.power_w is not None:
        lines.append((f"{show(s.energy_per_request_j, 'J', 3)} per sample", "idle time included", show(s.power_w, "W", 3)))
    return Verdict(title=f"{s.network} served by {many}{s.hardware_name}", asked=asked, lines=lines,
                   sentences=[*_sentence(s), *better_batch(s)])  # fmt: skip


def _rate(s: Serving) -> tuple[str, str, str]:
    full = f"of {grouped(s.capacity_per_s)} in full batches"
    if s.highest_rate_per_s is not None and s.bound_s is not None:
        return (f"{grouped(s.highest_rate_per_s, 3)} requests/s", f"within {show(s.bound_s, 's', 3)} at p99", full)
    if s.rate_per_s is not None:
        return (f"{grouped(s.rate_per_s)} requests/s", "arrive" if s.stable else "arrive: TOO MANY", full)
    return (f"{grouped(s.throughput_per_s or s.capacity_per_s)} samples/s", "served", full if s.scenario == "Offline" else "")


def _sentence(s: Serving) -> list[str]:
    """The verdict in words; without a reason the numbers alone."""
    because = why_rate(s)
    if s.highest_rate_per_s is None or s.bound_s is None:
        return [f"{because[0].upper()}{because[1:]}."] if because else []
    bound = f"within {show(s.bound_s, 's', 3)} at p99"
    said = f"{grouped(s.highest_rate_per_s, 3)} requests/s {bound}" if s.highest_rate_per_s else f"No rate stays {bound}"
    return [f"{said}{f', because {because}' if because else ''}."]


def _sure(m: BatchMean) -> str:
    """The 95 % confidence interval of a figure, unless it never varies."""
    if m.interval is None:
        return "too few requests for an interval"
    return "always" if m.interval[1] - m.interval[0] <= SAME * m.value else interval(m.interval, "s", CONFIDENCE)


def latency_table(s: Serving) -> Table:
    """Percentiles from arrival to answer, with their intervals and the bound that was asked for, and the mean wait."""
    found = {**(s.latency_s or {}), **({"of which waiting, mean": s.wait_s} if s.wait_s is not None else {})}
    longest = 1.03 * max([*(m.value for m in found.values()), *([s.bound_s] if s.bound_s else [])])
    rows = [[words(name), number(m.value, "s", 4, tone="bad" if name == "p99" and s.bound_s and m.value > s.bound_s else ""),
             words(_sure(m)), _bar(m.value, longest, s.bound_s)] for name, m in found.items()]  # fmt: skip
    heads = columns("", "", "confidence", "", numbers=(1,), bars=(3,))
    note = [f"The line is the limit of {show(s.bound_s, 's', 3)}."] if s.bound_s else []
    return Table(title="Latency from arrival to answer", columns=heads, rows=rows, notes=note)


def _bar(value: float, longest: float, bound: float | None) -> Cell:
    limit = [Piece(start=0.0, end=bound / longest, sign="|", tip=f"limit {show(bound, 's', 3)}")] if bound else []
    return Cell(bar=[Piece(start=0.0, end=value / longest, tone="0"), *limit], value=value)


def batch_table(s: Serving) -> Table:
    """A few of the sizes of batches that occurred: time, and what a device then serves."""
    sizes = list(s.batch_latency_s)
    if len(sizes) > SOME:
        sizes = sorted({sizes[round(i * (len(sizes) - 1) / (SOME - 1))] for i in range(SOME)})
    longest = max(s.batch_latency_s.values())
    rows = [[words(f"{size} request{'' if size == 1 else 's'}"), number(s.batch_latency_s[size], "s"),
             words(f"{grouped(size / s.batch_latency_s[size], 3)}/s"),
             stacked({"time": s.batch_latency_s[size]}, longest, "s", {"time": "0"})] for size in sizes]  # fmt: skip
    heads = columns("", "time", "a device serves", "", numbers=(1, 2), bars=(3,))
    return Table(columns=heads, rows=rows, title="Time of a batch", level=1)


def load_chart(s: Serving, curve: Sequence[LoadPoint]) -> Chart:
    """Latencies at other rates, the rate of this run, and the limit."""
    rates = [point.rate_per_s for point in curve]
    lines = [Series(name=name, x=rates, y=[point.latency_s[name] for point in curve],
                    tips=[f"{name} at {grouped(rate, 3)}/s: {show(point.latency_s[name], 's', 3)}"
                          for rate, point in zip(rates, curve, strict=True)]) for name in curve[0].latency_s]  # fmt: skip
    here: list[Any] = [("x", s.rate_per_s, f"{grouped(s.rate_per_s, 3)}/s")] if s.rate_per_s else []
    limit: list[Any] = [("y", s.bound_s, f"limit {show(s.bound_s, 's', 3)}")] if s.bound_s else []
    note = (f"The same queue at {len(curve)} rates up to {100 * curve[-1].share:.0f} % of the {grouped(s.capacity_per_s, 3)} "
            "requests per second that full batches serve.")  # fmt: skip
    return Chart(title="Latency against load", series=lines, guides=[*here, *limit], notes=[note], height=380,
                 x=Axis(title="requests per second", log=False, ends=(0.0, 1.02 * max(rates))),
                 y=Axis(title="latency", unit="s", log=True))  # fmt: skip
