"""`archsim simulate train`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.values import parts, read, whole
from archsim.base.writer import OutputFile
from archsim.cli.no_effect import told_request
from archsim.cli.output import AnswerForm, answer_forms, timeline_option, write_timeline
from archsim.cli.vocabulary import HW, NET, Known, ListOption, Quantity, choices, pairs, some_options

COUNTS = (1, 2, 4, 8)  # of devices, where nobody names any, as far as the node holds them


@click.command("train")
@NET
@HW
@click.option("--node", type=Known("node"),
              help="The node that holds the devices (`archsim list nodes`), or the path of its file; if not given, the one "
                   "that is sold with them.")  # fmt: skip
@click.option("--devices", cls=ListOption, show_default="1,2,4,8",
              help="Numbers of devices, separated by commas.")  # fmt: skip
@click.option("--batch", type=int, default=32, help="Samples on each device.")
@click.option("--input", "given", cls=ListOption, default="", metavar="disk,decode=N,pcie",
              help="Input stages of each batch; without them inputs are on the device.")  # fmt: skip
@click.option("--sync", default="allreduce", type=click.Choice(("allreduce", "server")),
              help="Rings among the devices, or a parameter server in host memory.")  # fmt: skip
@click.option("--overlap/--no-overlap", default=True,
              help="Exchange gradients while earlier layers compute theirs.")  # fmt: skip
@click.option("--bucket", type=Quantity("B"), default="25MB",
              help="Size of the buckets in which gradients are exchanged.")  # fmt: skip
@click.option("--steps", type=int, default=16, help="Simulated steps; the later half is measured.")
@some_options("batch", "task", "devices", "fidelity", "traffic", "streams", "inputs", "graph", "cold")
@answer_forms("Print one CSV row per number of devices.", all="Print all that is known of the run.", page=True)
@timeline_option("Also write a timeline of the largest number of devices for ui.perfetto.dev.")
def command(
    node: str | None, devices: str | None, batch: int, given: str, sync: str, overlap: bool, bucket: float,
    steps: int, form: AnswerForm, timeline: OutputFile | None, **words: Any,
) -> None:  # fmt: skip
    """Simulate data-parallel training on several devices: the scaling curve, and where the time of a step goes.

    The step of one device is that of `archsim estimate --task training_step`. Gradients are exchanged in buckets over the
    links of the node, which copies of inputs use too.

    \b
    Examples:
      archsim simulate train --net resnet_50 --hw tesla_v100_sxm2 --devices 1,2,4,8
      archsim simulate train --net alexnet --hw gtx_1080 --node deepbench_8gpu --input disk,decode=8,pcie
      archsim simulate train --net vgg_16 --hw tesla_v100_sxm2 --optimiser sgd --sync server
    """
    from archsim.cli.progress import Progress
    from archsim.node.spec import joining
    from archsim.schedule.observer import Recording
    from archsim.simulate.train import Input, simulate_training

    counts = None if devices is None else [read("--devices", whole, text) for text in parts(devices)]
    stages = pairs(given, ["disk", "decode", "pcie"], "--input")
    for stage in ("disk", "pcie"):
        if stages.get(stage):
            raise click.BadParameter(f"{stage} takes no value", param_hint="--input")
    if stages.get("decode") == "":
        raise click.BadParameter("decode takes a number of workers, like decode=8", param_hint="--input")
    line = Input(disk="disk" in stages, pcie="pcie" in stages,
                 decode=read("--input", whole, stages["decode"]) if "decode" in stages else None)  # fmt: skip
    seen = Recording()
    with Progress() as tell:
        # inputs and gradients cross the link, which an estimate does not show
        request = told_request(beyond="link.", batch=batch, task="training_step", **choices(words))
        place = joining(request.spec.identity.id, max(counts or [1], default=1), "devices", node)
        counts = [count for count in COUNTS if count <= place.node.devices] if counts is None else counts
        answer = simulate_training(
            request, place, counts, given=line, sync=sync, overlap=overlap, steps=steps, tell=tell,
            bucket_bytes=bucket, observers=[seen] if timeline else [],
        )  # fmt: skip
    if timeline is not None:
        write_timeline(timeline, seen, f"{answer.network} on {max(counts)} {answer.hardware_name}")
    form.show(answer)
