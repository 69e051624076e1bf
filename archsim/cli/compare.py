"""`archsim compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from archsim.base.arguments import SEVERAL, rows_of
from archsim.base.units import COUNT
from archsim.base.values import parts
from archsim.base.writer import OutputFile
from archsim.cli.no_effect import tell_without_effect
from archsim.cli.output import AnswerForm, answer_forms, html_option, write_page
from archsim.cli.terminal import missed, note
from archsim.cli.vocabulary import (
    BATCHES,
    HWS,
    Known,
    LateHelpOption,
    ListOption,
    Quantity,
    boundary_options,
    choices,
    options,
    some_options,
)


def _criteria() -> str:
    from archsim.study.ranking import CRITERIA

    return "Sort by " + ", ".join(f"{c.name} ({c.title})" if c.name != c.title else c.name for c in CRITERIA) + "."


@click.command("compare")
@click.option("--net", cls=ListOption, type=Known("network", many=True), default=("alexnet",),
              help="Networks or trace files, separated by commas; alexnet if not given.")  # fmt: skip
@HWS
@click.option("--stack", type=Known("stack", many=True), multiple=True,
              help="Software stacks, separated by commas or named again; each device's default if not given. Of two and more on "
                   "one device each is set against the first one, layer by layer.")  # fmt: skip
@BATCHES
@some_options(*SEVERAL)
@click.option("--where", default=None, metavar="CONDITION",
              help='Take the largest batch of each device that meets this, e.g. "latency < 10ms and power < 200W"; also energy '
                   "(of a sample), throughput, efficiency, memory.")  # fmt: skip
@click.option("--by", cls=LateHelpOption, late_help=_criteria, default="speed", show_default=True, metavar="CRITERION")
@click.option("--correlation", type=Quantity(COUNT, low=0.0, high=0.99), default=None, metavar="NUMBER",
              help="Correlation of the errors of any two predictions, 0 to 0.99; as measured if not given.")  # fmt: skip
@boundary_options
@options(rows_of("buyer"))
@click.option("--copies/--no-copies", default=None,
              help="Include copying inputs to a GPU and results back; default for several batches on CPUs and GPUs.")  # fmt: skip
@answer_forms("Print one CSV row per network, device, stack and batch.",
              json="Print a JSON list of estimates; for several batches an object, or a list of one for each network.",
              layers="Of two stacks on one device print every layer.",
              all="Print all else: rankings, intervals, costs; over several batches also the ops that gain on a GPU.")
@html_option()
def command(
    net: str, hw: str, stack: tuple[str, ...], batch_text: str | None, where: str | None, by: str, correlation: float | None,
    copies: bool | None, form: AnswerForm, html: OutputFile | None, **given: Any,
) -> None:  # fmt: skip
    """Rank devices on one or more networks: by speed, per watt, per dollar and by cost, with the probability of the order.

    A device whose memory does not hold the work is not ranked. Several stacks make a table of which is best on which device.
    For a range of batches: time per sample, the best device at each batch, the largest batch that fits, and the batch from
    which on a GPU overtakes a CPU, with copies between host and device. --threads applies to the CPUs among the devices.

    \b
    Examples:
      archsim compare --net alexnet --hw tegra_x1,gtx_1080,i7_6700k --batch 16
      archsim compare --net vgg_16,resnet_50 --hw 'a100*,h100' --precision fp16 --batch 64
      archsim compare --net alexnet --hw gtx_1080,titan_x_pascal --stack caffe-cudnn5.1,tensorflow-cudnn5.1
      archsim compare --net resnet_50 --hw rtx_4090,l4,i9_13900k --where "latency < 10ms"
      archsim compare --net resnet_50 --hw h100,rtx_4090 --price h100=2.5USD/h --electricity 0.25USD/kWh --duty 0.5 --by cost
      archsim compare --net resnet_50 --hw gpu --task training_step --batch 32 --samples 1281167 --epochs 90
      archsim compare --net alexnet --hw i7_6700k,gtx_1080 --batch 1:256:x2
      archsim compare --net resnet_50 --hw a100_sxm4_40gb --stack pytorch-2 --stack pytorch-2-inductor --batch 64
    """
    from archsim.answers import module_of, networks
    from archsim.cli.progress import Progress
    from archsim.detect.selection import selected
    from archsim.study.batches import batches_of
    from archsim.study.buying import bought
    from archsim.study.comparison import ComparedDevices
    from archsim.study.within import compared

    nets, devices = list(dict.fromkeys(parts(net))), selected(parts(hw))
    for problem, named in (("--net names no network", nets), ("--hw names no device", devices)):
        if not named:
            raise click.UsageError(problem)
    batches = batches_of(batch_text) if batch_text is not None else []
    said = {row.name: given.pop(row.name) for row in rows_of("buyer")}
    field = ComparedDevices(devices, parts(",".join(stack)), choices(given), *bought(said, devices, given["task"]), by)
    with Progress() as tell:
        listed = form.json or form.level > 1 or html is not None
        found = compared(field, nets, batches, where, copies, correlation, tell, listed)
    _warn(field, found)
    answer, module = (found[0], module_of(found[0])) if len(found) == 1 else (found, networks)
    if html is not None:
        write_page(html, module.sections(answer))
    form.show(answer, module)
    if not all(one.contenders for one in found):
        missed(f"no device meets {where}" if where is not None else
               "no device holds this work; a smaller --batch or --precision fp16 takes less memory")  # fmt: skip


def _warn(field: Any, found: Sequence[Any]) -> None:
    """Name the changes that change nothing, and the ops of which only a bound is known."""
    from archsim.estimation.unknown import STRICT
    from archsim.study.comparison import Comparison, CurveComparison

    curves = [one for one in found if isinstance(one, CurveComparison)]
    if curves:
        beyond = "link." if curves[0].curves[0].points[0].copies else ""
        tell_without_effect([request for c in curves for request in field.requests(c)], beyond=beyond)
    contenders = [c for one in found if isinstance(one, Comparison) for c in one.all]
    for c in contenders:
        for text in c.estimate.warnings:
            if "changes no output" in text:
                note(f"{c.name}: {text}")
    bounds = {f"{c.estimate.network}: {text}" for c in contenders for text in c.estimate.warnings if text.endswith(STRICT)}
    for text in sorted(bounds):
        note(text)
