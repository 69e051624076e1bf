"""`archsim simulate allreduce`."""

from __future__ import annotations

import click

from archsim.base.values import parts, quantity, read, whole
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import Known, ListOption


@click.command("allreduce")
@click.option("--node", type=Known("node"), default="deepbench_8gpu",
              help="The node (`archsim list nodes`), or the path of its file.")  # fmt: skip
@click.option("--devices", cls=ListOption, default="2,4,8", help="Numbers of devices, separated by commas.")
@click.option("--bytes", "sizes", cls=ListOption, default="400kB,16MB,258MB",
              help="Sizes, separated by commas.")  # fmt: skip
@answer_forms("Print one CSV row per size and number of devices.", page=True)
def command(node: str, devices: str, sizes: str, form: AnswerForm) -> None:
    """Simulate a ring all-reduce: time and bus bandwidth, beside DeepBench's measurements on its own servers.

    \b
    Examples:
      archsim simulate allreduce --devices 2,8,16 --bytes 400kB,258MB
      archsim simulate allreduce --node dgx_1_v100 --devices 8 --bytes 1GB
    """
    from archsim.node.spec import find
    from archsim.simulate.allreduce import AllReduces, simulate_all_reduce

    counts = [read("--devices", whole, text) for text in parts(devices)]
    found = simulate_all_reduce(find(node), counts, [read("--bytes", quantity, text, "B") for text in parts(sizes)])
    form.show(AllReduces(node=node, rows=tuple(found)))
