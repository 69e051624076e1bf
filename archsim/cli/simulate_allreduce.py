"""`archsim simulate allreduce`."""

from __future__ import annotations

from dataclasses import asdict

import click

from archsim.base.values import parts, quantity, whole
from archsim.cli.types import Known, ListOption, read
from archsim.cli.vocabulary import AnswerForm, answer_forms


@click.command("allreduce")
@click.option("--node", type=Known("node"), default="deepbench_8gpu", show_default=True,
              help="The node (`archsim list nodes`), or the path of its file.")  # fmt: skip
@click.option("--devices", cls=ListOption, default="2,4,8", show_default=True, help="Numbers of devices, separated by commas.")
@click.option("--bytes", "sizes", cls=ListOption, default="400kB,16MB,258MB", show_default=True,
              help="Sizes, separated by commas.")  # fmt: skip
@answer_forms("Print one CSV row per size and number of devices.")
def command(node: str, devices: str, sizes: str, form: AnswerForm) -> None:
    """Simulate a ring all-reduce: time and bus bandwidth, beside DeepBench's measurements on its own servers.

    \b
    Examples:
      archsim simulate allreduce --devices 2,8,16 --bytes 400kB,258MB
      archsim simulate allreduce --node dgx_1_v100 --devices 8 --bytes 1GB
    """
    from archsim.base.units import show
    from archsim.node.spec import find
    from archsim.report.data import records_csv
    from archsim.report.text import table
    from archsim.simulate.allreduce import simulate_all_reduce

    counts = [read("--devices", whole, text) for text in parts(devices)]
    found = simulate_all_reduce(find(node), counts, [read("--bytes", quantity, text, "B") for text in parts(sizes)])
    records = [asdict(row) for row in found]
    rows = []
    for row in found:
        beside = [f"{m.hardware} {show(m.time_s, 's', 3)} ({100 * (row.time_s / m.time_s - 1):+.0f} %)" for m in row.measured]
        rows.append((str(row.devices), show(row.size, "B"), show(row.time_s, "s"), show(row.bandwidth_Bps, "B/s", 3),
                     str(row.rings), ", ".join(beside) or "-"))  # fmt: skip
    head = ("devices", "bytes", "time", "bus bandwidth", "rings", "measured by DeepBench")
    form.say(lambda: table(head, rows, left=0), lambda: {"schema": "archsim-allreduce/1", "node": node, "rows": records},
             csv=lambda: records_csv(records, {"node": node}))  # fmt: skip
