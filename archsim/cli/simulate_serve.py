"""`archsim simulate serve`."""

from __future__ import annotations

from typing import Any

import click

from archsim.cli.no_effect import tell_without_effect
from archsim.cli.options import choices, pairs, quantity, some_options, whole
from archsim.schedule.serving import Batching

SCENARIOS = ("SingleStream", "MultiStream", "Server", "Offline")


@click.command("serve")
@click.option("--net", required=True, help="A shipped network or the path of a trace file.")
@click.option("--hw", required=True, help="A shipped device, an alias, or the path of a spec file.")
@click.option("--rate", type=float, default=None, help="Requests per second, Poisson arrivals.")
@click.option("--trace", default=None, metavar="FILE", help="Recorded arrivals: a CSV file with a column arrival_s.")
@click.option("--p99", default=None, metavar="TIME", help="Find the highest rate that keeps the p99 latency, e.g. 50ms.")
@click.option("--batching", default="max=1", show_default=True, metavar="max=N,wait=TIME",
              help="Answer up to N requests at once; wait for them until the oldest is so old.")  # fmt: skip
@click.option("--scenario", default="Server", show_default=True, type=click.Choice(SCENARIOS, case_sensitive=False),
              metavar="|".join(SCENARIOS), help="As MLPerf has them.")  # fmt: skip
@click.option("--devices", type=int, default=1, show_default=True, help="Devices that take requests from one queue.")
@click.option("--requests", type=int, default=100_000, show_default=True, help="How many requests are simulated.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the arrivals; the same seed draws the same ones.")
@some_options("batch", "task", "devices", "fidelity", "streams")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--html", default=None, metavar="FILE", help="Also write a self-contained page with charts.")
@click.option("--timeline", default=None, metavar="FILE", help="Also write when which batch runs, for ui.perfetto.dev.")
def command(
    net: str, hw: str, rate: float | None, trace: str | None, p99: str | None, batching: str, scenario: str, devices: int,
    requests: int, seed: int, as_json: bool, html: str | None, timeline: str | None, **given: Any,
) -> None:  # fmt: skip
    """Requests arrive, wait, are answered in batches: latency percentiles, utilisation, energy, the highest rate.

    Times of batches are those of `archsim estimate`, inputs from host memory included. Percentiles are over the requests
    after the first tenth, with 95 % confidence intervals by batch means.

    \b
    Examples:
      archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200 --batching max=32,wait=5ms
      archsim simulate serve --net resnet_50 --hw tesla_t4 --p99 50ms --batching max=16
      archsim simulate serve --net resnet_50 --hw tesla_t4 --scenario Offline --batching max=64 --requests 5000
    """
    from archsim.cli.progress import Progress
    from archsim.estimation.request import make_request
    from archsim.report.serving import serving_json, serving_text
    from archsim.schedule.observer import Recording
    from archsim.simulate.arrivals import recorded_arrivals
    from archsim.simulate.serve import Load, simulate_serving

    _refuse_idle(scenario, trace is not None)
    load = Load(
        scenario=scenario, rate=rate, requests=requests, seed=seed,
        recorded_s=None if trace is None else recorded_arrivals(trace),
        bound_s=None if p99 is None else quantity(p99, "s", "--p99"),
    )  # fmt: skip
    seen = Recording()
    with Progress() as tell:
        query = make_request(net, hw, **choices(**given))
        tell_without_effect([query], beyond="link.")  # which inputs cross
        watchers = [seen] if timeline is not None or html is not None else []
        answer = simulate_serving(query, load, batching_of(batching), devices, watchers, tell)
    if html is not None:
        from archsim.base.files import write_text
        from archsim.report.serving_page import serving_page

        write_text(html, serving_page(answer, seen))
        click.echo(f"archsim: wrote {html}", err=True)
    if timeline is not None:
        from archsim.cli.output import write_timeline

        write_timeline(timeline, seen, f"{answer.network} on {answer.hardware}")
    click.echo(serving_json(answer) if as_json else serving_text(answer))


def _refuse_idle(scenario: str, recorded: bool) -> None:
    """Options that were given and would change nothing are refused."""
    idle = {"SingleStream": ("batching", "seed"), "MultiStream": ("batching", "seed"), "Offline": ("seed",)}.get(scenario, ())
    why = f"{scenario} draws no arrivals" + (" and sends one query at a time" if "batching" in idle else "")
    if recorded:
        idle, why = ("requests", "seed"), "the file of --trace holds the arrivals"
    context = click.get_current_context()
    for name in idle:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} changes nothing: {why}", context)


def batching_of(text: str) -> Batching:
    """`max=32,wait=5ms` as the rule that it names."""
    words = pairs(text, ["max", "wait"], "--batching")
    most = whole(words["max"], "--batching") if "max" in words else 1
    wait = quantity(words["wait"], "s", "--batching") if "wait" in words else 0.0
    return Batching(most=most, wait_s=wait)
