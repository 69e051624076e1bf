"""A serving simulation as text and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.base.units import grouped, show
from archsim.report.text import clean
from archsim.simulate.interval import BatchMean
from archsim.simulate.serve import MULTI_STREAM, SCHEMA, Serving


def serving_record(s: Serving) -> dict[str, Any]:
    """Plain values for JSON; batch sizes are keys and therefore text."""
    words: dict[str, Any] = {"schema": SCHEMA, **asdict(s)}
    words["batching"] = {"max": s.batching.most, "wait_s": s.batching.wait_s}
    words["batch_latency_s"] = {str(size): time for size, time in s.batch_latency_s.items()}
    return words


def serving_text(s: Serving) -> str:
    """The result as text."""
    title, rows = serving_lines(s)
    return "\n".join([clean(title), "", *(clean(f"{name:12} {text}".rstrip()) for name, text in rows)])


def serving_lines(s: Serving) -> tuple[str, list[tuple[str, str]]]:
    """The title, and rows of (name, text)."""
    rule = {"SingleStream": "one sample after the other", "MultiStream": f"queries of {MULTI_STREAM} samples"}.get(s.scenario, "")
    rule = rule or f"batches of up to {s.batching.most}"
    rule += f", wait {show(s.batching.wait_s, 's', 3)}" if s.batching.wait_s and s.scenario in ("Server", "Offline") else ""
    many = "" if s.devices == 1 else f"{s.devices} x "
    rows = _rates(s)
    if s.latency_s is not None and s.wait_s is not None:
        rows += [("latency" if i == 0 else "", f"{name:5} {_measured(m)}") for i, (name, m) in enumerate(s.latency_s.items())]
        rows.append(("waiting", f"{'mean':5} {_measured(s.wait_s)}"))
    rows += _use(s)
    rows += [("batches", ", ".join(f"{n}: {show(time, 's', 3)}" for n, time in _some(s).items()))]
    rows += [("assumed", note) for note in s.assumptions]
    return f"{s.network} on {many}{s.hardware_name}: {s.scenario}, {s.precision}, stack {s.stack}, {rule}", rows


def _rates(s: Serving) -> list[tuple[str, str]]:
    rows = []
    if s.rate_per_s is not None:
        rows.append(("arrivals", f"{grouped(s.rate_per_s)} requests/s, {s.requests:,} of them"))
    if s.scenario in ("Server", "Offline"):
        rows.append(("capacity", f"{grouped(s.capacity_per_s)} requests/s in full batches"))
    if s.highest_rate_per_s is not None and s.bound_s is not None:
        bound = show(s.bound_s, "s", 3)
        found = (f"{grouped(s.highest_rate_per_s)} requests/s keep p99 within {bound}" if s.highest_rate_per_s > 0 else
                 f"none keeps p99 within {bound}: a single request takes longer")  # fmt: skip
        rows += [("highest rate", found), *([("why", said)] if (said := why_rate(s)) else [])]
    if not s.stable and s.rate_per_s is not None:
        rows.append(("unstable", "requests arrive faster than full batches are served, so the queue grows without end"))
    return rows


def why_rate(s: Serving) -> str:
    """Why the highest rate is what it is: what a request takes that meets a batch under way. Empty for several devices."""
    if s.bound_s is None or not s.highest_rate_per_s or s.devices > 1 or not s.batch_latency_s:
        return ""
    wait = s.batching.wait_s if s.batching.most > 1 else 0.0
    size = max((n for n, time in s.batch_latency_s.items() if wait + 2 * time <= s.bound_s), default=0)
    time = s.batch_latency_s[size or min(s.batch_latency_s)]
    one, two, bound = (show(value, "s", 3) for value in (time, wait + 2 * time, s.bound_s))
    others = f", up to {show(wait, 's', 3)} for others" if wait else ""
    if not size:
        return (f"a request that meets a batch under way waits up to {one} for it{others} and then takes {one}: {two}. Below a "
                f"limit of {two} only a device that is idle nearly always keeps it; a shorter batch (--graph, another --stack) "
                "or a longer limit raises the rate")  # fmt: skip
    waits = f"a request waits for the batch under way{others} and then for its own: two"
    if size >= s.batching.most:
        return f"{waits} full batches of {size} take {two} of {bound}; above this rate more than one batch waits in the queue"
    return f"{waits} batches of {size} take {two} of {bound}; above this rate batches grow beyond that"


def _use(s: Serving) -> list[tuple[str, str]]:
    if s.throughput_per_s is None or s.utilisation is None or s.energy_per_request_j is None or s.power_w is None:
        return []
    each = "one device" if s.devices == 1 else f"{s.devices} devices"
    return [
        ("throughput", f"{grouped(s.throughput_per_s)} samples/s, {s.mean_batch:.3g} in a batch"),
        ("utilisation", f"{100 * s.utilisation:.1f} % of the time of {each}"),
        ("energy", f"{show(s.energy_per_request_j, 'J', 3)} per sample, idle time included; {show(s.power_w, 'W', 3)}"),
    ]


def _measured(m: BatchMean) -> str:
    """A figure with its interval, unless it never varies."""
    if m.interval is None:
        return f"{show(m.value, 's'):10} too few requests for an interval"
    low, high = m.interval
    if high - low <= 1e-9 * m.value:
        return show(m.value, "s")
    return f"{show(m.value, 's'):10} {show(low, 's')} to {show(high, 's')}"


def _some(s: Serving, most: int = 6) -> dict[int, float]:
    """A few of the batch sizes that occurred, the smallest and the largest among them."""
    sizes = list(s.batch_latency_s)
    if len(sizes) > most:
        sizes = sorted({sizes[round(i * (len(sizes) - 1) / (most - 1))] for i in range(most)})
    return {size: s.batch_latency_s[size] for size in sizes}
