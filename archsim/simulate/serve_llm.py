"""A language model under requests that come and go: continuous batching, latencies as vLLM's benchmark defines them, goodput."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from archsim.base.errors import ArgumentError
from archsim.device.variant import first_of
from archsim.generation.estimate import limit_word, provenance_of, too_large
from archsim.generation.memory import cache_of, cache_of_layers
from archsim.generation.plan import ServingPlan
from archsim.generation.step import StepCost, rate_to
from archsim.simulate.engine import Conversation, ServingEngineProcess, cache_room, cache_tokens
from archsim.simulate.requests import TextRequests
from archsim.stack.catalog import MeasuredRows, rows_of

SCHEMA = "archsim-serve-llm/1"
PERCENTILES = (0.5, 0.9, 0.99)
LIMITS = ("ttft", "tpot", "itl", "e2e")
MOST_REQUESTS, MOST_TOKENS = 200_000, 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySpread:
    """A latency over all requests, or over all tokens [s]; percentiles by linear interpolation, as numpy's and vLLM's."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TextServing:
    """The result, as `vllm bench serve` counts it.

    ttft: from arrival to the first token; tpot: of a request, (end - first token) / (output - 1); itl: between two tokens of a
    request, over all tokens; e2e: from arrival to the last token
    requests_per_s, tokens_per_s: over the time from the first arrival to the last token
    goodput_per_s: requests per second that keep every limit; None without limits
    running: most requests at once; preemptions: requests that were put back for want of a free block
    utilisation: share of the time in which each server worked; energy is of all devices, idle time included
    """

    network: str
    hardware: str
    hardware_name: str
    engine: str
    stack_rows: MeasuredRows
    servers: int
    split: bool
    devices: int
    requests: int
    rate_per_s: float | None
    seed: int | None
    input_tokens: int
    output_tokens: int
    duration_s: float
    requests_per_s: float
    tokens_per_s: float
    total_tokens_per_s: float
    ttft_s: LatencySpread
    tpot_s: LatencySpread | None
    itl_s: LatencySpread | None
    e2e_s: LatencySpread
    limits_s: Mapping[str, float]
    goodput_per_s: float | None
    kept: float | None
    running: int
    preemptions: int
    steps: int
    cache_tokens: int
    utilisation: tuple[float, ...]
    energy_per_token_j: float
    power_w: float
    limited_by: str
    assumptions: tuple[str, ...]
    provenance: Mapping[str, str]


def serve_llm(
    plan: ServingPlan, requests: TextRequests, *, rate: float | None = None, seed: int | None = None,
    limits: Mapping[str, float] | None = None, split: bool = False,
) -> TextServing:  # fmt: skip
    """Serve the requests until the last one has its last token.

    split: one server reads prompts, another one of the same kind generates; keys and values go over a link between them

    Raises ArgumentError where a request can never fit the cache, and for more requests or tokens than are simulated.
    """
    from simpy import Environment

    _check(plan, requests)
    env, done = Environment(), list[Conversation]()
    generator = ServingEngineProcess(env, plan, done.append)
    servers, link = [generator], _link(plan) if split else 0.0

    def sent(one: Conversation) -> Generator[Any, Any, None]:
        """Keys and values go to the server that generates."""
        yield env.timeout(sum(cache_of_layers(plan, one.input)) / link)
        generator.adopt(one)

    def hand_over(one: Conversation) -> None:
        if one.answered >= one.output:
            done.append(one)
        else:
            env.process(sent(one))

    def arrivals() -> Generator[Any, Any, None]:
        """Requests join the queue when they arrive."""
        columns = (requests.arrival_s, requests.input, requests.output)
        for at, prompt, answer in zip(*(column.tolist() for column in columns), strict=True):
            yield env.timeout(max(0.0, at - env.now))
            servers[0].put(Conversation(arrival_s=at, input=prompt, output=answer))

    if split:
        servers.insert(0, ServingEngineProcess(env, plan, hand_over, only_reads=True))
    env.process(arrivals())
    env.run()
    return _result(plan, done, servers, float(requests.arrival_s[0]), limits or {}, rate_per_s=rate, seed=seed, split=split)


def _check(plan: ServingPlan, requests: TextRequests) -> None:
    count, tokens = len(requests.arrival_s), int(requests.input.sum() + requests.output.sum())
    if not 1 <= count <= MOST_REQUESTS or tokens > MOST_TOKENS:
        raise ArgumentError(f"requests: {count:,} with {tokens:,} tokens; {MOST_REQUESTS:,} with {MOST_TOKENS:,} are simulated")
    longest = int((requests.input + requests.output).max())
    if cache_of(plan, longest) > cache_room(plan):
        raise ArgumentError(f"a request of {longest} tokens never fits the cache: "
                            f"{too_large(replace(plan, input=max(1, longest - 1), output=1))}")  # fmt: skip


def _link(plan: ServingPlan) -> float:
    """Bandwidth between the two servers [B/s]: of a link of the node, or of the device's own."""
    if plan.node is not None:
        return rate_to(plan.node, plan.node.devices - 1)
    link = getattr(plan.spec.device, "link", None)
    if link is None:
        raise ArgumentError(f"split: {plan.spec.identity.id} has no link; --node names what joins the servers")
    return float(link.bandwidth * link.achievable)


def _result(
    plan: ServingPlan, done: Sequence[Conversation], servers: Sequence[ServingEngineProcess], begun_s: float,
    limits: Mapping[str, float], **asked: Any,
) -> TextServing:  # fmt: skip
    arrival, first, last = np.array([(one.arrival_s, one.token_s[0], one.token_s[-1]) for one in done]).T
    outputs, gaps = np.array([one.output for one in done]), [np.diff(one.token_s) for one in done]
    several, itl, duration = outputs > 1, np.concatenate(gaps), float(last.max()) - begun_s
    of_each = {"ttft": first - arrival, "tpot": (last - first) / np.maximum(outputs - 1, 1),
               "itl": np.array([gap.max(initial=0.0) for gap in gaps]), "e2e": last - arrival}  # fmt: skip
    tpot, output, prompts = of_each["tpot"][several], int(outputs.sum()), sum(one.input for one in done)
    kept = int(np.all([of_each[name] <= most for name, most in limits.items()], axis=0).sum())
    idle = first_of(plan.spec.device.power.idle) * plan.devices
    energy = sum(server.spent.energy_j + idle * max(0.0, duration - server.spent.time_s) for server in servers)
    spent = reduce(StepCost.plus, (server.spent for server in servers))
    assumed = [*plan.notes,
               "a step that reads and generates multiplies all its tokens together, and attends to each part by itself",
               "tokens leave the server as they are made; no time of a client or of a network"]  # fmt: skip
    if asked["split"]:
        assumed.append("keys and values of a prompt go over the link at once, after its last token was read")
    return TextServing(
        network=plan.model.name, hardware=plan.spec.identity.id, hardware_name=plan.spec.identity.name, engine=plan.stack.id,
        stack_rows=rows_of(plan.stack), servers=len(servers), devices=plan.devices * len(servers), requests=len(done), **asked,
        input_tokens=prompts, output_tokens=output, duration_s=duration, requests_per_s=len(done) / duration,
        tokens_per_s=output / duration, total_tokens_per_s=(output + prompts) / duration, ttft_s=_spread(of_each["ttft"]),
        tpot_s=_spread(tpot) if len(tpot) else None, itl_s=_spread(itl) if len(itl) else None, e2e_s=_spread(of_each["e2e"]),
        limits_s=dict(limits), goodput_per_s=kept / duration if limits else None, kept=kept / len(done) if limits else None,
        running=max(server.most_running for server in servers), preemptions=sum(one.preempted for one in done),
        steps=sum(server.steps for server in servers), cache_tokens=cache_tokens(plan),
        utilisation=tuple(min(1.0, server.spent.time_s / duration) for server in servers), energy_per_token_j=energy / output,
        power_w=energy / duration, limited_by=spent.limited_by, assumptions=tuple(assumed),
        provenance=provenance_of(plan),
    )  # fmt: skip


def _spread(values: np.ndarray) -> LatencySpread:
    p50, p90, p99 = np.quantile(values, PERCENTILES).tolist()
    return LatencySpread(mean=float(values.mean()), p50=p50, p90=p90, p99=p99)


def why_served(s: TextServing) -> str:
    """What a language model under requests is limited by, and how near it is to what it can do."""
    busiest = max(s.utilisation)
    waits = f"; {s.preemptions:,} were put back for want of cache" if s.preemptions else "; none was put back for want of cache"
    return (f"Steps take {100 * busiest:.0f} % of the time and are limited by {limit_word(s.limited_by)}, with at most "
            f"{s.running:,} requests at once{waits}.")  # fmt: skip
