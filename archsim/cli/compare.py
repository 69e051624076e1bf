"""`archsim compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from archsim.base.arguments import SEVERAL, rows_of
from archsim.base.units import COUNT
from archsim.base.values import parts
from archsim.base.writer import OutputFile
from archsim.cli.no_effect import tell_without_effect
from archsim.cli.output import AnswerForm, answer_forms, html_option, write
from archsim.cli.terminal import missed, note, say
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

if TYPE_CHECKING:
    from archsim.study.comparison import ComparedDevices, Comparison, CurveComparison
    from archsim.study.stack_change import StackChange
    from archsim.study.within import Held


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
@click.option("--layers", is_flag=True, help="Of two stacks on one device print every layer.")
@click.option("--ops", is_flag=True, help="Over several batches list the ops that gain from running on a GPU, and from which on.")
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
              json="Print a JSON list of estimates; for several batches an object, or a list of one for each network.")
@html_option()
def command(
    net: str, hw: str, stack: tuple[str, ...], layers: bool, ops: bool, batch_text: str | None, where: str | None,
    by: str, correlation: float | None, copies: bool | None, form: AnswerForm, html: OutputFile | None, **given: Any,
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
    from archsim.cli.progress import Progress
    from archsim.detect.selection import selected
    from archsim.study.batches import batches_of
    from archsim.study.buying import bought
    from archsim.study.comparison import ComparedDevices
    from archsim.study.ranking import check_criterion
    from archsim.study.within import compared

    check_criterion(by)
    nets, devices = list(dict.fromkeys(parts(net))), selected(parts(hw))
    for problem, named in (("--net names no network", nets), ("--hw names no device", devices)):
        if not named:
            raise click.UsageError(problem)
    batches = batches_of(batch_text) if batch_text is not None else []
    said = {row.name: given.pop(row.name) for row in rows_of("buyer")}
    field = ComparedDevices(devices, parts(",".join(stack)), choices(given), *bought(said, devices, given["task"]), by)
    if where is not None and (batches or layers or html):
        raise click.UsageError("--where finds the batch of each device: leave out --batch, --layers and --html")
    with Progress() as tell:
        listed = ops or form.json or html is not None
        found = compared(field, nets, batches, where, copies, correlation, tell, listed)
    if where is not None:
        _show_held(field, found, where, form)
    elif len(batches) > 1:
        _show_curves(field, found, form, html, ops)
    else:
        shown = zip(nets, found, strict=True) if html is not None or not form.csv else ()
        changes = [change for name, one in shown for change in _stack_changes(field, name, one, batches[0] if batches else None)]
        _show(found, changes, form, html, layers)


def _show_held(field: ComparedDevices, found: Sequence[Held], where: str, form: AnswerForm) -> None:
    from archsim.report.compare_data import comparison_csv
    from archsim.report.compare_within import held_record, held_text

    form.say(
        lambda: "\n\n\n".join(map(held_text, found)), lambda: [row for one in found for row in held_record(one)],
        csv=lambda: comparison_csv([x for one in found for x in one.comparison.contenders], [], field.workload),
    )  # fmt: skip
    if not all(one.comparison.contenders for one in found):
        missed(f"no device meets {where}")


def _stack_changes(field: ComparedDevices, net: str, c: Comparison, batch: int | None) -> list[StackChange]:
    """Where one device has several stacks that run the network, each of them against the first."""
    ran = {one.estimate.stack for one in c.all}
    named = [entrant for entrant in field.entrants if entrant.stack is not None and entrant.stack_id in ran]
    if len(named) < 2 or len({entrant.name for entrant in named}) > 1:
        return []
    from archsim.study.stack_change import stack_change

    first, *others = named
    return [
        stack_change(net, first.name, str(first.stack), str(other.stack), batch=batch, **field.asked(first)) for other in others
    ]


def _show(
    found: Sequence[Comparison], changes: Sequence[StackChange], form: AnswerForm, html: OutputFile | None, layers: bool
) -> None:
    from archsim.report.compare import comparisons_text
    from archsim.report.compare_data import comparison_csv, comparison_record

    _warn_without_effect([c for one in found for c in one.all])
    if html is not None:
        from archsim.report.compare_page import comparisons_page

        write(html, comparisons_page(found, changes))
    excluded = [(c.network, one) for c in found for one in c.excluded]
    form.say(
        lambda: comparisons_text(found), lambda: comparison_record(found, changes),
        csv=lambda: comparison_csv([x for c in found for x in c.all], excluded, found[0].workload),
    )  # fmt: skip
    for change in changes if not (form.json or form.csv) else ():
        from archsim.report.stack_change import stack_change_text

        say("\n" + stack_change_text(change, layers))
    _leave_if_none([bool(c.contenders) for c in found])


def _show_curves(
    field: Any, found: Sequence[CurveComparison], form: AnswerForm, html: OutputFile | None, ops: bool
) -> None:  # fmt: skip
    from archsim.report.compare_curves import curves_text
    from archsim.report.compare_data import comparison_csv, curves_record

    beyond = "link." if found[0].curves[0].points[0].copies else ""
    tell_without_effect([request for c in found for request in field.requests(c)], beyond=beyond)
    if html is not None:
        from archsim.report.compare_page import curve_pages

        write(html, curve_pages(found))
    excluded = [(c.network, one) for c in found for one in c.excluded]
    points = [p for c in found for curve in c.curves for p in curve.points]

    def records() -> Any:
        each = [curves_record(c, field.workload) for c in found]
        return each[0] if len(each) == 1 else each

    form.say(
        lambda: "\n\n\n".join(curves_text(one, ops) for one in found), records,
        csv=lambda: comparison_csv(points, excluded, field.workload),
    )  # fmt: skip
    _leave_if_none([any(one.contenders for one in c.best) for c in found])


def _leave_if_none(fitting: Sequence[bool]) -> None:
    """Leave with 1 if there is a network that no device holds."""
    if not all(fitting):
        missed("no device holds this work; a smaller --batch or --precision fp16 takes less memory")


def _warn_without_effect(contenders: Sequence[Any]) -> None:
    from archsim.estimation.unknown import STRICT

    for c in contenders:
        for text in c.estimate.warnings:
            if "changes no output" in text:
                note(f"{c.name}: {text}")
    bounds = {f"{c.estimate.network}: {text}" for c in contenders for text in c.estimate.warnings if text.endswith(STRICT)}
    for text in sorted(bounds):
        note(text)
