"""`archsim explain`."""

from __future__ import annotations

from typing import Any

import click

from archsim.cli.no_effect import tell_without_effect
from archsim.cli.options import choices, setting_options
from archsim.cli.vocabulary import HW, NET, AnswerForm, answer_forms


@click.command("explain")
@NET
@HW
@click.option("--layer", default=None, metavar="NAME", help="The op to explain; without it the slowest ops are listed.")
@click.option("--phase", default=None, help="forward, backward_data, backward_filter, backward or update.")
@click.option("--all", "every", is_flag=True, help="Print the equations of every kernel; JSON always has them.")
@setting_options
@answer_forms("Print one CSV row per op of the list; without --layer only.")
def command(net: str, hw: str, layer: str | None, phase: str | None, every: bool, form: AnswerForm, **given: Any) -> None:
    """Explain the time and energy of one layer: algorithms, tiles, and every equation with its numbers.

    With --fidelity cycle: what an SM does in each of its kernels, the instructions at which warps wait, what would relieve it.

    \b
    Examples:
      archsim explain --net alexnet --hw gtx_1080
      archsim explain --net alexnet --hw gtx_1080 --layer conv2 --batch 16
      archsim explain --net resnet_50 --hw tesla_v100_sxm2 --layer conv1 --task training_step --phase backward_filter
      archsim explain --net alexnet --hw i7_6700k --layer fc6 --json
      archsim explain --net alexnet --hw gtx_1080 --layer conv2 --fidelity cycle
    """
    from dataclasses import asdict

    from archsim.device.variant import called
    from archsim.estimation.fidelity import SIMULATED
    from archsim.estimation.request import make_request
    from archsim.explain.layer import explain, slowest
    from archsim.report.data import records_csv
    from archsim.report.explain import explanation_record, explanation_text, slowest_text

    if form.csv and layer is not None:
        raise click.UsageError("an explanation has no CSV form; --json has all of it, and --csv the list of ops without --layer")
    if phase is not None and layer is None:
        raise click.UsageError("--phase belongs to a layer; name it with --layer")
    request = make_request(net, hw, **choices(given))
    tell_without_effect([request])
    if layer is None:
        rows, device = slowest(request), called(request.spec)
        records = [asdict(row) for row in rows]
        columns = {"network": request.network, "hardware": request.spec.identity.id, "hardware_name": device}
        form.say(lambda: slowest_text(rows, request.network, device), lambda: records, csv=lambda: records_csv(records, columns))
        return
    if request.fidelity.name == SIMULATED:
        from archsim.explain.simulated import simulate_layer
        from archsim.report.explain_sm import simulated_record, simulated_text

        form.say(simulated_text, simulated_record, simulate_layer(request, layer, phase))
        return
    form.say(lambda e: explanation_text(e, every), explanation_record, explain(request, layer, phase))
