"""`archsim estimate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from archsim.base.arguments import ARGUMENTS
from archsim.base.writer import EXECUTION_TRACE, OutputFile
from archsim.cli.output import AnswerForm, answer_forms, output, timeline_option, write_timeline
from archsim.cli.terminal import missed, note
from archsim.cli.vocabulary import BATCHES, HW, NET, boundary_options, choices, holds, option, some_options


@click.command("estimate")
@NET
@HW
@BATCHES
@some_options("batch")
@option(ARGUMENTS["energy_budget"])
@boundary_options
@answer_forms("Print one CSV row per op.", layers="Also list every layer.", all="Print all that is known of the run.", page=True)
@timeline_option("Also write a timeline for ui.perfetto.dev.")
@output("--chakra", EXECUTION_TRACE,
        "Also write an execution trace of MLCommons Chakra, with predicted times: FILE.et, or FILE.json.")
@click.option("--fail-if", metavar="CONDITION",
              help='Exit with code 1 if this is true, e.g. "latency > 5ms and power > 10W".')  # fmt: skip
def command(
    net: str, hw: str, form: AnswerForm, timeline: OutputFile | None, chakra: OutputFile | None,
    fail_if: str | None, energy_budget: float | None, batch_text: str | None, **given: Any,
) -> None:  # fmt: skip
    """Predict time, power, energy and memory of one network on one device, layer by layer.

    \b
    Examples:
      archsim estimate --net alexnet --hw tegra_x1
      archsim estimate --net alexnet --hw tegra_x1 --batch 128 --precision fp16
      archsim estimate --net alexnet --hw tegra_x1 --batch 1,16,128
      archsim estimate --net resnet_50 --hw gtx_1080 --batch 16 --task training_step --json
      archsim estimate --net googlenet --hw gtx_1080 --batch 16 --fidelity event --streams 4 --timeline googlenet.json
      archsim estimate --net resnet_50 --hw tesla_v100_sxm2 --batch 16 --energy-budget 0.22J
      archsim estimate --net vgg_16 --hw titan_x_maxwell --set memory.bandwidth=480GB/s --fail-if "latency > 50ms"
    """
    from archsim.answers.estimate import record
    from archsim.estimation.estimate import estimate
    from archsim.estimation.fidelity import find
    from archsim.schedule.observer import Recording

    arguments = choices(given)
    batches: Sequence[int | None] = [None]
    if batch_text is not None:
        from archsim.study.batches import batches_of  # which takes long

        batches = batches_of(batch_text)
    if len(batches) > 1 and (form.html or timeline or chakra):
        raise click.UsageError("--html, --timeline and --chakra are of one batch; `archsim compare --batch` draws several")
    seen = Recording()
    events = find(given["fidelity"]).events
    watched = timeline or chakra or (form.html and events)
    found = [estimate(net, hw, batch=batch, observers=[seen] if watched else [], energy_budget=energy_budget, **arguments)
             for batch in batches]  # fmt: skip
    result, arguments = found[0], {**arguments, "batch": batches[0]}
    is_true = fail_if is not None and any(holds(fail_if, record(one)) for one in found)
    if timeline is not None:
        write_timeline(timeline, seen, f"{result.network} on {result.hardware_name}", result.power_over_time)
    if chakra is not None:
        _write_execution_trace(chakra, result, net, hw, arguments, seen)
    if len(found) > 1:
        from archsim.answers import batches as several

        form.show(found, several)
    else:
        form.show(result, recording=seen if events and watched else None)
    if is_true:
        missed(f"{fail_if} is true")


def _write_execution_trace(file: OutputFile, result: Any, net: str, hw: str, arguments: dict[str, Any], seen: Any) -> None:
    """In the form that the ending of the name says. Raises MissingExtra or InputError."""
    from archsim.estimation.execution_trace import execution_trace
    from archsim.estimation.request import make_request

    trace = execution_trace(result, make_request(net, hw, **arguments).trace, seen, file.command)
    if file.path.lower().endswith(".json"):
        from archsim.trace.chakra.text import json_text

        file.write_bytes(json_text(trace).encode("utf-8", "backslashreplace"))
    else:
        from archsim.trace.chakra.binary import binary

        file.write_bytes(binary(trace))
    note(f"wrote {file.path}")
