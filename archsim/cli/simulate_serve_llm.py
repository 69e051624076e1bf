"""`archsim simulate serve --llm`."""

from __future__ import annotations

import math
from typing import Any

import click

from archsim.base.arguments import SERVED
from archsim.base.values import quantity, read
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, MODEL, Quantity, choices, options, pairs

SLOWEST = 1e-9  # requests per second
OF_BATCHES = ("input", "output", "batch", "pp", "graph", "speculative", "draft")  # which requests that come and go do not have


@click.command("serve")
@click.option("--llm", is_flag=True, required=True, help="A language model with continuous batching; without it any network.")
@MODEL
@HW
@click.option("--rate", type=Quantity("/s", low=SLOWEST, high=1 / SLOWEST), metavar="RATE",
              help="Requests per second, e.g. 4/s: Poisson arrivals; without it all arrive at once.")  # fmt: skip
@click.option("--trace", type=click.Path(), metavar="FILE",
              help="Recorded requests: a CSV file with the columns arrival_s, input, output.")  # fmt: skip
@click.option("--input", "prompt", default="512", metavar="TOKENS|DISTRIBUTION",
              help="Tokens of prompts: a number, uniform:LOW:HIGH, normal:MEAN:SPREAD, lognormal:MEDIAN:SIGMA, exponential:MEAN.")
@click.option("--output", "answer", default="128", metavar="TOKENS|DISTRIBUTION", help="Tokens of answers.")
@click.option("--requests", type=int, default=200, help="Number of requests.")
@click.option("--seed", type=int, default=1, help="Random seed of arrivals and lengths.")
@click.option("--goodput", metavar="ttft=TIME,tpot=TIME,...",
              help="Count the requests that keep these limits: of ttft, tpot, itl (the longest), e2e.")  # fmt: skip
@click.option("--split", is_flag=True, help="Two servers: one reads prompts, the other generates.")
@options(row for row in SERVED.values() if row.name not in OF_BATCHES)
@answer_forms(all="Print all that is known of the run.", page=True)
def command(
    llm: bool, net: str, hw: str, rate: float | None, trace: str | None, prompt: str, answer: str, requests: int, seed: int,
    goodput: str | None, split: bool, form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Simulate a language model under requests that come and go: continuous batching over a paged cache.

    Times to the first token (ttft), per token (tpot), between tokens (itl) and to the last one (e2e) are those of
    `vllm bench serve`.

    \b
    Examples:
      archsim simulate serve --llm --net llama_3_8b --hw h100_sxm5_80gb --rate 8/s --input 512 --output 128
      archsim simulate serve --llm --net llama_3_8b --hw h100_sxm5_80gb --rate 8/s --goodput ttft=500ms,tpot=20ms --split
      archsim simulate serve --llm --net mistral_7b --hw a100_sxm4_40gb --input lognormal:300:0.8 --output exponential:200
    """
    from archsim.generation.plan import serving_plan
    from archsim.simulate.lengths import drawn, lengths_of, recorded
    from archsim.simulate.serve_llm import LIMITS, MOST_REQUESTS, serve_llm
    from archsim.trace.huggingface.catalog import find

    if not 1 <= requests <= MOST_REQUESTS:
        raise click.BadParameter(f"{requests} is not between 1 and {MOST_REQUESTS}", param_hint="--requests")
    if trace is not None and rate is not None:
        raise click.UsageError("--rate changes nothing: the file of --trace holds the arrivals")
    told = pairs(goodput or "", list(LIMITS), "--goodput")
    limits = {name: read("--goodput", quantity, text, "s") for name, text in told.items()}
    plan = serving_plan(net, hw, input=1, output=1, **choices(given, SERVED))
    context = find(net).context
    if trace is not None:
        asked = recorded(trace, context)
    else:
        lengths = (lengths_of(prompt, "--input"), lengths_of(answer, "--output"))
        asked = drawn(math.inf if rate is None else rate, requests, *lengths, context, seed)
    form.show(serve_llm(plan, asked, rate=rate, seed=None if trace is not None else seed, limits=limits, split=split))
