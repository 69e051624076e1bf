"""`archsim compare`."""

from __future__ import annotations

from typing import Any

import click

from archsim.cli.options import choices, names, setting_options

COLUMNS = (
    "hardware", "stack", "clock_hz", "latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w",
    "memory_bytes", "fits",
)  # fmt: skip


@click.command("compare")
@click.option("--net", required=True, help="A shipped network or the path of a trace file.")
@click.option("--hw", required=True, help="Devices, separated by commas.")
@setting_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of estimates.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one CSV row per device.")
def command(net: str, hw: str, as_json: bool, as_csv: bool, **given: Any) -> None:
    """One network on several devices, the fastest first.

    --threads applies to the CPUs among them. Without --stack each device runs its own default stack.

    \b
    Examples:
      archsim compare --net alexnet --hw tegra_x1,gtx_1080,i7_6700k --batch 16
      archsim compare --net vgg_16 --hw tesla_k40,titan_x_maxwell,gtx_1080 --batch 16 --task forward_backward --csv
    """
    import json

    from archsim.answer import Estimate, estimate
    from archsim.query import find_device
    from archsim.report.data import record, rows_as_csv

    arguments = choices(**given)
    threads = arguments.pop("threads")
    results: list[Estimate] = []
    for name in dict.fromkeys(names(hw)):
        is_cpu = find_device(name, None).kind == "cpu"
        results.append(estimate(net, name, threads=threads if is_cpu else None, **arguments))
    if not results:
        raise click.UsageError("--hw names no device")
    for result in results:
        for text in result.warnings:
            if "changes no output" in text:
                click.echo(f"archsim: {result.hardware}: {text}", err=True)
    results.sort(key=lambda result: result.latency_s)
    if as_json:
        click.echo(json.dumps([record(result) for result in results], indent=2, allow_nan=False))
    elif as_csv:
        click.echo(rows_as_csv(COLUMNS, [[getattr(r, name) for name in COLUMNS] for r in results]), nl=False)
    else:
        click.echo(_side_by_side(results))


def _side_by_side(results: list[Any]) -> str:
    from archsim.quantity import show
    from archsim.report.text import clean, rate_unit, table

    first, fastest = results[0], results[0].latency_s
    rows = []
    for r in results:
        low, high = r.latency_interval_s
        rows.append(
            (r.hardware, r.stack, show(r.clock_hz, "Hz", 3), show(r.latency_s, "s", 3),
             f"{show(low, 's', 3)} to {show(high, 's', 3)}", f"{r.latency_s / fastest:.2f}x", f"{r.throughput_per_s:.4g}",
             show(r.power_w, "W", 3), show(r.energy_j, "J", 3), f"{r.throughput_per_w:.3g}",
             max(r.breakdown_s, key=lambda name: r.breakdown_s[name]), "yes" if r.fits else "NO",
             _errors(r))
        )  # fmt: skip
    rate = rate_unit(first)
    head = ("device", "stack", "clock", "latency", f"{100 * first.interval_level:.0f} % interval", "time", rate, "power",
            "energy", f"{rate}/W", "limited by", "fits", "measured")  # fmt: skip
    title = f"{clean(first.network)}: {first.task}, batch {first.batch}, {first.precision}, {first.fidelity} model"
    return f"{title}\n\n{table(head, rows, left=2)}"


def _errors(result: Any) -> str:
    """The measured time of the same cell and stack, with the error of the prediction."""
    from archsim.quantity import show

    for r in result.references:
        if r.stack == result.stack and r.metric in ("latency_s", "throughput_per_s"):
            time = r.measured if r.metric == "latency_s" else result.batch / r.measured
            return f"{show(time, 's', 3)} ({100 * (result.latency_s / time - 1):+.0f} %)"
    return "-"
