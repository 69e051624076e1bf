"""`archsim sensitivity`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.values import parts
from archsim.cli.no_effect import told_request
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, NET, ListOption, Quantity, choices, setting_options

OUTPUTS = {"latency": "latency_s", "energy": "energy_j", "power": "power_w"}


@click.command("sensitivity")
@NET
@HW
@setting_options
@click.option("--of", "output", default="latency", type=click.Choice(list(OUTPUTS)),
              help="Output of the tornado, by which the rows are sorted.")  # fmt: skip
@click.option("--keys", cls=ListOption, metavar="KEY,...", help="Only these values of the device.")
@click.option("--step", type=Quantity("%", low=1e-6, high=0.2), default="1%",
              help="Relative step of the elasticities, both ways.")  # fmt: skip
@click.option("--span", type=Quantity("%", low=0.001, high=0.9), default="25%",
              help="Relative step of the tornado, both ways.")  # fmt: skip
@answer_forms("Print one CSV row per value of the spec.", layers="Also list what has no effect.",
              all="Print every value that matters, and what has no effect.", page=True)  # fmt: skip
def command(
    output: str, keys: str | None, step: float, span: float, form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """How much each value of a device matters: elasticities of latency, energy and power, and a tornado.

    An elasticity of -1 means that one per cent more of the value takes one per cent off the output.

    \b
    Examples:
      archsim sensitivity --net alexnet --hw tegra_x1
      archsim sensitivity --net vgg_16 --hw titan_x_maxwell --batch 128 --of energy --html tornado.html
      archsim sensitivity --net resnet_50 --hw gtx_1080 --keys sm.count,memory.bandwidth,l2.size --span 50%
    """
    from archsim.cli.progress import Progress
    from archsim.study.sensitivity import Sensitivity, sensitivity

    wanted = [] if keys is None else parts(keys)
    if keys is not None and not wanted:
        raise click.UsageError("--keys names no value of the spec")
    request = told_request(**choices(given))
    with Progress() as tell:
        values = tuple(sensitivity(request, wanted, step, span, tell))
    form.show(Sensitivity(request=request, values=values, step=step, span=span, output=OUTPUTS[output]))
