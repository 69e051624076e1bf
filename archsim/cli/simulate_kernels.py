"""`archsim simulate kernels`."""

from __future__ import annotations

import click

from archsim.base.writer import TOML, OutputFile
from archsim.cli.output import FORCE, files_in, output, write, write_json
from archsim.cli.progress import Progress
from archsim.cli.terminal import say, show_text
from archsim.cli.vocabulary import refuse_others

MANY = 2000


@click.command("kernels")
@click.option("--kernels", type=click.IntRange(25, 100_000), default=MANY,
              help="How many, 25 on each machine.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=11,
              help="Of the choice of kernels and machines.")  # fmt: skip
@click.option("--check", "folder", metavar="FOLDER",
              help="Also write surrogate.json into this folder, with published times beside both.")  # fmt: skip
@output("--derive", TOML, "Instead, write the constants that follow from the cycle model, of each architecture, to this file.")
@FORCE
def command(kernels: int, seed: int, folder: str | None, derive: OutputFile | None) -> None:
    """Random kernels on random machines, by the closed form and by the cycle model.

    One half of the machines are GPUs as shipped, the other half have two of their keys scaled by up to 2. With --derive,
    constants of the closed form are sought that bring it nearest to the cycle model; no measurement enters. What the shipped
    table has from the same SMs by the same code is kept: a new GPU takes seconds.

    \b
    Examples:
      archsim simulate kernels --kernels 100
      archsim simulate kernels --check reports/validation
      archsim simulate kernels --derive derived.toml
    """
    if derive is not None:
        refuse_others("--derive", ("derive", "force"))
        _derive(derive)
        return
    from archsim.answers.closed_forms import KERNELS, kernels_record, kernels_sections
    from archsim.validation.surrogate import compare, judged

    files = [] if folder is None else files_in(folder, {"surrogate": KERNELS})
    with Progress() as tell:
        rows = compare(kernels, seed, tell)
        tell("published times")
        found = kernels_record(rows, judged() if files else (), seed)
    for file in files:
        write_json(file, found)
    show_text(kernels_sections(found))


def _derive(file: OutputFile) -> None:
    from archsim.calibration.constants import default
    from archsim.calibration.derived import derived, dump_derived
    from archsim.validation.derivation import derive, families

    wanted = [name for name, constant in default().constants.items() if constant.derived is not None]
    table, earlier = {}, derived()
    with Progress() as tell:
        for family in families():
            tell(family)
            table[family] = derive(family, wanted, earlier=earlier.get(family))
    write(file, dump_derived(table))
    for name, row in table.items():
        say(f"{name:<14} {row.kernels:5} kernels, median {100 * row.median:.1f} %, p90 {100 * row.p90:.1f} %")
