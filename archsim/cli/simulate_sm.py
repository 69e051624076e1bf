"""`archsim simulate sm`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.arguments import rows_called
from archsim.base.writer import OutputFile
from archsim.cli.output import AnswerForm, answer_forms, timeline_option, write_timeline
from archsim.cli.vocabulary import HW, PLAIN, Known, choices, options

RECORDED = 40_000  # instructions that a page or a timeline shows at most


@click.command("sm")
@HW
@click.option("--kernel", required=True, metavar="WORDS",
              help="'gemm 128x128x8 threads=256', 'attention 128x64', 'norm row=4096' or 'stream read=1 write=1'.")  # fmt: skip
@click.option("--k", "depth", type=click.IntRange(1, 1 << 20), default=512,
              help="Depth of a product, keys of an attention.")  # fmt: skip
@click.option("--waves", type=click.IntRange(1, 64), default=2, help="Waves of CTAs that the SM runs.")
@click.option("--scheduler", type=click.Choice(("gto", "lrr")), default="gto",
              help="Greedy, then the oldest CTA; or loose round robin.")  # fmt: skip
@click.option("--precision", type=Known("precision"), default="fp32", help="Of a product.")
@PLAIN
@options(rows_called("clock", "memory_clock", "settings", "scales"))
@answer_forms(all="Also print pipes, bandwidth and energy by component.", page=True)
@timeline_option("Also write the first instructions for ui.perfetto.dev.")
def command(
    hw: str, kernel: str, depth: int, waves: int, scheduler: str, precision: str, plain: bool, form: AnswerForm,
    timeline: OutputFile | None, **given: Any,
) -> None:  # fmt: skip
    """Run a kernel on one SM, clock by clock: what it issues, what stalls its warps, what it draws from each level of memory.

    A gemm is a tile of rows x columns x depth: threads, registers, stages, bytes of a value, l2 (share of loads that hit it).

    An attention is a tile of queries x keys: d (features), threads, registers, bytes, l2, overlapped (1: groups of warps take
    turns).

    A norm sums up rows before it writes them: row (values), piece (of these side by side), passes, arrays, bytes of a value, load
    (of a thread at once), flop, special, registers, l1 and l2 (hits of the passes after the first).

    A stream reads and writes tensors: read, write, bytes of a load, loads in flight, flop, special, threads, registers, l1 and l2
    (shares of loads that hit them).

    \b
    Examples:
      archsim simulate sm --hw gtx_1080 --kernel "gemm 128x128x8 threads=256" --k 512
      archsim simulate sm --hw a100_sxm4_40gb --kernel "gemm 128x128x32 threads=256 bytes=2 stages=4" --precision fp16
      archsim simulate sm --hw a100_sxm4_40gb --kernel "attention 128x64 d=128" --k 2048 --precision fp16
      archsim simulate sm --hw gtx_1080 --kernel "norm row=100352 piece=3136"
      archsim simulate sm --hw gtx_1080 --kernel "stream read=1 write=1 bytes=16" --set sm.alu_latency=12clk
    """
    from archsim.answers.sm import recording_of
    from archsim.estimation.request import find_device, precision_of
    from archsim.simulate.sm import simulate_sm

    words = choices(given)
    spec = find_device(hw, words.get("settings"), words.get("scales"))
    clock = words.get("clock") or float(spec.device.usual_clock)
    wanted = RECORDED if form.html or timeline else 0
    found = simulate_sm(spec, kernel, clock=clock, depth=depth, waves=waves, precision=precision_of(precision),
                        scheduler=scheduler, record=wanted, fast=False if plain else None,
                        memory_clock=words.get("memory_clock"))  # fmt: skip
    if timeline is not None:
        write_timeline(timeline, recording_of(found), f"one SM of {found.hardware}: {kernel}")
    form.show(found)
