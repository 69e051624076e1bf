"""`archsim simulate serve`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.values import quantity, whole
from archsim.base.writer import OutputFile
from archsim.cli.no_effect import tell_without_effect
from archsim.cli.options import choices, pairs, some_options
from archsim.cli.output import timeline_option, write_page, write_timeline
from archsim.cli.types import ListOption, Quantity, read
from archsim.cli.vocabulary import HW, NET, AnswerForm, answer_forms, html_option
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
@click.option("--rate", type=Quantity("/s"), default=None, metavar="RATE",
              help="Requests per second, e.g. 200/s: Poisson arrivals.")  # fmt: skip
@click.option("--trace", type=click.Path(), default=None, metavar="FILE",
              help="Recorded arrivals: a CSV file with a column arrival_s.")  # fmt: skip
@click.option("--p99", type=Quantity("s"), default=None, metavar="TIME",
              help="Find the highest rate that keeps the p99 latency, e.g. 50ms.")  # fmt: skip
@click.option("--batching", cls=ListOption, default="max=1", show_default=True, metavar="max=N,wait=TIME",
              help="Batch up to N requests; wait for more until the oldest has waited TIME.")  # fmt: skip
@click.option("--scenario", default="Server", show_default=True, type=click.Choice(SCENARIOS, case_sensitive=False),
              metavar="|".join(SCENARIOS), help="MLPerf's scenarios.")  # fmt: skip
@click.option("--devices", type=int, default=1, show_default=True, help="Devices that share one queue.")
@click.option("--requests", type=int, default=100_000, show_default=True, help="Number of simulated requests.")
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed of the arrivals.")
@some_options("batch", "task", "optimiser", "devices", "fidelity", "traffic", "streams", "inputs", "cold")
@answer_forms(all="Print all that is known of the run.")
@html_option()
@timeline_option("Also write a timeline of batches for ui.perfetto.dev.")
def command(
    llm: bool, net: str, hw: str, rate: float | None, trace: str | None, p99: float | None, batching: str, scenario: str,
    devices: int, requests: int, seed: int, form: AnswerForm, html: OutputFile | None, timeline: OutputFile | None, **given: Any,
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
    from archsim.estimation.request import make_request
    from archsim.schedule.observer import Recording
    from archsim.simulate.arrivals import recorded_arrivals
    from archsim.simulate.serve import Load, load_curve, simulate_serving

    _refuse_idle(scenario, trace is not None)
    load = Load(
        scenario=scenario, rate=rate, requests=requests, seed=seed,
        recorded_s=None if trace is None else recorded_arrivals(trace),
        bound_s=p99,
    )  # fmt: skip
    seen = Recording()
    with Progress() as tell:
        request = make_request(net, hw, **choices(given))
        tell_without_effect([request], beyond="link.")  # inputs cross the link, which an estimate does not show
        watchers = [] if timeline is None else [seen]
        answer = simulate_serving(request, load, batching_of(batching), devices, watchers, tell)
        curve = load_curve(request, load, answer, batching_of(batching), tell) if html is not None else ()
    if html is not None:
        from archsim.answers.serving import sections

        write_page(html, sections(answer, curve))
    if timeline is not None:
        write_timeline(timeline, seen, f"{answer.network} on {answer.hardware_name}")
    form.show(answer)


def _refuse_idle(scenario: str, recorded: bool) -> None:
    """Refuse options that were given and have no effect."""
    idle = {"SingleStream": ("batching", "seed"), "MultiStream": ("batching", "seed"), "Offline": ("seed",)}.get(scenario, ())
    why = f"{scenario} draws no arrivals" + (" and sends one query at a time" if "batching" in idle else "")
    if recorded:
        idle, why = ("requests", "seed"), "the file of --trace holds the arrivals"
    context = click.get_current_context()
    for name in idle:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} changes nothing: {why}", context)


def batching_of(text: str) -> Batching:
    """The batching rule of `max=32,wait=5ms`."""
    words = pairs(text, ["max", "wait"], "--batching")
    most = read("--batching", whole, words.get("max", 1))
    wait = read("--batching", quantity, words.get("wait", 0.0), "s")
    return Batching(most=most, wait_s=wait)
