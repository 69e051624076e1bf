"""What a served language model says: how fast it answers, what that costs, what limits a token, how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archsim.answers import tagged
from archsim.answers.estimate import counted, interval, listed
from archsim.base.units import grouped, show
from archsim.generation.estimate import SCHEMA, GenerationEstimate, limit_word, why
from archsim.generation.step import ENGINE_HOST, LINKS
from archsim.render.blocks import Block, Facts, Note, Table, Verdict, columns, number, percent, stacked, words

PARTS = ("weights", "kv_cache", "activations", "compute_buffers", "reserved")
NAMES = {"kv_cache": "keys and values", "reserved": "context and graphs"}
TONES = {LINKS: "link", ENGINE_HOST: "input"}  # of limits that no bound is
NOTABLE = 0.005  # of the time of a phase: less is not listed
RATE = "tokens/s"
RESTS = {"ttft_s": "time to first token", "tpot_s": "time per token", "energy_per_token_j": "energy", "memory_bytes": "memory"}
METRICS = {  # of a published run -> what it is called here, and its unit
    "ttft_s": ("time to first token", "s"), "decode_s_per_token": ("time per token", "s"), "tpot_s": ("time per token", "s"),
    "e2e_s": ("all answered", "s"), "tokens_per_s": ("throughput", RATE), "power_w": ("power", "W"),
    "energy_j_per_token": ("energy per token", "J"),
}  # fmt: skip


record = tagged(SCHEMA)


def sections(e: GenerationEstimate) -> list[Block]:
    """The blocks of an estimate."""
    first = {said: name for name, said in reversed([*e.basis.items()])}  # each text once, by the first that rests on it
    rest = [(RESTS.get(name, name), said) for name, said in e.basis.items() if first[said] == name]
    return [
        verdict(e), *(Note(text=line, tone="warning") for line in e.warnings), phases_table(e),
        Facts(title="How far to trust it", rows=trust(e)), memory_table(e),
        Facts(title="What the numbers rest on", rows=[*rest, ("measure it", e.benchmark)], level=2),
        listed(e.assumptions),
    ]  # fmt: skip


def title(e: GenerationEstimate) -> str:
    """What runs on what."""
    return f"{e.network} on {f'{e.devices} x ' if e.devices > 1 else ''}{e.hardware_name}"


def asked(e: GenerationEstimate) -> list[str]:
    """What runs, part by part."""
    ways = ((f"tensor parallel {e.tensor_parallel}", e.tensor_parallel > 1),
            (f"pipeline parallel {e.pipeline_parallel}", e.pipeline_parallel > 1),
            (f"expert parallel {e.expert_parallel}", e.expert_parallel > 1), (f"weights {e.weights}", e.weights != e.precision),
            (f"keys and values {e.kv}", e.kv != e.precision), (f"speculative {e.speculative}", e.speculative))  # fmt: skip
    many = f"{e.batch} request{'s' if e.batch > 1 else ''} of {e.input} + {e.output} tokens"
    return [many, e.precision, e.engine, *(text for text, holds in ways if holds)]


def verdict(e: GenerationEstimate) -> Verdict:
    """Rate, waits, energy and memory, each with how sure it is; and what decides them."""
    def sure(ends: tuple[float, float], unit: str) -> str:
        return interval(ends, unit, e.interval_level)

    spread = f"{show(e.ttft_first_s, 's', 3)} for the first request, {show(e.ttft_mean_s, 's', 3)} on average"
    kept = e.memory_bytes["kv_cache"] / e.memory_bytes["total"]
    least, most = (show(end, "W", 3) for end in e.power_interval_w)
    boards = " of all devices" if e.devices > 1 else ""
    lines = [
        (show(e.tokens_per_s, RATE, 3), sure(e.tokens_per_s_interval, RATE), f"{grouped(e.total_tokens_per_s, 3)} with prompts"),
        (f"{show(e.ttft_s, 's', 3)} to first token", sure(e.ttft_interval_s, "s"), spread if e.batch > 1 else ""),
        *([(f"{show(e.tpot_s, 's', 3)} per token", sure(e.tpot_interval_s, "s"),
            f"{grouped(1 / e.tpot_s, 3)} tokens/s for each request")] if e.tpot_s else []),
        (f"{show(e.e2e_s, 's', 3)} for all", sure(e.e2e_interval_s, "s"), "until the last answer is whole"),
        (f"{show(e.energy_per_token_j, 'J', 3)} per token", sure(e.energy_per_token_interval_j, "J"),
         f"{show(e.power_w, 'W', 3)}{boards} ({least} to {most})"),
        (f"{show(e.memory_bytes['total'], 'B', 3)} of {show(e.memory_room_bytes, 'B', 3)}",
         f"fits up to {e.max_batch:,} requests" if e.fits else "DOES NOT FIT",
         f"{100 * kept:.0f} % are keys and values; contexts up to {e.max_context:,} tokens"),
    ]  # fmt: skip
    return Verdict(title=title(e), asked=asked(e), lines=lines, sentences=why(e))


def phases_table(e: GenerationEstimate) -> Table:
    """Reading prompts and making tokens: how long each takes, and what limits it."""
    live = {name: phase for name, phase in e.phases.items() if phase.time_s > 0}
    longest = max(phase.time_s for phase in live.values())
    tones = {limit_word(limit): TONES.get(limit, limit) for phase in live.values() for limit in phase.breakdown_s}
    rows = [
        [words(name), number(phase.time_s, "s"), percent(phase.time_s / e.e2e_s, ".0f"),
         stacked({limit_word(limit): time for limit, time in phase.breakdown_s.items()}, longest, "s", tones),
         words(", ".join(f"{limit_word(limit)} {100 * time / phase.time_s:.0f} %" for limit, time in phase.breakdown_s.items()
                         if time > NOTABLE * phase.time_s)), number(phase.energy_j, "J")]
        for name, phase in live.items()
    ]  # fmt: skip
    head = columns("", "", "", "", "limited by", "energy", numbers=(1, 2, 5), bars=(3,), spare=(4, 5))
    return Table(title="Where the time goes", columns=head, rows=rows)


def memory_table(e: GenerationEstimate) -> Table:
    """What each device holds, of what the engine may take."""
    held = {NAMES.get(part, part.replace("_", " ")): e.memory_bytes[part] for part in PARTS if e.memory_bytes[part] > 0}
    note = (f"{show(e.memory_bytes['total'], 'B', 3)} of {show(e.memory_room_bytes, 'B', 3)} that the engine may take; at "
            f"{min(e.batch, e.max_batch)} at once a request may be {e.max_context:,} tokens long. Keys and values of a layer "
            f"take {show(e.memory_bytes['kv_per_layer'], 'B', 3)}.")  # fmt: skip
    return held_table(held, e.memory_room_bytes, note)


def held_table(held: Mapping[str, float], room: float, note: str) -> Table:
    """What a device holds, of the room for it [B]."""
    rows = [[words(name), number(size, "B"), percent(size / room), stacked({name: size}, room, "B", {name: "0"})]
            for name, size in held.items()]  # fmt: skip
    heads = columns("", "size", "share", "", numbers=(1, 2), bars=(3,))
    return Table(title="Memory of a device", columns=heads, rows=rows, notes=[note], level=1)


def trust(e: GenerationEstimate) -> list[tuple[str, Any]]:
    """What was measured of the same or the nearest run, what stands behind the intervals, and what is assumed."""
    said = []
    for one in e.references:
        name, unit = METRICS[one.metric]
        said.append(f"{name} {show(one.measured, unit)}, predicted {show(one.predicted, unit)}, {100 * one.error:+.1f} %")
    expected = f"{100 * e.interval_level:.0f} % of runs inside, by {e.interval_basis}"
    return [("measured", [measured_run(e), *said]), ("expected", expected), ("assumed", counted(e.assumptions))]


def measured_run(e: GenerationEstimate) -> str:
    """Which run was measured, where, and whether it is the one that was asked for."""
    if not e.references:
        many = f"{e.devices} x " if e.devices > 1 else ""
        return f"no shipped run of {e.network} on {many}{e.hardware}, all of whose requests arrive at once"
    one = e.references[0]
    run = f"{one.source}; {one.engine}, {one.precision}, batch {one.batch}, {one.input} + {one.output} tokens"
    return f"{run}: {'the same' if one.same else 'the nearest'} run"
