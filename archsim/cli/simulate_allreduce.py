"""`archsim simulate allreduce`."""

from __future__ import annotations

import click

from archsim.base.values import parts, quantity, whole
from archsim.base.writer import OutputFile
from archsim.cli.output import write_page
from archsim.cli.types import Known, ListOption, read
from archsim.cli.vocabulary import AnswerForm, answer_forms, html_option


@click.command("allreduce")
@click.option("--node", type=Known("node"), default="deepbench_8gpu", show_default=True,
              help="The node (`archsim list nodes`), or the path of its file.")  # fmt: skip
@click.option("--devices", cls=ListOption, default="2,4,8", show_default=True, help="Numbers of devices, separated by commas.")
@click.option("--bytes", "sizes", cls=ListOption, default="400kB,16MB,258MB", show_default=True,
              help="Sizes, separated by commas.")  # fmt: skip
@answer_forms("Print one CSV row per size and number of devices.")
@html_option()
def command(node: str, devices: str, sizes: str, form: AnswerForm, html: OutputFile | None) -> None:
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
    answer = AllReduces(node=node, rows=tuple(found))
    if html is not None:
        from archsim.answers.allreduce import sections

        write_page(html, sections(answer))
    form.show(answer)
