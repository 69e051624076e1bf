"""`archsim simulate`, and the simulations with queues and links."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from archsim.base.arguments import SERVED
from archsim.base.values import quantity, read, whole
from archsim.cli.main import LazyGroup
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.terminal import Progress, color_option, told_request
from archsim.cli.vocabulary import (
    FILE,
    HW,
    MODEL,
    PLACE,
    Quantity,
    choices,
    flag,
    listed,
    options,
    own,
    pairs,
    refuse,
    some_options,
)

if TYPE_CHECKING:
    from archsim.schedule.serving import Batching

# ---------------------------------------------------------------------------------------------------------------- simulate


SIMULATIONS = {
    "serve": "A server with a queue and dynamic batching: latency percentiles.",
    "train": "Data-parallel training on the devices of a node: the scaling curve.",
    "sm": "One SM that runs a kernel, clock by clock: issue, stalls, bandwidth.",
    "core": "One core of a CPU that runs a loop, clock by clock: ports, chains, what binds.",
    "kernels": "Random kernels by the closed form and by the cycle model.",
    "allreduce": "A ring all-reduce on the links of a node.",
}


@click.command("simulate", cls=LazyGroup, rows=SIMULATIONS, noun="simulation")
def simulate_command() -> None:
    """Simulate serving, training on several devices, an all-reduce, one SM or one core: queues, links, instructions.

    \b
    Examples:
      archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200/s --batching max=32,wait=5ms
      archsim simulate train --net resnet_50 --hw tesla_v100_sxm2 --devices 1,2,4,8
      archsim simulate sm --hw gtx_1080 --kernel "gemm 128x128x8 threads=256" --k 512
      archsim simulate core --hw i7_6700k --kernel "gemm 6x16 avx2"
      archsim simulate allreduce --node deepbench_8gpu --devices 2,4,8 --bytes 100MB
    """


# ------------------------------------------------------------------------------------------------------------------- serve


SCENARIOS = ("SingleStream", "MultiStream", "Server", "Offline")


class ServeCommand(click.Command):
    """A server of any network; with --llm the command for language models, which has options of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any,
    ) -> click.Context:  # fmt: skip
        """The context of the command that the words ask for."""
        if "--llm" not in args:
            return super().make_context(info_name, args, parent, **extra)
        return color_option(serve_llm_command).make_context(info_name, args, parent, **extra)


@click.command("serve", cls=ServeCommand)
@flag("--llm", "A language model with continuous batching: `archsim simulate serve --llm --help`.")
@PLACE
@own("--rate", "Requests per second, e.g. 200/s: Poisson arrivals.", Quantity("/s"), metavar="RATE")
@own("--trace", "Recorded arrivals: a CSV file with a column arrival_s.", FILE)
@own("--p99", "Find the highest rate that keeps the p99 latency, e.g. 50ms.", Quantity("s"), metavar="TIME")
@listed("--batching", "Batch up to N requests; wait for more until the oldest has waited TIME.", usual="max=1",
        metavar="max=N,wait=TIME")
@own("--scenario", "MLPerf's scenarios.", click.Choice(SCENARIOS, case_sensitive=False), "Server", metavar="|".join(SCENARIOS))
@own("--devices", "Devices that share one queue.", int, 1)
@own("--requests", "Number of simulated requests.", int, 100_000)
@own("--seed", "Random seed of the arrivals.", int, 1)
@some_options("batch", "task", "optimiser", "devices", "fidelity", "traffic", "streams", "inputs", "cold", "search")
@answer_forms(all="Print all that is known of the run.", page=True,
              timeline="Also write a timeline of batches for ui.perfetto.dev.")
def serve_command(
    llm: bool, rate: float | None, trace: str | None, p99: float | None, batching: list[str], scenario: str, devices: int,
    requests: int, seed: int, form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Simulate a server with a queue and dynamic batching: latency percentiles, utilisation, energy, the highest rate.

    The time of a batch is that of `archsim estimate`, with inputs from host memory. Percentiles leave out the first tenth of
    the requests and have 95 % confidence intervals (batch means).

    \b
    Examples:
      archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200/s --batching max=32,wait=5ms
      archsim simulate serve --net resnet_50 --hw tesla_t4 --p99 50ms --batching max=16
      archsim simulate serve --llm --net llama_3_8b --hw h100_sxm5_80gb --rate 8/s --goodput ttft=500ms,tpot=20ms
      archsim simulate serve --net resnet_50 --hw tesla_t4 --scenario Offline --batching max=64 --requests 5000
    """
    from archsim.schedule.observer import Recording
    from archsim.simulate.requests import recorded_arrivals
    from archsim.simulate.serve import Load, load_curve, simulate_serving

    if trace is not None:
        refuse(("requests", "seed"), "--trace, whose file holds the arrivals")
    elif scenario != "Server":  # the others draw no arrivals, and streams send one query at a time
        refuse(("seed",) if scenario == "Offline" else ("batching", "seed"), f"--scenario {scenario}")
    load = Load(
        scenario=scenario, rate=rate, requests=requests, seed=seed,
        recorded_s=None if trace is None else recorded_arrivals(trace),
        bound_s=p99,
    )  # fmt: skip
    seen = Recording()
    with Progress() as tell:
        request = told_request(beyond="link.", **choices(given))  # inputs cross it, which an estimate does not show
        watchers = [seen] if form.timeline else []
        answer = simulate_serving(request, load, batching_of(batching), devices, watchers, tell)
        curve = load_curve(request, load, answer, batching_of(batching), tell) if form.html else ()
    form.draw(seen, f"{answer.network} on {answer.hardware_name}")
    form.show(answer, curve=curve)


def batching_of(given: Sequence[str]) -> Batching:
    """The batching rule of `max=32,wait=5ms`."""
    from archsim.schedule.serving import Batching

    words = pairs(given, ["max", "wait"], "--batching")
    most = read("--batching", whole, words.get("max", 1))
    wait = read("--batching", quantity, words.get("wait", 0.0), "s")
    return Batching(most=most, wait_s=wait)


# --------------------------------------------------------------------------------------------------------------- serve_llm


SLOWEST = 1e-9  # requests per second
OF_BATCHES = ("input", "output", "batch", "pp", "graph", "speculative", "draft")  # which requests that come and go do not have


@click.command("serve")
@flag("--llm", "A language model with continuous batching; without it any network.", required=True)
@MODEL
@HW
@own("--rate", "Requests per second, e.g. 4/s: Poisson arrivals; without it all arrive at once.",
     Quantity("/s", low=SLOWEST, high=1 / SLOWEST), metavar="RATE")
@own("--trace", "Recorded requests: a CSV file with the columns arrival_s, input, output.", FILE)
@own("--input prompt", "Tokens of prompts: a number, uniform:LOW:HIGH, normal:MEAN:SPREAD, lognormal:MEDIAN:SIGMA, "
     "exponential:MEAN.", usual="512", metavar="TOKENS|DISTRIBUTION")
@own("--output answer", "Tokens of answers.", usual="128", metavar="TOKENS|DISTRIBUTION")
@own("--requests", "Number of requests.", int, 200)
@own("--seed", "Random seed of arrivals and lengths.", int, 1)
@listed("--goodput", "Count the requests that keep these limits: of ttft, tpot, itl (the longest), e2e.",
     metavar="ttft=TIME,tpot=TIME,...")
@flag("--split", "Two servers: one reads prompts, the other generates.")
@options(row for row in SERVED.values() if row.name not in OF_BATCHES)
@answer_forms(all="Print all that is known of the run.", page=True)
def serve_llm_command(
    llm: bool, net: str, hw: str, rate: float | None, trace: str | None, prompt: str, answer: str, requests: int, seed: int,
    goodput: list[str], split: bool, form: AnswerForm, **given: Any,
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
    from archsim.simulate.requests import drawn, lengths_of, recorded
    from archsim.simulate.serve_llm import LIMITS, MOST_REQUESTS, serve_llm
    from archsim.trace.huggingface.catalog import find

    if not 1 <= requests <= MOST_REQUESTS:
        raise click.BadParameter(f"{requests} is not between 1 and {MOST_REQUESTS}", param_hint="--requests")
    if trace is not None and rate is not None:
        raise click.UsageError("--rate changes nothing: the file of --trace holds the arrivals")
    told = pairs(goodput, list(LIMITS), "--goodput")
    limits = {name: read("--goodput", quantity, text, "s") for name, text in told.items()}
    plan = serving_plan(net, hw, input=1, output=1, **choices(given, SERVED))
    context = find(net).context
    if trace is not None:
        asked = recorded(trace, context)
    else:
        lengths = (lengths_of(prompt, "--input"), lengths_of(answer, "--output"))
        asked = drawn(math.inf if rate is None else rate, requests, *lengths, context, seed)
    form.show(serve_llm(plan, asked, rate=rate, seed=None if trace is not None else seed, limits=limits, split=split))


# ------------------------------------------------------------------------------------------------------------------- train


COUNTS = (1, 2, 4, 8)  # of devices, where nobody names any, as far as the node holds them


@click.command("train")
@PLACE
@own("--node", "The node that holds the devices (`archsim list nodes`), or the path of its file; if not given, the one that "
     "is sold with them.", "node")
@listed("--devices", "Numbers of devices, separated by commas.", show_default="1,2,4,8")
@own("--batch", "Samples on each device.", int, 32)
@listed("--input given", "Input stages of each batch; without them inputs are on the device.",
        metavar="disk,decode=N,pcie")
@own("--sync", "Rings among the devices, or a parameter server in host memory.", ("allreduce", "server"), "allreduce")
@own("--overlap/--no-overlap", "Exchange gradients while earlier layers compute theirs.", usual=True)
@own("--bucket", "Size of the buckets in which gradients are exchanged.", Quantity("B"), "25MB")
@own("--steps", "Simulated steps; the later half is measured.", int, 16)
@some_options("batch", "task", "devices", "fidelity", "traffic", "streams", "inputs", "graph", "cold", "search")
@answer_forms("Print one CSV row per number of devices.", all="Print all that is known of the run.", page=True,
              timeline="Also write a timeline of the largest number of devices for ui.perfetto.dev.")
def train_command(
    node: str | None, devices: list[str], batch: int, given: list[str], sync: str, overlap: bool, bucket: float, steps: int,
    form: AnswerForm, **words: Any,
) -> None:  # fmt: skip
    """Simulate data-parallel training on several devices: the scaling curve, and where the time of a step goes.

    The step of one device is that of `archsim estimate --task training_step`. Gradients are exchanged in buckets over the
    links of the node, which copies of inputs use too.

    \b
    Examples:
      archsim simulate train --net resnet_50 --hw tesla_v100_sxm2 --devices 1,2,4,8
      archsim simulate train --net alexnet --hw gtx_1080 --node deepbench_8gpu --input disk,decode=8,pcie
      archsim simulate train --net vgg_16 --hw tesla_v100_sxm2 --optimiser sgd --sync server
    """
    from archsim.node.spec import joining
    from archsim.schedule.observer import Recording
    from archsim.simulate.train import Input, simulate_training

    counts = [read("--devices", whole, text) for text in devices]
    stages = pairs(given, ["disk", "decode", "pcie"], "--input")
    for stage in ("disk", "pcie"):
        if stages.get(stage):
            raise click.BadParameter(f"{stage} takes no value", param_hint="--input")
    if stages.get("decode") == "":
        raise click.BadParameter("decode takes a number of workers, like decode=8", param_hint="--input")
    line = Input(disk="disk" in stages, pcie="pcie" in stages,
                 decode=read("--input", whole, stages["decode"]) if "decode" in stages else None)  # fmt: skip
    seen = Recording()
    with Progress() as tell:
        # inputs and gradients cross the link, which an estimate does not show
        request = told_request(beyond="link.", batch=batch, task="training_step", **choices(words))
        place = joining(request.spec.identity.id, max(counts, default=1), "devices", node)
        counts = counts or [count for count in COUNTS if count <= place.node.devices]
        answer = simulate_training(
            request, place, counts, given=line, sync=sync, overlap=overlap, steps=steps, tell=tell,
            bucket_bytes=bucket, observers=[seen] if form.timeline else [],
        )  # fmt: skip
    form.draw(seen, f"{answer.network} on {max(counts)} {answer.hardware_name}")
    form.show(answer)


# --------------------------------------------------------------------------------------------------------------- allreduce


@click.command("allreduce")
@own("--node", "The node (`archsim list nodes`), or the path of its file.", "node", "deepbench_8gpu")
@listed("--devices", "Numbers of devices, separated by commas.", usual="2,4,8")
@listed("--bytes sizes", "Sizes, separated by commas.", usual="400kB,16MB,258MB")
@answer_forms("Print one CSV row per size and number of devices.", page=True)
def allreduce_command(node: str, devices: list[str], sizes: list[str], form: AnswerForm) -> None:
    """Simulate a ring all-reduce: time and bus bandwidth, beside DeepBench's measurements on its own servers.

    \b
    Examples:
      archsim simulate allreduce --devices 2,8,16 --bytes 400kB,258MB
      archsim simulate allreduce --node dgx_1_v100 --devices 8 --bytes 1GB
    """
    from archsim.node.spec import find
    from archsim.simulate.allreduce import AllReduces, simulate_all_reduce

    counts = [read("--devices", whole, text) for text in devices]
    found = simulate_all_reduce(find(node), counts, [read("--bytes", quantity, text, "B") for text in sizes])
    form.show(AllReduces(node=node, rows=tuple(found)))
