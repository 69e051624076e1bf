"""`archsim power`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.arguments import OF_POWER, rows_called
from archsim.base.values import clocks, parts, read, table
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, Keyed, ListOption, boundary_options, choices, options

UNITS = ("sm", "fp32", "int", "fp64", "special", "tensor", "shared", "l2", "dram")  # a test holds that they are the model's
OF_CPU = ("core", "simd", "llc", "dram")


@click.command("power")
@HW
@click.option("--use", cls=ListOption, required=True, type=Keyed(*dict.fromkeys((*UNITS, *OF_CPU)), device=False),
              metavar="UNIT=SHARE,...|FILE",
              help=f"How busy each unit is: {', '.join(UNITS)}, or as DCGM and Nsight Compute call them, on a CPU "
                   f"{', '.join(OF_CPU)}; or a CSV file with a row for each power, where a column `power` holds the measured "
                   "ones.")  # fmt: skip
@options(rows_called(*OF_POWER))
@click.option("--counted-at", metavar="CLOCK[,CLOCK]",
              help="Core and memory clock at which the shares were counted, where these are others.")  # fmt: skip
@boundary_options
@answer_forms("Print one CSV row per power.", json="Print one JSON object; a list of them for a file.",
              all="Print all that is known.", page=True)
def command(hw: str, use: str, counted_at: str | None, form: AnswerForm, **given: Any) -> None:
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
    from archsim.estimation.power import power_by_unit
    from archsim.estimation.power_file import powers_of_file

    if not use.strip():
        raise click.BadParameter("names no unit and no file", param_hint="--use")
    asked = choices(given)
    asked["counted_at"] = None if counted_at is None else read("--counted-at", clocks, counted_at)
    if "=" in use:
        found: Any = power_by_unit(hw, read("--use", table, parts(use), "fp32=0.8,dram=30%"), **asked)
    else:
        found = powers_of_file(use, hw, **asked)
    form.show(found, power)
