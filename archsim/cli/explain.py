"""`archsim explain`."""

from __future__ import annotations

from typing import Any

import click

from archsim.cli.no_effect import tell_without_effect
from archsim.cli.options import choices, setting_options
from archsim.cli.terminal import say
from archsim.cli.vocabulary import HW, NET, json_option


@click.command("explain")
@NET
@HW
@click.option("--layer", default=None, metavar="NAME", help="The op to explain; without it the slowest ops are listed.")
@click.option("--phase", default=None, help="forward, backward_data, backward_filter, backward or update.")
@click.option("--all", "every", is_flag=True, help="Print the equations of every kernel; JSON always has them.")
@setting_options
@json_option()
def command(
    net: str, hw: str, layer: str | None, phase: str | None, every: bool, as_json: bool, **given: Any
) -> None:
    """Explain the time and energy of one layer: algorithms, tiles, and every equation with its numbers.

    \b
    Examples:
      archsim explain --net alexnet --hw gtx_1080
      archsim explain --net alexnet --hw gtx_1080 --layer conv2 --batch 16
      archsim explain --net resnet_50 --hw tesla_v100_sxm2 --layer conv1 --task training_step --phase backward_filter
      archsim explain --net alexnet --hw i7_6700k --layer fc6 --json
    """
    from archsim.device.variant import called
    from archsim.estimation.request import make_request
    from archsim.explain.layer import explain, slowest
    from archsim.report.explain import explanation_json, explanation_text, slowest_json, slowest_text

    if phase is not None and layer is None:
        raise click.UsageError("--phase belongs to a layer; name it with --layer")
    request = make_request(net, hw, **choices(**given))
    tell_without_effect([request])
    if layer is None:
        rows = slowest(request)
        say(slowest_json(rows) if as_json else slowest_text(rows, request.network, called(request.spec)), plain=as_json)
        return
    explanation = explain(request, layer, phase)
    say(explanation_json(explanation) if as_json else explanation_text(explanation, every), plain=as_json)
