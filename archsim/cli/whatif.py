"""`archsim whatif`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.arguments import changes_of, chosen
from archsim.base.values import read
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, NET, Keyed, choices, setting_options

CHANGED = chosen(lambda row: row.changed)


@click.command("whatif")
@NET
@HW
@setting_options
@click.option("--to", "to", type=Keyed(*CHANGED, device=False), multiple=True, metavar="WHAT=VALUE",
              help=f"Change something else than a value of the device: {', '.join(CHANGED)}.")  # fmt: skip
@click.option("--area", is_flag=True, help="Also estimate area and cost of the die from its parts.")
@answer_forms("Print one CSV row per op, before and after.", json="Print one JSON object with both estimates.",
              layers="Also list every layer and total, before and after.", page=True)  # fmt: skip
def command(net: str, hw: str, to: tuple[str, ...], area: bool, form: AnswerForm, **given: Any) -> None:
    """Change a device and see each layer before and after: what gets faster, and what limits it then.

    --set and --scale change the device, --to anything else. All other options apply before and after.

    \b
    Examples:
      archsim whatif --net alexnet --hw tegra_x1 --set memory.bandwidth=51.2GB/s
      archsim whatif --net vgg_16 --hw titan_x_maxwell --batch 16 --scale sm.count=2 --area
      archsim whatif --net resnet_50 --hw tesla_k40 --batch 16 --to hw=tesla_v100_sxm2 --to precision=fp16
    """
    from archsim.study.whatif import whatif

    arguments, changed = choices(given), read("--to", changes_of, to)
    if not (changed or "settings" in arguments or "scales" in arguments):
        raise click.UsageError("nothing is changed: --set KEY=VALUE, --scale KEY=FACTOR or --to WHAT=VALUE")
    form.show(whatif(net, hw, arguments, changed, area))
