"""What a model takes to answer a batch of requests: times, energy, memory, limits, and what the numbers rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.base.errors import ArgumentError
from archsim.base.record import Answer
from archsim.base.units import show
from archsim.base.version import __version__
from archsim.calibration.nearness import Question
from archsim.cost.bounds import bound_word
from archsim.device.variant import first_of
from archsim.estimation.hardware import platform_of
from archsim.generation.measured import POWER, TIME, ServedReference, references_of, served_spread
from archsim.generation.memory import largest_batch, largest_context, memory_of, parameters_of, room
from archsim.generation.plan import HALF, WEIGHTS, ServingPlan, serving_plan
from archsim.generation.step import ENGINE_HOST, LINKS, PrefillCost, StepCost, answered
from archsim.stack.catalog import rows_of

SCHEMA = "archsim-llm/1"
WORDS = {LINKS: "links between devices", ENGINE_HOST: "the engine's own work on the CPU"}
HELPS = {LINKS: "fewer devices or faster links shorten it", ENGINE_HOST: "a faster CPU or larger batches shorten it"}
MOSTLY = 0.3  # of what a token reads: weights that are as much are worth a larger batch


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEstimate:
    """One phase of serving: its time and energy, the traffic and arithmetic of all devices, and what limits it.

    breakdown_s: the time by what limits it; `engine` is the host's work between steps, `links` are collectives
    """

    time_s: float
    energy_j: float
    flop: float
    dram_bytes: float
    limited_by: str
    breakdown_s: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationEstimate(Answer):
    """A batch of requests that arrive at once, answered by an engine.

    ttft_s: until every request has its first token; ttft_first_s, ttft_mean_s: until the first has, and on average
    tpot_s: between two tokens of a request after its first; e2e_s: until all are answered
    tokens_per_s: output tokens of all requests over `e2e_s`; total_tokens_per_s counts prompts too
    energy_per_token_j: of all devices, prompts included, for each output token
    waves: groups of requests that run one after the other because the cache of all does not fit
    references: published measurements of the same run, or of the nearest on the same devices
    """

    network: str
    hardware: str
    hardware_name: str
    engine: str
    devices: int
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    node: str | None
    batch: int
    input: int
    output: int
    precision: str
    weights: str
    kv: str
    graph: bool
    speculative: str | None
    parameters: float
    active_parameters: float
    ttft_s: float
    ttft_interval_s: tuple[float, float]
    ttft_first_s: float
    ttft_mean_s: float
    tpot_s: float
    tpot_interval_s: tuple[float, float]
    e2e_s: float
    e2e_interval_s: tuple[float, float]
    tokens_per_s: float
    tokens_per_s_interval: tuple[float, float]
    total_tokens_per_s: float
    energy_j: float
    energy_per_token_j: float
    energy_per_token_interval_j: tuple[float, float]
    power_w: float
    power_interval_w: tuple[float, float]
    memory_bytes: Mapping[str, float]
    memory_room_bytes: float
    fits: bool
    max_batch: int
    max_context: int
    waves: int
    limited_by: Mapping[str, str]
    phases: Mapping[str, PhaseEstimate]
    interval_level: float
    interval_class: str
    interval_basis: str
    basis: Mapping[str, str]
    references: tuple[ServedReference, ...]
    benchmark: str
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    provenance: Mapping[str, str]


def llm(net: str, hw: str, **choices: object) -> GenerationEstimate:
    """Predict a language model that an engine serves; `choices` are those of `archsim.generation.plan.serving_plan`."""
    return estimate_of(serving_plan(net, hw, **choices))  # type: ignore[arg-type]


def estimate_of(plan: ServingPlan) -> GenerationEstimate:
    """The estimate of a plan. Raises ArgumentError where not even one request fits the devices."""
    memory = memory_of(plan, plan.batch, plan.input + plan.output)
    most = largest_batch(plan, plan.input + plan.output)
    if most < 1:
        raise ArgumentError(too_large(plan))
    first, rest, waves = answered(plan, most)
    read, total = first.cost, first.cost.plus(rest)
    tpot = rest.time_s / waves / (plan.output - 1) if plan.output > 1 else 0.0
    learned, active = parameters_of(plan.model)
    tokens, power = plan.batch * plan.output, total.energy_j / total.time_s
    most_w = first_of(plan.spec.device.power.tdp) * plan.devices
    (kind, time), (_, rate), (_, energy) = (served_spread(plan, of) for of in (TIME, "tokens", POWER))
    (low, high), recorded = energy.around(power), plan.stack.serving.graph_sequences
    return GenerationEstimate(
        network=plan.model.name, hardware=plan.spec.identity.id, hardware_name=plan.spec.identity.name, engine=plan.stack.id,
        devices=plan.devices, tensor_parallel=plan.tensor, pipeline_parallel=plan.stages, expert_parallel=plan.experts,
        node=plan.node.id if plan.node else None, batch=plan.batch, input=plan.input, output=plan.output,
        precision=plan.precision, weights=plan.weights, kv=plan.cache, graph=plan.graph,
        speculative=plan.speculative, parameters=learned, active_parameters=active,
        ttft_s=read.time_s, ttft_interval_s=time.around(read.time_s), ttft_first_s=first.first_s, ttft_mean_s=first.mean_s,
        tpot_s=tpot, tpot_interval_s=time.around(tpot), e2e_s=total.time_s, e2e_interval_s=time.around(total.time_s),
        tokens_per_s=tokens / total.time_s, tokens_per_s_interval=rate.around(tokens / total.time_s),
        total_tokens_per_s=plan.batch * (plan.input + plan.output) / total.time_s,
        energy_j=total.energy_j, energy_per_token_j=total.energy_j / tokens,
        energy_per_token_interval_j=energy.around(total.energy_j / tokens), power_w=power,
        power_interval_w=(low, max(power, min(high, most_w))), memory_bytes=memory.parts,
        memory_room_bytes=room(plan), fits=memory.total <= room(plan), max_batch=most,
        max_context=largest_context(plan, min(plan.batch, most)), waves=waves,
        limited_by={"prefill": read.limited_by, "decode": rest.limited_by},
        phases={"prefill": _phase(read), "decode": _phase(rest)}, interval_level=plan.calibration.level, interval_class=kind,
        interval_basis=f"the errors of {time.rows} rows of class {kind}, {rate.rows} of rates and "
        f"{energy.rows} of powers and energies, to none of which a constant was fitted",
        basis=basis(plan), references=references_of(plan), benchmark=command(plan),
        warnings=tuple(said for said, holds in {
            f"the cache of {plan.batch} requests does not fit: {most} run at once, in {waves} waves": waves > 1,
            f"steps of more than {recorded} sequences are not replayed as graphs": plan.batch > recorded > 0 and plan.graph,
        }.items() if holds),
        assumptions=_assumptions(plan, first), provenance=provenance_of(plan),
    )  # fmt: skip


def too_large(plan: ServingPlan) -> str:
    """Why not even one request fits, and what would make it fit."""
    one, have = memory_of(plan, 1, plan.input + plan.output), room(plan)
    return (f"{plan.model.name} takes {one.total / 1e9:.1f} GB on each device, of which the engine may take {have / 1e9:.1f} GB "
            f"of {plan.spec.identity.id}: weights {one.weights / 1e9:.1f}, cache {one.kv_cache / 1e9:.2f} GB; "
            f"more devices (--tp), narrower --weights or --kv, or a shorter context would help")  # fmt: skip


def basis(plan: ServingPlan) -> dict[str, str]:
    """What each number rests on: the nearest measured rows."""
    asked = Question(platform=platform_of(plan.spec, plan.stack.id))
    kernels, power = (plan.calibration.spread_of("gpu", what, asked)[1].basis for what in ("kernel", "power"))
    near = f"nearest evidence: kernels, {kernels}" if kernels else "nearest evidence: none for kernels of this architecture"
    return {
        "ttft_s": near, "tpot_s": near, "tokens_per_s": near,
        "energy_per_token_j": f"nearest evidence: power, {power}" if power else "nearest evidence: none for power",
        "engine": rows_of(plan.stack).words,
        "memory_bytes": "counted: weights and cache from the model's configuration; buffers by the engine's rules",
    }  # fmt: skip


def command(plan: ServingPlan) -> str:
    """The engine's own command that measures the same; empty where none is known."""
    words = {"model": plan.model.repository, "file": plan.model.name, "input": plan.input, "output": plan.output,
             "batch": plan.batch, "tp": plan.tensor}  # fmt: skip
    engine = plan.stack.serving
    if not engine.benchmark:
        return ""
    more = {"cache": plan.cache != plan.precision, "weights": plan.weights == "fp8", "stages": plan.stages > 1,
            "experts": plan.experts > 1, "eager": engine.graph_sequences > 0 and not plan.graph}  # fmt: skip
    options = [engine.options[what] for what, wanted in more.items() if wanted and engine.options.get(what)]
    return " ".join((engine.benchmark, *options)).format(**words, kv=plan.cache, pp=plan.stages, ep=plan.experts)


def _phase(cost: StepCost) -> PhaseEstimate:
    found = {name: value for name, value in sorted(cost.bound_s.items(), key=lambda one: -one[1]) if value > 0.0}
    return PhaseEstimate(time_s=cost.time_s, energy_j=cost.energy_j, flop=cost.flop, dram_bytes=cost.dram_bytes,
                         limited_by=cost.limited_by, breakdown_s=found)  # fmt: skip


def _assumptions(plan: ServingPlan, first: PrefillCost) -> tuple[str, ...]:
    engine = plan.stack.serving
    said = [*plan.notes, f"prompts are read in {first.steps} steps before tokens are generated"]
    said.append("decode steps are replayed as CUDA graphs" if plan.graph else "decode steps are launched kernel by kernel")
    stored = WEIGHTS[plan.weights]
    if stored.most < HALF and not plan.both_narrow:
        said.append(f"weights {plan.weights} are widened in the kernel in no time of their own; those of the last projection "
                    f"take {8 * stored.head:.3g} bit each, norms and biases 16")  # fmt: skip
    if any(plan.model.windows):
        said.append("layers with a sliding window keep the tokens inside it alone")
    if plan.model.experts is not None:
        said.append("tokens choose experts evenly")
    said.append(f"the engine takes {100 * engine.memory_share:g} % of the memory, in blocks of {engine.block} tokens")
    if plan.tensor > 1:
        said.append(f"collectives over the links of {plan.node.id if plan.node else 'no node'} do not overlap with kernels")
    return tuple(said)


def provenance_of(plan: ServingPlan) -> dict[str, str]:
    """What the numbers of a plan were made from."""
    return {
        "version": __version__, "spec_hash": plan.spec.digest, "stack_hash": plan.stack.digest, "model": plan.model.source,
        "calibration": f"{plan.calibration.version}+{plan.calibration.digest}",
    }  # fmt: skip


def limit_word(name: str) -> str:
    """What a reader calls a limit of a step.

    >>> limit_word("dram"), limit_word("links")
    ('memory', 'links between devices')
    """
    return WORDS.get(name) or bound_word(name)


def why(e: GenerationEstimate) -> list[str]:
    """What decides the time of a token, what would shorten it, and what decides how fast prompts are read."""
    found, phase = [], e.phases["decode"]
    name, running = phase.limited_by, min(e.batch, e.max_batch)
    if phase.time_s > 0 and name == "dram":
        many = "one request" if running == 1 else f"each of {running} requests"
        read, on = read_per_token(e), " each device reads" if e.devices > 1 else " it reads"
        found.append(f"Decode waits for memory ({_share(phase)}): for a token of {many}{on} {show(read, 'B', 3)}, "
                     "weights and cached keys and values.")  # fmt: skip
        if e.memory_bytes["weights"] > MOSTLY * read and e.max_batch >= 2 * e.batch:
            found.append(f"A larger batch reads the same weights once: up to {e.max_batch:,} requests fit.")
    elif phase.time_s > 0:
        helps = f"; {HELPS[name]}" if name in HELPS else ""
        found.append(f"Decode is limited by {limit_word(name)} ({_share(phase)}){helps}.")
    phase = e.phases["prefill"]
    rate = f"{show(phase.flop / phase.time_s / e.devices, 'FLOP/s', 3)}{' on each device' if e.devices > 1 else ''}"
    return [*found, f"Prompts of {e.batch * e.input:,} tokens are limited by {limit_word(phase.limited_by)} "
                    f"({_share(phase)}), at {rate}."]  # fmt: skip


def _share(phase: PhaseEstimate) -> str:
    return f"{100 * phase.breakdown_s[phase.limited_by] / phase.time_s:.0f} % of the time"


def read_per_token(e: GenerationEstimate) -> float:
    """What each device reads and writes for one token of all requests that run at once [B]."""
    return e.phases["decode"].dram_bytes / (max(1, e.output - 1) * e.waves * e.devices)
