"""`archsim search`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.values import parts
from archsim.cli.no_effect import tell_idle, tell_without_effect, told_request
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.terminal import missed
from archsim.cli.vocabulary import HW, NET, ListOption, ask_about, choices, refuse_others, some_options, space_options

MANY = 1_000_000  # points from which on --yes is required: unlike a sweep, a search that is interrupted keeps nothing


@click.command("search")
@NET
@HW
@some_options("traffic")
@space_options
@click.option("--minimise", "--minimize", "minimise", cls=ListOption, metavar="OUTPUT,...",
              help="latency, energy, sample_energy, energy_delay, power, area, cost, memory or traffic; the first one ranks, all "
                   "make the front.")
@click.option("--maximise", "--maximize", "maximise", cls=ListOption, metavar="OUTPUT,...",
              help="throughput or efficiency.")  # fmt: skip
@click.option("--where", metavar="CONDITION",
              help='Keep points that meet this, e.g. "latency < 50ms and power < 150W".')  # fmt: skip
@click.option("--front", cls=ListOption, metavar="OUTPUT,...",
              help="Objectives of the Pareto front, if other ones.")  # fmt: skip
@click.option("--target", metavar="OUTPUT=VALUE",
              help="Instead, find the least changes that reach this, e.g. throughput=1000/s or latency=5ms.")
@click.option("--trials", type=click.IntRange(1, 100_000),
              help="Let optuna choose this many points (extra dse).")
@click.option("--seed", type=int, default=1, help="Random seed of --sample or --trials.")
@click.option("--any-memory", is_flag=True, help="Include points at which the run does not fit the memory.")
@click.option("--any-die", is_flag=True, help="Include points whose die is larger than any mask can make.")
@click.option("--top", type=click.IntRange(1, 1000), default=5, help="Number of best points to list.")
@answer_forms("Print one CSV row for each of the best and of the front.", all="Print every point of the front.", page=True)
def command(
    net: str, hw: str, vary: tuple[str, ...], link: tuple[str, ...], minimise: str | None, maximise: str | None,
    where: str | None, front: str | None, target: str | None, sample: int | None, trials: int | None, seed: int,
    any_memory: bool, any_die: bool, top: int, yes: bool, form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Find the best device within conditions, by time, energy, power, die area or cost.

    Every point of the grid is evaluated; a range without steps (memory.bandwidth=100GB/s:1TB/s:log) needs --sample or --trials.
    Area and cost are estimated from the parts of the die. Latency and energy are those of a whole batch; if the batch
    varies, compare throughput and efficiency.

    \b
    Examples:
      archsim search --net vgg_16 --hw titan_x_pascal --minimise energy --where "power < 180W" --vary sm.count=16:48:4
      archsim search --net alexnet --hw gtx_1080 --minimise latency,area --vary sm.count=4:40:4 --vary l2.size=1MiB:8MiB:x2
      archsim search --net resnet_50 --hw gtx_1080 --target throughput=1000/s
    """
    from dataclasses import replace

    from archsim.answers.search import large_words
    from archsim.cli.progress import Progress
    from archsim.estimation.request import find_device
    from archsim.study.axis import axis_of
    from archsim.study.coupling import coupling_of
    from archsim.study.knob import meaning
    from archsim.study.objective import conditions, in_better_direction, objectives
    from archsim.study.search import Evaluator, SearchGoal, check_count, search, with_default_front
    from archsim.study.space import Space

    arguments = choices(given)
    if target is not None:
        refuse_others("--target", {"net", "hw", "vary", "target", "as_json", "everything", *given})
        return _target(net, hw, target, vary, form, arguments)
    if not vary:
        raise click.UsageError("nothing varies: --vary KEY=VALUES, like --vary sm.count=8:64:8")
    if sample and trials:
        raise click.UsageError("--sample and --trials both choose the points; give one of them")
    aims = objectives(parts(minimise or ""), parts(maximise or ""))
    if not aims:
        raise click.UsageError("no objective: --minimise energy, --maximise throughput, or --target throughput=1000/s")
    kind = find_device(hw, None).kind
    axes = tuple(axis_of(text, kind) for text in vary)
    links = tuple(coupling_of(text, tuple(axis.knob for axis in axes)) for text in link)
    space = Space(bases=({"net": net, "hw": hw},), asked=arguments, axes=axes, links=links, sample=sample or 0,
                  seed=seed)  # fmt: skip
    # optuna samples ranges itself, so only the rest of the space is checked
    listed = replace(space, axes=tuple(axis for axis in axes if axis.values), links=()) if trials else space
    request = listed.checked()[0]
    if not trials:
        check_count(space)
        ask_about(space, request, yes, MANY)
    units = {axis.knob: meaning(kind, axis.knob).unit for axis in axes if not axis.words}
    goal = SearchGoal(objectives=tuple(aims), conditions=tuple(conditions(where, units)) if where else (),
                front=tuple(in_better_direction(parts(front or ""))), any_memory=any_memory,
                any_die=any_die)  # fmt: skip
    goal = with_default_front(goal, space.knobs, Evaluator(request).silicon)
    if trials:
        tell_without_effect([request])
    else:
        tell_idle(space, [request])
    with Progress() as tell:
        found = search(request, space, goal, top=top, trials=trials or 0, seed=seed, tell=tell)
    form.show(found)
    if not found.best:
        missed(f"no point is possible ({found.why})" if found.broken == found.points else
               f"no point meets the conditions{large_words(found)}")


def _target(net: str, hw: str, target: str, vary: tuple[str, ...], form: AnswerForm, arguments: dict[str, Any]) -> None:
    from archsim.study.objective import target_of
    from archsim.study.target import LARGEST_FACTOR, changes_for_target

    goal, request = target_of(target), told_request(net=net, hw=hw, **arguments)
    found = changes_for_target(request, goal, [text.partition("=")[0].strip() for text in vary])
    form.show(found)
    if all(way.factor is None for way in found.ways):
        missed(f"no change up to x {LARGEST_FACTOR:g} reaches {target}")
