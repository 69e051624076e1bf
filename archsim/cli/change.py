"""Commands that change a device: what if, what matters, the best device, the best setting."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from html import escape
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from archsim.base.arguments import ARGUMENTS, changes_of, chosen
from archsim.base.errors import MissingExtra
from archsim.base.values import read
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.terminal import Progress, missed, tell_idle, tell_without_effect, told_request
from archsim.cli.vocabulary import (
    PLACE,
    Keyed,
    Quantity,
    ask_about,
    choices,
    flag,
    listed,
    option,
    own,
    refuse_others,
    setting_options,
    some_options,
    space_options,
)

# ------------------------------------------------------------------------------------------------------------------ whatif


CHANGED = chosen(lambda row: row.changed)


@click.command("whatif")
@PLACE
@setting_options
@own("--to to", f"Change something else than a value of the device: {', '.join(CHANGED)}.", Keyed(*CHANGED, device=False),
     multiple=True, metavar="WHAT=VALUE")
@flag("--area", "Also estimate area and cost of the die from its parts.")
@answer_forms("Print one CSV row per op, before and after.", json="Print one JSON object with both estimates.",
              layers="Also list every layer and total, before and after.", page=True)  # fmt: skip
def whatif_command(net: str, hw: str, to: tuple[str, ...], area: bool, form: AnswerForm, **given: Any) -> None:
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


# ------------------------------------------------------------------------------------------------------------- sensitivity


OUTPUTS = {"latency": "latency_s", "energy": "energy_j", "power": "power_w"}


@click.command("sensitivity")
@PLACE
@setting_options
@own("--of output", "Output of the tornado, by which the rows are sorted.", list(OUTPUTS), "latency")
@listed("--keys", "Only these values of the device.", metavar="KEY,...")
@own("--step", "Relative step of the elasticities, both ways.", Quantity("%", low=1e-6, high=0.2), "1%")
@own("--span", "Relative step of the tornado, both ways.", Quantity("%", low=0.001, high=0.9), "25%")
@answer_forms("Print one CSV row per value of the spec.", layers="Also list what has no effect.",
              all="Print every value that matters, and what has no effect.", page=True)  # fmt: skip
def sensitivity_command(output: str, keys: list[str], step: float, span: float, form: AnswerForm, **given: Any) -> None:
    """How much each value of a device matters: elasticities of latency, energy and power, and a tornado.

    An elasticity of -1 means that one per cent more of the value takes one per cent off the output.

    \b
    Examples:
      archsim sensitivity --net alexnet --hw tegra_x1
      archsim sensitivity --net vgg_16 --hw titan_x_maxwell --batch 128 --of energy --html tornado.html
      archsim sensitivity --net resnet_50 --hw gtx_1080 --keys sm.count,memory.bandwidth,l2.size --span 50%
    """
    from archsim.study.sensitivity import Sensitivity, sensitivity

    request = told_request(**choices(given))
    with Progress() as tell:
        values = tuple(sensitivity(request, keys, step, span, tell))
    form.show(Sensitivity(request=request, values=values, step=step, span=span, output=OUTPUTS[output]))


# ------------------------------------------------------------------------------------------------------------------ search


MANY = 1_000_000  # points from which on --yes is required: unlike a sweep, a search that is interrupted keeps nothing


@click.command("search")
@PLACE
@some_options("traffic")
@space_options
@listed("--minimise --minimize minimise", "latency, energy, sample_energy, energy_delay, power, area, cost, memory or "
        "traffic; the first one ranks, all make the front.", metavar="OUTPUT,...")
@listed("--maximise --maximize maximise", "throughput or efficiency.", metavar="OUTPUT,...")
@own("--where", 'Keep points that meet this, e.g. "latency < 50ms and power < 150W".', metavar="CONDITION")
@listed("--front", "Objectives of the Pareto front, if other ones.", metavar="OUTPUT,...")
@own("--target", "Instead, find the least changes that reach this, e.g. throughput=1000/s or latency=5ms.",
     metavar="OUTPUT=VALUE")
@own("--trials", "Let optuna choose this many points (extra dse).", click.IntRange(1, 100_000))
@own("--seed", "Random seed of --sample or --trials.", int, 1)
@flag("--any-memory", "Include points at which the run does not fit the memory.")
@flag("--any-die", "Include points whose die is larger than any mask can make.")
@own("--top", "Number of best points to list.", click.IntRange(1, 1000), 5)
@answer_forms("Print one CSV row for each of the best and of the front.", all="Print every point of the front.", page=True)
def search_command(
    net: str, hw: str, vary: tuple[str, ...], link: tuple[str, ...], minimise: list[str], maximise: list[str],
    where: str | None, front: list[str], target: str | None, sample: int | None, trials: int | None, seed: int,
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
    from archsim.answers.search import large_words
    from archsim.estimation.hardware import find_device
    from archsim.study.axis import axis_of, coupling_of
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
    aims = objectives(minimise, maximise)
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
                front=tuple(in_better_direction(front)), any_memory=any_memory,
                any_die=any_die)  # fmt: skip
    goal = with_default_front(goal, space.knobs, Evaluator(request).silicon)
    if trials:
        tell_without_effect([request])
    else:
        tell_idle(space, [request])
    with Progress() as tell:
        found = search(request, space, goal, top=top, trials=trials or 0, seed=seed, tell=tell, repeated=True)
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


# -------------------------------------------------------------------------------------------------------------------- tune


TUNED = chosen(lambda row: row.tuned)


@click.command("tune")
@PLACE
@setting_options
@own("--minimise --minimize minimise", "energy (of a sample), energy_delay (that times the latency of a batch), latency or "
     "power; of throughput and efficiency the most.", usual="energy", metavar="OUTPUT")
@own("--where", 'Keep settings that meet this, e.g. "latency < 20ms and power < 200W"; energy is that of a sample.',
     metavar="CONDITION")
@option(ARGUMENTS["energy_budget"])
@own("--vary", f"Values of a setting in place of the usual ones: {', '.join(TUNED)}; batch=1:64:x2.",
     Keyed(*TUNED, device=False), multiple=True, metavar="KEY=VALUES")
@answer_forms("Print one CSV row for the default, the best and each setting of the front.",
              all="Print every setting of the front.", page=True)
def tune_command(
    net: str, hw: str, minimise: str, where: str | None, energy_budget: float | None, vary: tuple[str, ...], form: AnswerForm,
    **given: Any,
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
    from archsim.study.tune import tune

    arguments = choices(given)
    told_request(net=net, hw=hw, **arguments)
    with Progress() as tell:
        found = tune(net, hw, arguments, minimise=minimise, where=where, vary=vary, energy_budget=energy_budget, tell=tell)
    form.show(found)
    if found.best is None:
        missed(nearest_words(found))


# ---------------------------------------------------------------------------------------------------------------------- ui


NEEDED = ("starlette", "uvicorn", "python_multipart")


@click.command("ui")
@own("--net", "What the page opens with: a network, a language model, or a file.", "network")
@own("--hw", "The device, or a file of one.", "device")
@own("--port", "Port on 127.0.0.1; 0 takes a free one.", click.IntRange(0, 65535), 8050)
@flag("--no-browser", "Print the address and open nothing.")
def ui_command(net: str | None, hw: str | None, port: int, no_browser: bool) -> None:
    """What if as a page in a browser: sliders for the values of a device, before and after, variants side by side.

    Networks and served language models; your own files by dropping them on the page. Only this computer can open it, with the key
    in the address that is printed. The address of a page holds all that it shows. Ctrl-C ends it.

    \b
    Examples:
      archsim ui
      archsim ui --net alexnet --hw gtx_1080
      archsim ui --port 9000 --no-browser
    """
    if not all(map(find_spec, NEEDED)):
        raise MissingExtra("`archsim ui`", "ui")
    from archsim.ui.server import PageServer

    try:
        made = PageServer(port)
    except OSError as error:
        why = f"{port}: {error.strerror or error}; another one, or 0 for a free one"
        raise click.BadParameter(why, param_hint="--port") from None
    with made.socket, TemporaryDirectory(prefix="archsim-ui-") as folder:
        try:
            address = made.address(net, hw)
            click.echo(address)
            click.echo("Ctrl-C ends it.", err=True)
            if not no_browser:
                # By a file that the user alone can read: words of a command, such as a browser's, are seen by all.
                page = Path(folder) / "open.html"
                page.write_text(f'<meta http-equiv="refresh" content="0;url={escape(address)}">', "utf-8")
                webbrowser.open(page.as_uri())
            made.run()
        finally:
            made.app.uploads.close()
