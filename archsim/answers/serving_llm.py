"""What a language model under arriving requests says: requests within limits, tokens, waits, energy."""

from __future__ import annotations

from archsim.answers import tagged
from archsim.answers.estimate import counted, listed
from archsim.base.units import grouped, show
from archsim.render.blocks import Block, Facts, Table, Verdict, columns, number, words
from archsim.simulate.serve_llm import SCHEMA, TextServing, why_served

WAITS = {"ttft": "time to first token", "tpot": "time per token", "itl": "between tokens", "e2e": "end to end"}
PERCENTILES = ("mean", "p50", "p90", "p99")


record = tagged(SCHEMA)


def sections(s: TextServing) -> list[Block]:
    """The blocks of an answer."""
    trust = [("measured", "no run of a model under arriving requests is compared here"), ("engine", s.stack_rows.words),
             ("assumed", counted(s.assumptions))]
    seed = "recorded arrivals" if s.seed is None else f"drawn with seed {s.seed}"
    details = [("run", f"{s.steps:,} steps of the engine in {show(s.duration_s, 's', 4)}; {seed}"),
               ("tokens", f"{s.input_tokens:,} of prompts, {s.output_tokens:,} of answers")]  # fmt: skip
    return [verdict(s), latency_table(s), Facts(title="How far to trust it", rows=trust),
            Facts(title="In detail", rows=details, level=2), listed(s.assumptions)]  # fmt: skip


def verdict(s: TextServing) -> Verdict:
    """Requests that keep the limits, tokens per second, energy, and what is held at once; and what limits it."""
    drawn = "all at once" if s.rate_per_s is None else f"{grouped(s.rate_per_s)} requests/s"
    tokens = " + ".join(grouped(count / s.requests, 3) for count in (s.input_tokens, s.output_tokens))
    asked = ["recorded arrivals" if s.seed is None else drawn, f"{s.requests:,} requests of {tokens} tokens", s.engine,
             *([f"{s.servers} servers, reading and generating apart"] if s.split else [])]
    lines = []
    if s.goodput_per_s is not None and s.kept is not None:
        within = ", ".join(f"{name} {show(most, 's', 3)}" for name, most in s.limits_s.items())
        lines.append((f"{grouped(s.goodput_per_s, 3)} requests/s", f"within {within}", f"{100 * s.kept:.1f} % of all"))
    busy = ", ".join(f"{100 * share:.0f} %" for share in s.utilisation)
    lines += [
        (show(s.tokens_per_s, "tokens/s", 3), f"{grouped(s.requests_per_s, 3)} requests/s",
         f"{grouped(s.total_tokens_per_s, 3)} tokens/s with prompts"),
        (f"{show(s.energy_per_token_j, 'J', 3)} per token", "idle time included", f"{show(s.power_w, 'W', 3)}, busy {busy}"),
        (f"{s.running:,} at once", f"{s.preemptions:,} put back", f"the cache holds {s.cache_tokens:,} tokens"),
    ]  # fmt: skip
    many = "" if s.devices == 1 else f"{s.devices} x "
    return Verdict(title=f"{s.network} on {many}{s.hardware_name}", asked=asked, lines=lines, sentences=[why_served(s)])


def latency_table(s: TextServing) -> Table:
    """What users wait for, and the limits that were asked for."""
    found = {name: spread for name, spread in (("ttft", s.ttft_s), ("tpot", s.tpot_s), ("itl", s.itl_s), ("e2e", s.e2e_s))
             if spread is not None}  # fmt: skip
    rows = [[words(WAITS[name]), *(number(getattr(spread, share), "s", 4) for share in PERCENTILES),
             number(s.limits_s.get(name), "s") if s.limits_s else words("")]
            for name, spread in found.items()]  # fmt: skip
    heads = columns("", *PERCENTILES, "limit", numbers=range(1, 6), spare=(1,))
    note = "tpot: a request's mean time per token; between tokens: over all tokens, as vllm bench serve counts them."
    return Table(title="What users wait", columns=heads, rows=rows, notes=[note])
