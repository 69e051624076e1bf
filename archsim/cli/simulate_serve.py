"""`archsim simulate serve`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.values import quantity, read, whole
from archsim.base.writer import OutputFile
from archsim.cli.no_effect import told_request
from archsim.cli.output import AnswerForm, answer_forms, timeline_option, write_timeline
from archsim.cli.vocabulary import HW, NET, ListOption, Quantity, choices, pairs, refuse, some_options
from archsim.schedule.serving import Batching

SCENARIOS = ("SingleStream", "MultiStream", "Server", "Offline")


class ServeCommand(click.Command):
    """A server of any network; with --llm the command for language models, which has options of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:  # fmt: skip
        """The context of the command that the words ask for."""
        if "--llm" not in args:
            return super().make_context(info_name, args, parent, **extra)
        from archsim.cli.simulate_serve_llm import command as of_models
        from archsim.cli.terminal import color_option

        return color_option(of_models).make_context(info_name, args, parent, **extra)


@click.command("serve", cls=ServeCommand)
@click.option("--llm", is_flag=True, help="A language model with continuous batching: `archsim simulate serve --llm --help`.")
@NET
@HW
@click.option("--rate", type=Quantity("/s"), metavar="RATE",
              help="Requests per second, e.g. 200/s: Poisson arrivals.")  # fmt: skip
@click.option("--trace", type=click.Path(), metavar="FILE",
              help="Recorded arrivals: a CSV file with a column arrival_s.")  # fmt: skip
@click.option("--p99", type=Quantity("s"), metavar="TIME",
              help="Find the highest rate that keeps the p99 latency, e.g. 50ms.")  # fmt: skip
@click.option("--batching", cls=ListOption, default="max=1", metavar="max=N,wait=TIME",
              help="Batch up to N requests; wait for more until the oldest has waited TIME.")  # fmt: skip
@click.option("--scenario", default="Server", type=click.Choice(SCENARIOS, case_sensitive=False),
              metavar="|".join(SCENARIOS), help="MLPerf's scenarios.")  # fmt: skip
@click.option("--devices", type=int, default=1, help="Devices that share one queue.")
@click.option("--requests", type=int, default=100_000, help="Number of simulated requests.")
@click.option("--seed", type=int, default=1, help="Random seed of the arrivals.")
@some_options("batch", "task", "optimiser", "devices", "fidelity", "traffic", "streams", "inputs", "cold")
@answer_forms(all="Print all that is known of the run.", page=True)
@timeline_option("Also write a timeline of batches for ui.perfetto.dev.")
def command(
    llm: bool, rate: float | None, trace: str | None, p99: float | None, batching: str, scenario: str,
    devices: int, requests: int, seed: int, form: AnswerForm, timeline: OutputFile | None, **given: Any,
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
    from archsim.cli.progress import Progress
    from archsim.schedule.observer import Recording
    from archsim.simulate.arrivals import recorded_arrivals
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
        watchers = [seen] if timeline else []
        answer = simulate_serving(request, load, batching_of(batching), devices, watchers, tell)
        curve = load_curve(request, load, answer, batching_of(batching), tell) if form.html else ()
    if timeline is not None:
        write_timeline(timeline, seen, f"{answer.network} on {answer.hardware_name}")
    form.show(answer, curve=curve)


def batching_of(text: str) -> Batching:
    """The batching rule of `max=32,wait=5ms`."""
    words = pairs(text, ["max", "wait"], "--batching")
    most = read("--batching", whole, words.get("max", 1))
    wait = read("--batching", quantity, words.get("wait", 0.0), "s")
    return Batching(most=most, wait_s=wait)
