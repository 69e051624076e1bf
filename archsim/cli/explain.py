"""`archsim explain`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from archsim.cli.no_effect import told_request
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, NET, choices, setting_options


@click.command("explain")
@NET
@HW
@click.option("--layer", metavar="NAME", help="The op to explain; without it the slowest ops are listed.")
@click.option("--phase", help="forward, backward_data, backward_filter, backward or update.")
@click.option("--equations", is_flag=True, help="Also print the equations of the longest kernel with their numbers.")
@setting_options
@answer_forms("Print one CSV row per op of the list; without --layer only.",
              all="Print those of every kernel; JSON always has them.")  # fmt: skip
def command(layer: str | None, phase: str | None, equations: bool, form: AnswerForm, **given: Any) -> None:
    """Explain the time and energy of one layer: what decides, its kernels, the algorithms of the stack; with --equations every
    equation with its numbers.

    With --fidelity cycle: what an SM does in each of its kernels, the instructions at which warps wait, what would relieve it.

    \b
    Examples:
      archsim explain --net alexnet --hw gtx_1080
      archsim explain --net alexnet --hw gtx_1080 --layer conv2 --batch 16
      archsim explain --net alexnet --hw gtx_1080 --layer conv2 --equations
      archsim explain --net resnet_50 --hw tesla_v100_sxm2 --layer conv1 --task training_step --phase backward_filter
      archsim explain --net alexnet --hw gtx_1080 --layer conv2 --fidelity cycle
    """
    from archsim.estimation.fidelity import SIMULATED
    from archsim.explain.layer import explain, slowest

    if form.csv and layer is not None:
        raise click.UsageError("an explanation has no CSV form; --json has all of it, and --csv the list of ops without --layer")
    if layer is None and (phase is not None or equations):
        raise click.UsageError(f"{'--equations' if phase is None else '--phase'} belongs to a layer; name it with --layer")
    request = told_request(**choices(given))
    if equations and request.fidelity.name == SIMULATED:
        raise click.UsageError("--equations are those of the closed form; leave out --fidelity cycle")
    form = replace(form, level=max(form.level, int(equations)))
    if layer is None:
        form.show(slowest(request))
    elif request.fidelity.name == SIMULATED:
        from archsim.explain.simulated import simulate_layer

        form.show(simulate_layer(request, layer, phase), hint=not form.level)
    else:
        form.show(explain(request, layer, phase), hint=not form.level)
