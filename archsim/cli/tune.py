"""`archsim tune`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.arguments import ARGUMENTS, chosen
from archsim.cli.no_effect import told_request
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.terminal import missed
from archsim.cli.vocabulary import HW, NET, Keyed, choices, option, setting_options

TUNED = chosen(lambda row: row.tuned)


@click.command("tune")
@NET
@HW
@setting_options
@click.option("--minimise", "--minimize", "minimise", default="energy", metavar="OUTPUT",
              help="energy (of a sample), energy_delay (that times the latency of a batch), latency or power; of throughput and "
                   "efficiency the most.")  # fmt: skip
@click.option("--where", metavar="CONDITION",
              help='Keep settings that meet this, e.g. "latency < 20ms and power < 200W"; energy is that of a sample.')
@option(ARGUMENTS["energy_budget"])
@click.option("--vary", type=Keyed(*TUNED, device=False), multiple=True, metavar="KEY=VALUES",
              help=f"Values of a setting in place of the usual ones: {', '.join(TUNED)}; batch=1:64:x2.")  # fmt: skip
@answer_forms("Print one CSV row for the default, the best and each setting of the front.",
              all="Print every setting of the front.", page=True)
def command(
    net: str, hw: str, minimise: str, where: str | None, energy_budget: float | None, vary: tuple[str, ...],
    form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Find the best setting of a device: core clock, memory clock, power limit and batch, by energy, time or both.

    Tried are core clocks from the highest down to a tenth of it (in steps of 15 MHz on a GPU, of 100 MHz on a CPU), the memory
    clocks at which published powers of the card were measured (otherwise the usual one), power limits from the TDP down to 40 %
    of it, and batches of 1 to 64. A setting that is given (--clock, --memory-clock, --power-limit, --batch) stays; --vary takes
    others.

    \b
    Examples:
      archsim tune --net resnet_50 --hw tesla_v100_sxm2 --minimise energy --where "latency < 20ms"
      archsim tune --net resnet_50 --hw titan_x_maxwell --batch 8 --minimise energy_delay
      archsim tune --net bert_base --hw tesla_v100_sxm2 --minimise latency --energy-budget 1J --html front.html
      archsim tune --net vgg_16 --hw titan_xp --vary clock=900MHz:1500MHz:100MHz --vary memory_clock=4705MHz,5700MHz --json
    """
    from archsim.answers.tune import nearest_words
    from archsim.cli.progress import Progress
    from archsim.study.tune import tune

    arguments = choices(given)
    told_request(net=net, hw=hw, **arguments)
    with Progress() as tell:
        found = tune(net, hw, arguments, minimise=minimise, where=where, vary=vary, energy_budget=energy_budget, tell=tell)
    form.show(found)
    if found.best is None:
        missed(nearest_words(found))
