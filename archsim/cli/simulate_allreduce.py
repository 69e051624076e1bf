"""`archsim simulate allreduce`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from archsim.cli.completed import Known
from archsim.cli.options import names, quantity, whole
from archsim.cli.terminal import say
from archsim.cli.vocabulary import ListOption, csv_option, json_option, one_form


@click.command("allreduce")
@click.option("--node", type=Known("node"), default="deepbench_8gpu", show_default=True,
              help="The node (`archsim list nodes`), or the path of its file.")  # fmt: skip
@click.option("--devices", cls=ListOption, default="2,4,8", show_default=True, help="Numbers of devices, separated by commas.")
@click.option("--bytes", "sizes", cls=ListOption, default="400kB,16MB,258MB", show_default=True,
              help="Sizes, separated by commas.")  # fmt: skip
@json_option()
@csv_option("Print one CSV row per size and number of devices.")
def command(node: str, devices: str, sizes: str, as_json: bool, as_csv: bool) -> None:
    """Simulate a ring all-reduce: time and bus bandwidth, beside DeepBench's measurements on its own servers.

    \b
    Examples:
      archsim simulate allreduce --devices 2,8,16 --bytes 400kB,258MB
      archsim simulate allreduce --node dgx_1_v100 --devices 8 --bytes 1GB
    """
    from archsim.base.units import show
    from archsim.node.spec import find
    from archsim.report.text import table
    from archsim.simulate.allreduce import simulate_all_reduce

    one_form(as_json, as_csv)
    counts = [whole(text, "--devices") for text in names(devices)]
    found = simulate_all_reduce(find(node), counts, [quantity(text, "B", "--bytes") for text in names(sizes)])
    if as_csv:
        from archsim.report.data import records_csv

        click.echo(records_csv([asdict(row) for row in found], {"node": node}), nl=False)
        return
    if as_json:
        click.echo(json.dumps({"schema": "archsim-allreduce/1", "node": node, "rows": [asdict(row) for row in found]}, indent=2))
        return
    rows = []
    for row in found:
        beside = [f"{m.hardware} {show(m.time_s, 's', 3)} ({100 * (row.time_s / m.time_s - 1):+.0f} %)" for m in row.measured]
        rows.append((str(row.devices), show(row.size, "B"), show(row.time_s, "s"), show(row.bandwidth_Bps, "B/s", 3),
                     str(row.rings), ", ".join(beside) or "-"))  # fmt: skip
    say(table(("devices", "bytes", "time", "bus bandwidth", "rings", "measured by DeepBench"), rows, left=0))
