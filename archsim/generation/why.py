"""What limits an engine that answers requests, in a few words: the time of a token, the reading of prompts, what would help."""

from __future__ import annotations

from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.generation.estimate import GenerationEstimate, PhaseEstimate
from archsim.generation.step import ENGINE_HOST, LINKS

WORDS = {LINKS: "links between devices", ENGINE_HOST: "the engine's own work on the CPU"}
HELPS = {LINKS: "fewer devices or faster links shorten it", ENGINE_HOST: "a faster CPU or larger batches shorten it"}
MOSTLY = 0.3  # of what a token reads: weights that are as much are worth a larger batch


def limit_word(name: str) -> str:
    """What a reader calls a limit of a step.

    >>> limit_word("dram"), limit_word("links")
    ('memory', 'links between devices')
    """
    return WORDS.get(name) or bound_word(name)


def why(e: GenerationEstimate) -> list[str]:
    """What decides the time of a token, what would shorten it, and what decides how fast prompts are read."""
    found = [_decode(e), _larger(e)] if e.phases["decode"].time_s > 0 else []
    return [*filter(None, found), _prefill(e)]


def read_per_token(e: GenerationEstimate) -> float:
    """What each device reads and writes for one token of all requests that run at once [B]."""
    return e.phases["decode"].dram_bytes / (max(1, e.output - 1) * e.waves * e.devices)


def _share(phase: PhaseEstimate) -> str:
    return f"{100 * phase.breakdown_s[phase.limited_by] / phase.time_s:.0f} % of the time"


def _decode(e: GenerationEstimate) -> str:
    phase, running = e.phases["decode"], min(e.batch, e.max_batch)
    name = phase.limited_by
    many = "one request" if running == 1 else f"each of {running} requests"
    if name == "dram":
        on = " each device reads" if e.devices > 1 else " it reads"
        return (f"Decode waits for memory ({_share(phase)}): for a token of {many}{on} {show(read_per_token(e), 'B', 3)}, "
                "weights and cached keys and values.")  # fmt: skip
    helps = f"; {HELPS[name]}" if name in HELPS else ""
    return f"Decode is limited by {limit_word(name)} ({_share(phase)}){helps}."


def _larger(e: GenerationEstimate) -> str:
    weights = e.phases["decode"].limited_by == "dram" and e.memory_bytes["weights"] > MOSTLY * read_per_token(e)
    if weights and e.max_batch >= 2 * e.batch:
        return f"A larger batch reads the same weights once: up to {e.max_batch:,} requests fit."
    return ""


def _prefill(e: GenerationEstimate) -> str:
    phase = e.phases["prefill"]
    rate = f"{show(phase.flop / phase.time_s / e.devices, 'FLOP/s', 3)}{' on each device' if e.devices > 1 else ''}"
    return (f"Prompts of {e.batch * e.input:,} tokens are limited by {limit_word(phase.limited_by)} ({_share(phase)}), "
            f"at {rate}.")  # fmt: skip
