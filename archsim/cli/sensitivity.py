"""`archsim sensitivity`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.values import parts
from archsim.base.writer import OutputFile
from archsim.cli.no_effect import tell_without_effect
from archsim.cli.options import choices, setting_options
from archsim.cli.output import write_page
from archsim.cli.types import ListOption, Share
from archsim.cli.vocabulary import HW, NET, AnswerForm, answer_forms, html_option

OUTPUTS = {"latency": "latency_s", "energy": "energy_j", "power": "power_w"}


@click.command("sensitivity")
@NET
@HW
@setting_options
@click.option("--of", "output", default="latency", show_default=True, type=click.Choice(list(OUTPUTS)),
              help="Output of the tornado, by which the rows are sorted.")  # fmt: skip
@click.option("--keys", cls=ListOption, default=None, metavar="KEY,...", help="Only these values of the device.")
@click.option("--step", type=Share(1e-6, 0.2), default="1%", show_default=True,
              help="Relative step of the elasticities, both ways.")  # fmt: skip
@click.option("--span", type=Share(0.001, 0.9), default="25%", show_default=True,
              help="Relative step of the tornado, both ways.")  # fmt: skip
@answer_forms("Print one CSV row per value of the spec.", layers="Also list what has no effect.",
              all="Print every value that matters, and what has no effect.")  # fmt: skip
@html_option("Also write a self-contained page with the tornado.")
def command(
    net: str, hw: str, output: str, keys: str | None, step: float, span: float, form: AnswerForm,
    html: OutputFile | None, **given: Any,
) -> None:  # fmt: skip
    """How much each value of a device matters: elasticities of latency, energy and power, and a tornado.

    An elasticity of -1 means that one per cent more of the value takes one per cent off the output.

    \b
    Examples:
      archsim sensitivity --net alexnet --hw tegra_x1
      archsim sensitivity --net vgg_16 --hw titan_x_maxwell --batch 128 --of energy --html tornado.html
      archsim sensitivity --net resnet_50 --hw gtx_1080 --keys sm.count,memory.bandwidth,l2.size --span 50%
    """
    from archsim.answers.sensitivity import sections
    from archsim.cli.progress import Progress
    from archsim.estimation.request import make_request
    from archsim.study.sensitivity import Sensitivity, sensitivity

    wanted = [] if keys is None else parts(keys)
    if keys is not None and not wanted:
        raise click.UsageError("--keys names no value of the spec")
    request = make_request(net, hw, **choices(given))
    tell_without_effect([request])
    with Progress() as tell:
        values = tuple(sensitivity(request, wanted, step, span, tell))
    found = Sensitivity(request=request, values=values, step=step, span=span, output=OUTPUTS[output])
    if html is not None:
        write_page(html, sections(found))
    form.show(found)
