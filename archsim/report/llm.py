"""A served language model as text, JSON and a table of a notebook."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from archsim.base.units import grouped, show
from archsim.generation.estimate import SCHEMA, GenerationEstimate
from archsim.report.markup import table as markup_table
from archsim.report.markup import text as markup
from archsim.report.markup import words
from archsim.report.text import clean, table

PARTS = ("weights", "kv_cache", "activations", "compute_buffers", "cuda_graphs", "reserved")


def llm_record(found: GenerationEstimate) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **json.loads(json.dumps(asdict(found)))}


def heading(found: GenerationEstimate) -> str:
    """What was asked, on one line."""
    shares = [f"{name} {count}" for name, count in (("tp", found.tensor_parallel), ("pp", found.pipeline_parallel),
              ("ep", found.expert_parallel)) if count > 1]  # fmt: skip
    many = f"{found.devices} x " if found.devices > 1 else ""
    formats = f"{found.precision}" + ("" if found.weights == found.precision else f", weights {found.weights}")
    formats += "" if found.kv == found.precision else f", kv {found.kv}"
    asked = "request" if found.batch == 1 else "requests"
    return (f"{clean(found.network)} on {many}{clean(found.hardware_name)} with {found.engine}, {formats}: {found.batch} "
            f"{asked} of {found.input} + {found.output} tokens{', ' + ', '.join(shares) if shares else ''}")  # fmt: skip


def figures_of(found: GenerationEstimate) -> list[tuple[str, str, str]]:
    """The numbers with their intervals and what limits them."""
    limits = found.limited_by
    return [
        ("time to first token", _between(found.ttft_s, found.ttft_interval_s, "s"),
         f"of all; of the first {show(found.ttft_first_s, 's', 3)}, mean {show(found.ttft_mean_s, 's', 3)}; limited by "
         f"{limits['prefill']}"),
        ("time per token", _between(found.tpot_s, found.tpot_interval_s, "s"), f"limited by {limits['decode']}"),
        ("end to end", _between(found.e2e_s, found.e2e_interval_s, "s"), ""),
        ("throughput", f"{grouped(found.tokens_per_s)} tokens/s ({' to '.join(map(grouped, found.tokens_per_s_interval))})",
         f"{grouped(found.total_tokens_per_s)} with prompts"),
        ("energy per token", _between(found.energy_per_token_j, found.energy_per_token_interval_j, "J"),
         f"{_between(found.power_w, found.power_interval_w, 'W')} on average, "
         f"{'all devices' if found.devices > 1 else 'the board'}"),
        ("largest batch", f"{found.max_batch}", f"of {found.input + found.output} tokens"),
        ("largest context", f"{found.max_context}", f"tokens of each of {min(found.batch, found.max_batch)}"),
    ]  # fmt: skip


def llm_text(found: GenerationEstimate) -> str:
    """Heading, figures, phases, memory, basis, command, assumptions and warnings."""
    phases = [
        (name, show(one.time_s, "s", 4), ", ".join(f"{what} {100 * time / one.time_s:.0f} %" for what, time in _main(one)))
        for name, one in found.phases.items() if one.time_s > 0
    ]  # fmt: skip
    memory = [(part.replace("_", " "), show(found.memory_bytes[part], "B", 3),
               f"{show(found.memory_bytes['kv_per_layer'], 'B', 3)} a layer" if part == "kv_cache" else "")
              for part in PARTS if found.memory_bytes[part] > 0]  # fmt: skip
    memory.append(("total", show(found.memory_bytes["total"], "B", 3), f"of {show(found.memory_room_bytes, 'B', 3)} that the "
                   f"engine may take{'' if found.fits else ': DOES NOT FIT'}"))  # fmt: skip
    notes = [f"intervals   {100 * found.interval_level:.0f} %, from {found.interval_basis}"]
    notes += [f"measured    {line}" for line in measured_lines(found)]
    notes += [f"basis       {name}: {said}" for name, said in found.basis.items()]
    notes += [f"measure     {found.benchmark}"] if found.benchmark else []
    notes += [f"assumed     {line}" for line in found.assumptions] + [f"warning     {line}" for line in found.warnings]
    return "\n\n".join([
        heading(found), table(("", "figure", ""), figures_of(found)), table(("phase", "time", "of which"), phases),
        table(("memory of a device", "", ""), memory), "\n".join(map(clean, notes)),
    ])  # fmt: skip


METRICS = {  # of a published run -> what it is called here, and its unit
    "ttft_s": ("time to first token", "s"), "decode_s_per_token": ("time per token", "s"), "tpot_s": ("time per token", "s"),
    "e2e_s": ("end to end", "s"), "tokens_per_s": ("throughput", "tokens/s"), "power_w": ("power", "W"),
    "energy_j_per_token": ("energy per token", "J"),
}  # fmt: skip


def measured_of(found: GenerationEstimate) -> list[tuple[str, str, str, str]]:
    """What was measured, the value, the prediction of that run, and the error, for each published measurement."""
    rows = []
    for one in found.references:
        name, unit = METRICS[one.metric]
        was, now = (f"{grouped(v)} {unit}" if unit == "tokens/s" else show(v, unit) for v in (one.measured, one.predicted))
        rows.append((name, was, now, f"{100 * one.error:+.1f} %"))
    return rows


def measured_run(found: GenerationEstimate) -> str:
    """Which run was measured, where, and whether it is the one that was asked for."""
    if not found.references:
        many = f"{found.devices} x " if found.devices > 1 else ""
        return f"no shipped run of {found.network} on {many}{found.hardware}, all of whose requests arrive at once"
    one = found.references[0]
    run = f"{one.source}; {one.engine}, {one.precision}, batch {one.batch}, {one.input} + {one.output} tokens"
    return f"{run}: the same run" if one.same else f"{run}: the nearest run"


def measured_lines(found: GenerationEstimate) -> list[str]:
    """A line for each published measurement, the run in front of them."""
    rows = measured_of(found)
    return [measured_run(found), *(f"{name} {was}, predicted {now}, error {error}" for name, was, now, error in rows)]


def measured_section(found: GenerationEstimate) -> str:
    """Published measurements of the run, or of the nearest, beside its prediction."""
    rows = [tuple(map(words, row)) for row in measured_of(found)]
    listed = markup_table(("what", "measured", "predicted for it", "error"), rows) if rows else ""
    return f'<h2>Measured by others</h2>\n<p class="quiet">{markup(measured_run(found))}</p>\n{listed}'


def llm_table(found: GenerationEstimate) -> str:
    """The figures, for a notebook."""
    rows = "".join(f'<tr><th style="text-align:left">{markup(name)}</th><td>{markup(value)}</td><td>{markup(said)}</td></tr>\n'
                   for name, value, said in figures_of(found))  # fmt: skip
    caption = f"<b>{markup(heading(found))}</b>"
    return f'<table>\n<caption style="text-align:left">{caption}</caption>\n<tbody>\n{rows}</tbody>\n</table>'


def _main(phase: Any) -> list[tuple[str, float]]:
    return [(name, value) for name, value in phase.breakdown_s.items() if value > 0.005 * phase.time_s]


def _between(value: float, ends: tuple[float, float], unit: str) -> str:
    return f"{show(value, unit, 4)} ({show(ends[0], unit, 3)} to {show(ends[1], unit, 3)})"
