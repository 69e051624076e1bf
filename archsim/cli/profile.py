"""`archsim profile`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.arguments import IN_PROFILES
from archsim.base.writer import OutputFile
from archsim.cli.output import AnswerForm, answer_forms, html_option, write_page
from archsim.cli.vocabulary import HW, Known, Quantity, choices, some_options


@click.command("profile")
@click.argument("file", type=click.Path(), metavar="FILE")
@HW
@some_options(*IN_PROFILES)
@click.option("--net", type=Known("network"), default=None, help="What ran, for kernels of Nsight, which have no shapes.")
@click.option("--batch", type=int, default=None, help="Samples per run of --net.")
@click.option("--ran-at", type=Quantity("Hz"), default=None, metavar="CLOCK",
              help="Core clock at which the device ran, e.g. 1.2GHz: what it changes is a cause of its own.")  # fmt: skip
@answer_forms("Print one CSV row per op, per name that was not matched, and per cause of the gap.",
              all="Also list every op, its kernels, what was not matched, and what is assumed.")
@html_option("Also write a self-contained page with both timelines.")
def command(
    file: str, hw: str, net: str | None, batch: int | None, ran_at: float | None, form: AnswerForm,
    html: OutputFile | None, **given: Any,
) -> None:  # fmt: skip
    """Read what a profiler recorded, predict the same run, and say what the gap between both is made of.

    FILE is a Chrome trace of PyTorch's profiler (record_shapes=True; .gz too) or a profile of onnxruntime. The network, its
    batch and its precision are those of the profile. The csv of `nsys stats --report cuda_gpu_trace --format csv` has kernels
    alone: --net says what ran, and families of kernels stand beside each other.

    \b
    Examples:
      archsim profile trace.json --hw a100_sxm4_40gb --stack pytorch-2
      archsim profile trace.json.gz --hw rtx_4090 --ran-at 2.1GHz --all --html gap.html
    """
    from archsim.answers.profile import sections
    from archsim.study.profiled import compare_profile

    found = compare_profile(file, hw, net=net, ran_at=ran_at, **choices({**given, "batch": batch}))
    if html is not None:
        write_page(html, sections(found))
    form.show(found)
