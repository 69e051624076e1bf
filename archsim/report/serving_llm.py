"""A served language model under arriving requests as text and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.base.units import grouped, show
from archsim.report.text import clean, table
from archsim.simulate.serve_llm import SCHEMA, LatencySpread, TextServing


def serving_llm_record(found: TextServing) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **asdict(found)}


def serving_llm_text(found: TextServing) -> str:
    """Heading, latencies, rates, and what was assumed."""
    many = f"{found.servers} servers, reading and generating apart, " if found.split else ""
    rate = "all at once" if found.rate_per_s is None else f"{grouped(found.rate_per_s)} requests/s"
    rate = rate if found.seed is not None else "recorded"
    head = (f"{found.network} on {found.devices} x {found.hardware_name} with {found.engine}: {many}{found.requests:,} requests, "
            f"{rate}, {found.input_tokens:,} + {found.output_tokens:,} tokens")  # fmt: skip
    busy = ", ".join(f"{100 * share:.1f} %" for share in found.utilisation)
    spreads = (("time to first token", found.ttft_s), ("time per token", found.tpot_s), ("between tokens", found.itl_s),
               ("end to end", found.e2e_s))  # fmt: skip
    rows = [(name, *_cells(one)) for name, one in spreads if one is not None]
    lines = [
        ("throughput", f"{grouped(found.tokens_per_s)} tokens/s ({grouped(found.total_tokens_per_s)} with prompts), "
                       f"{grouped(found.requests_per_s)} requests/s over {show(found.duration_s, 's', 4)}"),
        ("at once", f"{found.running} requests at most, {found.preemptions} put back; the cache holds {found.cache_tokens:,} "
                    "tokens"),
        ("busy", f"{busy} of the time; limited by {found.limited_by}"),
        ("energy", f"{show(found.energy_per_token_j, 'J', 3)} per token, idle time included; {show(found.power_w, 'W', 3)}"),
    ]  # fmt: skip
    if found.goodput_per_s is not None and found.kept is not None:
        within = ", ".join(f"{name} {show(most, 's', 3)}" for name, most in found.limits_s.items())
        kept = f"{100 * found.kept:.1f} % of all"
        lines.insert(1, ("goodput", f"{grouped(found.goodput_per_s)} requests/s within {within}: {kept}"))
    lines += [("assumed", note) for note in found.assumptions]
    body = "\n".join(clean(f"{name:12} {text}") for name, text in lines)
    return "\n\n".join([clean(head), table(("", "mean", "p50", "p90", "p99"), rows), body])


def _cells(one: LatencySpread) -> list[str]:
    return [show(value, "s", 4) for value in (one.mean, one.p50, one.p90, one.p99)]
