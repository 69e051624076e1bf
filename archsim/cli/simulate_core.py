"""`archsim simulate core`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archsim.base.arguments import rows_called
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, PLAIN, choices, options

if TYPE_CHECKING:
    from archsim.cycle.core.operation import CoreLoop

RECORDED = 400  # micro-operations that are kept for a picture


@click.command("core")
@HW
@click.option("--kernel", metavar="WORDS", help="'gemm 6x16 avx2 unroll=4', 'triad level=3', 'dot accumulators=4', 'exp' ...")
@click.option("--loop", "path", type=click.Path(), metavar="FILE", help="Loops as JSON: all of them, or the one of --name.")
@click.option("--name", metavar="LOOP", help="One loop of the file.")
@click.option("--trips", type=click.IntRange(2, 1 << 20), show_default="until it is steady",
              help="Iterations to simulate.")  # fmt: skip
@PLAIN
@options(rows_called("clock", "settings", "scales"))
@answer_forms("Print one CSV row per loop.", page=True)
def command(
    hw: str, kernel: str | None, path: str | None, name: str | None, trips: int | None, plain: bool, form: AnswerForm,
    **given: Any,
) -> None:  # fmt: skip
    """Run a loop on one core of a CPU, clock by clock: cycles of an iteration, ports, what binds, why rename waits.

    A gemm is a block of rows x columns of a product: unroll, broadcast (register, embedded, element), a and b (levels of its
    panels), depth, registers that the program can name, form (how int8, bf16 or fp16 are multiplied).

    copy, set, read, scale, scale and shift, relu, add, triad, divide and root take streams: unroll, level (1 for the L1 to 4
    for memory). dot: accumulators, level. exp: degree, unroll, level. max pool, row sum, sigmoid, tanh, softmax, local
    normalisation, moments: level. chase: level, loads.

    Loops over single values, as compilers leave them: scalar step, scalar im2col: level, trips of the innermost loop; scalar
    max pool, scalar average pool: window (values of it), trips, level; scalar exp, scalar pow (calls of the C library),
    scalar gather, scalar divide: level.

    An instruction set (sse, avx, avx2, avx512, amx, neon, sve) and a precision (fp32, fp64; of a gemm fp16, bf16 and int8, too)
    may follow; else it is the widest of the core, and fp32.

    \b
    Examples:
      archsim simulate core --hw i7_6700k --kernel "gemm 6x16 avx2"
      archsim simulate core --hw epyc_9655 --kernel "gemm 14x32 avx512 unroll=2 fp32" --html block.html
      archsim simulate core --hw i7_6700k --kernel "triad level=4" --clock 4.2GHz
      archsim simulate core --hw i7_6700k --kernel "gemm 6x16 avx2" --set port.fma="P0 P1 P5"
      archsim simulate core --hw epyc_9655 --loop cpu_loops.json --name exp_poly6_avx2_u2
      archsim simulate core --hw epyc_9655 --loop cpu_loops.json --csv
    """
    from archsim.estimation.request import find_device
    from archsim.simulate.core import kernel_loop, simulate_all

    if (kernel is None) == (path is None):
        raise click.UsageError("--kernel names one loop, --loop a file of loops; give one of them")
    if name is not None and path is None:
        raise click.UsageError("--name is of a loop in the file of --loop")
    words = choices(given)
    spec = find_device(hw, words.get("settings"), words.get("scales"))
    clock = words.get("clock") or float(spec.device.usual_clock)
    loops = [kernel_loop(spec, kernel)] if kernel is not None else _loops(str(path), name)
    form.show(simulate_all(spec, loops, clock=clock, trips=trips, trace=RECORDED, fast=False if plain else None))


def _loops(path: str, name: str | None) -> list[CoreLoop]:
    """The loops of a file, or those of a name."""
    from archsim.base.errors import UnknownName
    from archsim.validation.loop_file import read_loops

    loops = list(read_loops(path))
    if name is None:
        return loops
    found = [loop for loop in loops if loop.name == name]
    if not found:
        raise UnknownName("loop", name, [loop.name for loop in loops], hint=f"of {path}")
    return found
