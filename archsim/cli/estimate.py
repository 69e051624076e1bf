"""Commands that predict: a network, a layer, several devices, a served model, units of a device, a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from archsim.base.arguments import ARGUMENTS, IN_PROFILES, OF_POWER, SERVED, SEVERAL, rows_called, rows_of
from archsim.base.units import COUNT
from archsim.base.values import clocks, read, table
from archsim.base.writer import EXECUTION_TRACE, OutputFile, table_with
from archsim.cli.output import AnswerForm, answer_forms, output, write
from archsim.cli.terminal import Progress, missed, note, tell_without_effect, told_request
from archsim.cli.vocabulary import (
    BATCHES,
    HW,
    HWS,
    MODEL,
    PLACE,
    Keyed,
    LateHelpOption,
    ListOption,
    Quantity,
    boundary_options,
    choices,
    flag,
    holds,
    listed,
    option,
    options,
    own,
    refuse_others,
    setting_options,
    some_options,
)

# ---------------------------------------------------------------------------------------------------------------- estimate


@click.command("estimate")
@PLACE
@BATCHES
@some_options("batch")
@option(ARGUMENTS["energy_budget"])
@boundary_options
@answer_forms("Print one CSV row per op.", layers="Also list every layer.", all="Print all that is known of the run.", page=True,
              timeline="Also write a timeline for ui.perfetto.dev.")
@output("--chakra", EXECUTION_TRACE,
        "Also write an execution trace of MLCommons Chakra, with predicted times: FILE.et, or FILE.json.")
@own("--fail-if", 'Exit with code 1 if this is true, e.g. "latency > 5ms and power > 10W".', metavar="CONDITION")
def estimate_command(
    net: str, hw: str, form: AnswerForm, chakra: OutputFile | None, fail_if: str | None, energy_budget: float | None,
    batch_text: list[str], **given: Any,
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
    if batch_text:
        from archsim.study.batches import batches_of  # which takes long

        batches = batches_of(",".join(batch_text))
    if len(batches) > 1 and (form.html or form.timeline or chakra):
        raise click.UsageError("--html, --timeline and --chakra are of one batch; `archsim compare --batch` draws several")
    seen = Recording()
    events = find(given["fidelity"]).events
    watched = form.timeline or chakra or (form.html and events)
    found = [estimate(net, hw, batch=batch, observers=[seen] if watched else [], energy_budget=energy_budget, **arguments)
             for batch in batches]  # fmt: skip
    result, arguments = found[0], {**arguments, "batch": batches[0]}
    is_true = fail_if is not None and any(holds(fail_if, record(one)) for one in found)
    form.draw(seen, f"{result.network} on {result.hardware_name}", result.power_over_time)
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
        from archsim.trace.chakra.forms import json_text

        file.write_bytes(json_text(trace).encode("utf-8", "backslashreplace"))
    else:
        from archsim.trace.chakra.forms import binary

        file.write_bytes(binary(trace))
    note(f"wrote {file.path}")


# ----------------------------------------------------------------------------------------------------------------- explain


@click.command("explain")
@PLACE
@own("--layer", "The op to explain; without it the slowest ops are listed.", metavar="NAME")
@own("--phase", "forward, backward_data, backward_filter, backward or update.")
@flag("--equations", "Also print the equations of the longest kernel with their numbers.")
@setting_options
@answer_forms("Print one CSV row per op of the list; without --layer only.",
              all="Print those of every kernel; JSON always has them.")  # fmt: skip
def explain_command(layer: str | None, phase: str | None, equations: bool, form: AnswerForm, **given: Any) -> None:
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


# ----------------------------------------------------------------------------------------------------------------- compare


def _criteria() -> str:
    from archsim.study.ranking import CRITERIA

    return "Sort by " + ", ".join(f"{c.name} ({c.title})" if c.name != c.title else c.name for c in CRITERIA) + "."


@click.command("compare")
@listed("--net", "Networks or trace files, separated by commas; alexnet if not given.", "network", ("alexnet",))
@HWS
@listed("--stack", "Software stacks, separated by commas or named again; each device's default if not given. Of two and more on "
     "one device each is set against the first one, layer by layer.", "stack")
@BATCHES
@some_options(*SEVERAL)
@own("--where", 'Take the largest batch of each device that meets this, e.g. "latency < 10ms and power < 200W"; also energy '
     '(of a sample), throughput, efficiency, memory.', metavar="CONDITION")
@click.option("--by", cls=LateHelpOption, late_help=_criteria, default="speed", show_default=True, metavar="CRITERION")
@own("--correlation", "Correlation of the errors of any two predictions, 0 to 0.99; as measured if not given.",
     Quantity(COUNT, low=0.0, high=0.99), metavar="NUMBER")
@boundary_options
@options(rows_of("buyer"))
@own("--copies/--no-copies", "Include copying inputs to a GPU and results back; default for several batches on CPUs and GPUs.",
     default=None)
@answer_forms("Print one CSV row per network, device, stack and batch.",
              json="Print a JSON list of estimates; for several batches an object, or a list of one for each network.",
              layers="Of two stacks on one device print every layer.",
              all="Print all else: rankings, intervals, costs; over several batches also the ops that gain on a GPU.", page=True)
def compare_command(
    net: list[str], hw: list[str], stack: list[str], batch_text: list[str], where: str | None, by: str,
    correlation: float | None, copies: bool | None, form: AnswerForm, **given: Any,
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
    from archsim.api.functions import field_of
    from archsim.detect.catalog import selected
    from archsim.study.batches import batches_of
    from archsim.study.within import compared

    batches = batches_of(",".join(batch_text)) if batch_text else []
    field = field_of(selected(hw), stack, by, choices(given))
    with Progress() as tell:
        listed = form.json or form.level > 1 or form.html is not None
        found = compared(field, net, batches, where, copies, correlation, tell, listed)
    _warn(field, found)
    answer, module = (found[0], module_of(found[0])) if len(found) == 1 else (found, networks)
    form.show(answer, module)
    if not all(one.contenders for one in found):
        missed(f"no device meets {where}" if where is not None else
               "no device holds this work; a smaller --batch or --precision fp16 takes less memory")  # fmt: skip


def _warn(field: Any, found: Sequence[Any]) -> None:
    """Name the changes that change nothing, and the ops of which only a bound is known."""
    from archsim.estimation.network import STRICT
    from archsim.study.comparison import Comparison, CurveComparison

    curves = [one for one in found if isinstance(one, CurveComparison)]
    if curves:
        beyond = "link." if curves[0].curves[0].points[0].copies else ""
        tell_without_effect([request for c in curves for request in field.requests(c)], beyond=beyond)
    told = [(c, text) for one in found if isinstance(one, Comparison) for c in one.all for text in c.estimate.warnings]
    idle = [f"{c.name}: {text}" for c, text in told if "changes no output" in text]
    bounds = {f"{c.estimate.network}: {text}" for c, text in told if text.endswith(STRICT)}
    for text in [*idle, *sorted(bounds)]:
        note(text)


# --------------------------------------------------------------------------------------------------------------------- llm


@click.command("llm")
@MODEL
@HW
@option(SERVED["input"], required=True, show_default=False)
@option(SERVED["output"], required=True, show_default=False)
@options(row for row in SERVED.values() if row.name not in ("input", "output"))
@answer_forms(all="Print all that is known of the run.", page=True)
def llm_command(net: str, hw: str, form: AnswerForm, **given: Any) -> None:
    """Predict a language model that an engine serves: prefill and decode of a batch of requests that arrive at once.

    Time to first token, time per output token, tokens per second, joules per token, memory by part, the largest batch and context
    that fit, what limits each phase, what the numbers rest on, and the engine's command that measures the same.

    \b
    Examples:
      archsim llm --net llama_3_8b --hw h100_sxm5_80gb --input 2048 --output 256 --batch 16
      archsim llm --net llama_3_1_70b --hw a100_sxm4_80gb --input 1024 --output 512 --batch 32 --tp 4 --engine vllm
      archsim llm --net llama_3_8b --hw l40s --input 1024 --output 256 --weights int4 --kv fp8 --json
      archsim llm --net path/to/config.json --hw h100 --input 512 --output 128
    """
    from archsim.generation.estimate import llm

    form.show(llm(net, hw, **choices(given, SERVED)))


# ------------------------------------------------------------------------------------------------------------------- power


UNITS = ("sm", "fp32", "int", "fp64", "special", "tensor", "shared", "l2", "dram")  # a test holds that they are the model's
OF_CPU = ("core", "simd", "llc", "dram")


@click.command("power")
@HW
@own("--use", f"How busy each unit is: {', '.join(UNITS)}, or as DCGM and Nsight Compute call them, on a CPU "
     f"{', '.join(OF_CPU)}; or a CSV file with a row for each power, where a column `power` holds the measured ones.",
     Keyed(*dict.fromkeys((*UNITS, *OF_CPU)), device=False), cls=ListOption, required=True, metavar="UNIT=SHARE,...|FILE")
@options(rows_called(*OF_POWER))
@own("--counted-at", "Core and memory clock at which the shares were counted, where these are others.", metavar="CLOCK[,CLOCK]")
@boundary_options
@answer_forms("Print one CSV row per power.", json="Print one JSON object; a list of them for a file.",
              all="Print all that is known.", page=True)
def power_command(hw: str, use: list[str], counted_at: str | None, form: AnswerForm, **given: Any) -> None:
    """Power of a GPU or CPU from how busy its units are, as a profiler counts them, without a network.

    A share is of what the unit could do at its clock in the whole time. A unit that is not named does nothing; sm=0 idles.
    Of a CPU `core` is the share of cores that are awake, `simd` that of its vector and tile units.

    \b
    Examples:
      archsim power --hw titan_xp --use fp32=0.8,dram=30% --clock 1404MHz
      archsim power --hw titan_xp --use fp32=0.8,dram=30% --clock 911MHz --memory-clock 810MHz --counted-at 1404MHz,5705MHz
      archsim power --hw a100_sxm4_40gb --use sm_active=0.97,tensor_active=0.62,dram_active=0.35 --power-limit 250W
      archsim power --hw gtx_980 --use rows.csv --csv
      archsim power --hw xeon_e5_2630_v3_2s --use core=50%,simd=0.4,dram=0.3 --clock 2.6GHz
    """
    from archsim.answers import power
    from archsim.estimation.power import power_by_unit, powers_of_file

    asked = choices(given)
    asked["counted_at"] = None if counted_at is None else read("--counted-at", clocks, counted_at)
    if any("=" in one for one in use):
        found: Any = power_by_unit(hw, read("--use", table, use, "fp32=0.8,dram=30%"), **asked)
    else:
        found = powers_of_file(",".join(use), hw, **asked)
    form.show(found, power)


# ----------------------------------------------------------------------------------------------------------------- profile


def _tile_columns() -> Sequence[str]:
    from archsim.stack.menu import COLUMNS

    return COLUMNS


@click.command("profile")
@click.argument("file", type=click.Path(), metavar="FILE")
@HW
@some_options(*IN_PROFILES)
@own("--net", "What ran, for kernels of Nsight, which have no shapes.", "network")
@own("--batch", "Samples per run of --net.", int)
@own("--ran-at", "Core clock at which the device ran, e.g. 1.2GHz: what it changes is a cause of its own.", Quantity("Hz"),
     metavar="CLOCK")
@output("--kernels", table_with(_tile_columns, "file of tiles"),
        "Instead, write the tiles of the recorded products as rows of traces/kernels.")
@answer_forms("Print one CSV row per op, per name that was not matched, and per cause of the gap.",
              all="Also list every op, its kernels, what was not matched, and what is assumed.", page=True)
def profile_command(
    file: str, hw: str, net: str | None, batch: int | None, ran_at: float | None, form: AnswerForm, kernels: OutputFile | None,
    **given: Any,
) -> None:  # fmt: skip
    """Read what a profiler recorded, predict the same run, and say what the gap between both is made of.

    FILE is a Chrome trace of PyTorch's profiler (record_shapes=True; .gz too) or a profile of onnxruntime. The network, its
    batch and its precision are those of the profile. The csv of `nsys stats --report cuda_gpu_trace --format csv` has kernels
    alone: --net says what ran, and families of kernels stand beside each other.

    \b
    Examples:
      archsim profile trace.json --hw a100_sxm4_40gb --stack pytorch-2
      archsim profile trace.json.gz --hw rtx_4090 --ran-at 2.1GHz --all --html gap.html
      archsim profile trace.json --hw rtx_4090 --kernels mine.csv
    """
    if kernels is not None:
        from archsim.estimation.hardware import find_device
        from archsim.stack.launched import launches_of, table_of
        from archsim.stack.launched import rows_of as rows_of_launches

        refuse_others("--kernels", ("file", "hw", "kernels", "force"))
        rows = rows_of_launches(launches_of(Path(file)), find_device(hw, None).identity.kernels_of, f"profile {Path(file).name}")
        write(kernels, table_of(rows))
        return
    from archsim.study.profiled import compare_profile

    found = compare_profile(file, hw, net=net, ran_at=ran_at, **choices({**given, "batch": batch}))
    form.show(found)
