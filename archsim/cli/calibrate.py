"""`archsim calibrate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from archsim.base.errors import nearest
from archsim.base.values import parts
from archsim.base.writer import TOML, OutputFile
from archsim.cli.output import FORCE, output, write
from archsim.cli.terminal import missed, note
from archsim.cli.vocabulary import MEASUREMENTS, ROWS_OF


@click.command("calibrate")
@MEASUREMENTS
@ROWS_OF
@click.option("--fit", "prefixes", multiple=True, metavar="PREFIX",
              help="Fit only constants whose names begin with this; all if not given.")  # fmt: skip
@click.option("--kind", default=None, type=click.Choice(["gpu", "cpu"]), help="Use only rows of this kind of device.")
@click.option("--calibration", type=click.Path(), default=None, metavar="FILE",
              help="Start from these constants instead of the shipped ones.")  # fmt: skip
@click.option("--intervals", default=None, type=click.Choice(["hardware", "network", "stack", "source"]),
              help="Also measure the intervals, by cross-validation over this fold.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Worker processes.")
@output("--out", TOML, "Write the calibration here; otherwise it is printed.", prints=True)
@FORCE
def command(
    measurements: tuple[str, ...], hw: str | None, prefixes: tuple[str, ...], kind: str | None,
    calibration: str | None, intervals: str | None, workers: int, out: OutputFile | None,
) -> None:  # fmt: skip
    """Fit the constants of the model to measurements, within the ranges that physics allows.

    Rows of split test are never used. With rows of your own (--measurements) a constant changes only where they tell it; all
    others keep what the shipped corpus gave. Constants of energy (--fit energy.) are fitted to power, energy, clocks and power
    limits, all others to times. A constant that ends at the bound of its range is reported and the exit code is 1, because then
    the model lacks something.

    \b
    Examples:
      archsim calibrate --kind gpu --intervals source --out calibration.toml
      archsim calibrate --measurements mine.csv --hw host.toml --fit cpu. --out constants.toml
      archsim calibrate --measurements mine.csv --fit gemm. --fit dispatch. --out constants.toml
      archsim estimate --net alexnet --hw gtx_1080 --calibration constants.toml
    """
    from dataclasses import replace

    import numpy as np

    from archsim.calibration.constants import ENERGY, default, dump, load
    from archsim.cli.progress import Progress
    from archsim.device.catalog import spec_beside
    from archsim.evidence.case import with_power
    from archsim.evidence.readers import read_files
    from archsim.validation.crossvalidate import FOLDS, cross_validate, thinned, with_times
    from archsim.validation.fit import TOLD, fit, fittable, kept, recorded, unchanged
    from archsim.validation.interval import intervals_of
    from archsim.validation.predict import predict
    from archsim.validation.selection import Filters, device_files, selected_rows

    for path in measurements:
        if out is not None and Path(out.path).resolve() == Path(spec_beside(path)).resolve():
            raise click.BadParameter(f"{out.path} is the device file of {path}; name another file", param_hint="--out")
    given = load(calibration) if calibration else default()
    _check_prefixes(prefixes, tuple(given.constants))
    of_energy = bool(prefixes) and all(prefix.startswith(ENERGY) for prefix in prefixes)
    wanted = prefixes or [name for name, c in given.constants.items() if c.fitted and not name.startswith(ENERGY)]
    start = given.before_energy_fit(wanted) if of_energy else given.before_fit(wanted)
    devices = parts(hw or "")
    with Progress() as tell:
        tell("reading")
        cases, skips = read_files(measurements, device_files(devices, measurements))
    every = thinned(with_power(cases) if of_energy else with_times(cases))
    every, _ = selected_rows(every, [], Filters(hw=devices, disturbed=True))
    rows = [case for case in every if kind in (None, case.spec.kind)]
    with_time = fittable(rows, start) if rows else []
    if len(with_time) < len(rows):
        note(f"{len(rows) - len(with_time)} rows are of ops that take no time in the model; left out")
    rows = with_time
    note(f"fitting to {len(rows)} of {len(cases)} rows ({len(skips)} skipped)")
    with Progress() as tell:
        answer = fit(rows, start, wanted, tell=tell, workers=workers)
        told = [name for name, share in zip(answer.names, answer.identified, strict=True) if share >= TOLD]
        if of_energy and not measurements and 0 < len(told) < len(answer.names):  # without those that only follow the others
            wanted, start = told, given.before_energy_fit(told)
            answer = fit(rows, start, wanted, tell=tell, workers=workers)
    answer = replace(answer, calibration=kept(answer, given, told=bool(measurements)))
    result = recorded(answer, rows, version=f"fitted-{answer.rows_hash}")
    if of_energy:
        result = replace(result, version=given.version, fit=given.fit, energy_fit=result.fit)
    if intervals:
        others = [case for case in every if kind not in (None, case.spec.kind)]
        with Progress() as tell:
            held_out = cross_validate(rows, rows, answer.calibration, intervals, wanted, tell, workers=workers)
        # No constant was fitted to rows of the other kind of device, so all of them are held out.
        predicted = np.concatenate([held_out, predict(others, result)])
        measured_by = [*rows, *others]
        found = intervals_of(measured_by, predicted, start.level, intervals, FOLDS[intervals])
        stacks = tuple(sorted({case.stack_id for case in measured_by}))
        result = replace(
            result, spreads={**start.spreads, **found.spreads}, stacks=start.stacks if of_energy else stacks,
            wider=start.wider if of_energy else found.wider, evidence={**start.evidence, **found.evidence},
        )  # fmt: skip
    note(f"median error {100 * answer.error_before:.1f} % -> {100 * answer.error_after:.1f} %")
    for why, which in unchanged(answer, given, wanted, told=bool(measurements)).items():
        note(f"{why}: {_listed(which)}")
    if out:
        write(out, dump(result))
    else:
        click.echo(dump(result), nl=False)
    if answer.at_bound:
        missed(f"at the bound of their range, so the model lacks something: {', '.join(answer.at_bound)}")


def _listed(constants: Sequence[str], most: int = 8) -> str:
    more = len(constants) - most
    return ", ".join(constants[:most]) + (f" and {more} more" if more > 0 else "")


def _check_prefixes(prefixes: tuple[str, ...], constants: tuple[str, ...]) -> None:
    """Refuse a prefix of --fit that no constant begins with, before rows are read."""
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in constants):
            families = dict.fromkeys(name.partition(".")[0] + "." for name in constants if "." in name)
            near = nearest(prefix, (*constants, *families)) or list(families)
            raise click.BadParameter(f"no constant begins with {prefix!r}; nearest: {', '.join(near)}; "
                                     "`archsim show calibration` lists all", param_hint="--fit")  # fmt: skip
