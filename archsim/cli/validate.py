"""`archsim validate` and `archsim calibrate`: predictions beside measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from archsim.base.errors import nearest
from archsim.base.version import __version__
from archsim.base.writer import TOML, OutputFile, OutputKind
from archsim.cli.output import FORCE, AnswerForm, answer_forms, files_in, output, write
from archsim.cli.terminal import Progress, missed, note, show_text
from archsim.cli.vocabulary import FIDELITY, FILE, MEASUREMENTS, ROWS_OF, flag, listed, own, refuse, refuse_others

if TYPE_CHECKING:
    from archsim.evidence.case import Case, Skip
    from archsim.validation.evaluation import Validation, ValidationSettings
    from archsim.validation.scoreboard import Scoreboard


# ---------------------------------------------------------------------------------------------------------------- validate


FOLD = ("hardware", "source")  # what rows that are held out together share
PUBLISHED = "published"  # a word for --predictor: those that others have published, alone
CASES = OutputKind(name="file of cases", own=lambda text, command: text.startswith('{"id": "'))


@click.command("validate")
@MEASUREMENTS
@own("--add", "Only check that a file can be added to the corpus.", FILE)
@flag("--template", "Only print a measurement file to start from, with what its columns are.")
@flag("--disturbed", "Score measurements that other work disturbed, as `archsim measure` says, too.")
@listed("--source", "Only rows of these sources (separated by commas, as below).")
@ROWS_OF
@listed("--net", "Only these networks, or ops of kernel rows.", "network")
@listed("--stack", "Only these stacks.", "stack")
@listed("--split", "calibrate, watched or doubted.")
@listed("--metric", "latency_s, throughput_per_s, power_w, energy_j, system_power_w, system_energy_j.")
@own("--limit", "Only the first N rows.", click.IntRange(min=1))
@listed("--by", "Columns to group by; cell: one line for each measured value, as for up to 30 rows.", usual="source,quantity")
@FIDELITY
@listed("--baseline", "Baselines to show beside the model, or none; plain: the model, asked with a row's words.",
        usual="roofline,constants")
@listed("--without", "Leave parts of the model out: waves, l2, voltage, a key of a stack (conv.bias), ...", metavar="PART")
@own("--calibration", "Use these constants instead of the shipped ones.", FILE)
@own("--predictor predictors", "Score another predictor: a CSV of id,value, a command that reads --cases and prints it, or "
     "`published`.", multiple=True, metavar="FILE|COMMAND")
@output("--cases", CASES, "Only write the rows as JSON lines with their ids, without measured values.")
@answer_forms("Print one CSV line per row.", json="Print one JSON object with every row.",
              all="Also print every statistic, each skipped line, and what was compared.", page=True)
@own("--freeze", "Only write summaries of the shipped corpus and of served models, into this folder.", metavar="FOLDER")
def validate_command(
    measurements: tuple[str, ...], hw: list[str], add: str | None, limit: int | None, by: list[str], fidelity: str,
    baseline: list[str], without: list[str], calibration: str | None, form: AnswerForm, freeze: str | None,
    predictors: tuple[str, ...], cases: OutputFile | None, template: bool, disturbed: bool,
    **chosen: list[str],
) -> None:  # fmt: skip
    """Compare predictions with published measurements, or with yours.

    Files of networks, kernels, layers and DeepBench are recognised by their headers; a table like gpu,model,batch,latency_ms is
    read, too. A row that cannot be read or predicted is skipped, with its line and the reason; exit code 1 says that no row was
    left. Loops of a core (.json) take --fidelity cycle; they run on the processor that their file names, or on that of --hw.

    \b
    Examples:
      archsim validate
      archsim validate --hw gtx_1080,tesla_k80 --by network
      archsim validate --source nvidia_tx1_wp,addfor2017 --by cell --baseline plain
      archsim validate --template
      archsim validate --split watched --without waves
      archsim validate --source mlperf --without conv.stage_channels
      archsim validate --source jcjohnson
      archsim validate --measurements mine.csv --html mine.html
      archsim validate --measurements mine.csv --hw host.toml --by network
      archsim validate --fidelity cycle --measurements loops.json
      archsim validate --freeze reports/validation
      archsim validate --add mine.csv
      archsim validate --predictor published --html scoreboard.html
      archsim validate --source jcjohnson --cases cases.jsonl
      archsim validate --predictor "python predict.py" --source jcjohnson --by hardware
    """
    if template:
        from archsim.evidence.readers import template as shipped

        click.echo(shipped(), nl=False)
        return
    if freeze is not None:
        _freeze(freeze, calibration)
        return
    if add is not None:
        from archsim.validation.check import check_file

        click.echo(check_file(add))
        return
    if predictors and (without or cases):
        raise click.UsageError("--predictor scores what is given; --without is about the model of archsim, --cases writes rows")
    from archsim.calibration.constants import load
    from archsim.evidence.family import shipped_files
    from archsim.evidence.readers import data_hash
    from archsim.validation.evaluation import selected_rows, settings_of, validate

    told = click.get_current_context().get_parameter_source("by") is not ParameterSource.DEFAULT
    with Progress() as tell:
        tell("reading")
        every, skips = _read(measurements, hw, identified=bool(predictors or cases))
        rows, skips = selected_rows(every, skips, hw=hw, disturbed=disturbed, **chosen)
        rows = rows[:limit]
        if not told:
            by = ["quantity"] if predictors else ["group"] if _is_grouped(every) else by
        settings = settings_of(every, by=by, fidelity=fidelity, baseline=baseline, without=without,
                               calibration=load(calibration) if calibration else None)  # fmt: skip
        if cases is not None:
            from archsim.evidence.columns import case_line

            write(cases, "".join(f"{case_line(case)}\n" for case in rows))
            return
        result: Validation | Scoreboard
        if predictors:
            data = data_hash(measurements or shipped_files(with_peers=True))
            result = replace(_scoreboard(predictors, every, rows, skips, settings, tell), data=data)
        else:
            result = replace(validate(rows, skips, settings, tell), data=data_hash(measurements))
    form.show(result)
    if not predictors and not result.cases:
        missed()


def _is_grouped(cases: Sequence[Case]) -> bool:
    """Whether all are loops of a core, in groups that their file names."""
    from archsim.evidence.case import LoopPattern

    loops = bool(cases) and all(isinstance(case.pattern, LoopPattern) for case in cases)
    return loops and any("group" in case.fields for case in cases)


def _read(measurements: Sequence[str], hw: Sequence[str], *, identified: bool) -> tuple[list[Case], list[Skip]]:
    """The rows of tables and of loops; `identified`: with ids, and with the shipped rows that only other tools predict."""
    from archsim.evidence.columns import with_ids
    from archsim.evidence.family import shipped_files
    from archsim.evidence.readers import read_files
    from archsim.validation.evaluation import device_files
    from archsim.validation.loops import SUFFIX, loop_cases

    tables, loops = ([path for path in measurements if path.lower().endswith(SUFFIX) == wanted] for wanted in (False, True))
    files = shipped_files(with_peers=True) if identified and not measurements else tables
    cases, skips = ([], []) if loops and not tables else read_files(files, device_files(hw, tables))
    for path in loops:
        found, left = loop_cases(path, hw)
        cases, skips = [*cases, *found], [*skips, *left]
    return (with_ids(cases) if identified else cases), skips


def _scoreboard(
    words: Sequence[str], every: Sequence[Case], cases: Sequence[Case], skips: Sequence[Skip], settings: ValidationSettings,
    tell: Callable[[str], None],
) -> Scoreboard:  # fmt: skip
    """Score the predictors and those of other tools that are published; `every` are the cases before any filter."""
    from archsim.evidence.columns import ID
    from archsim.evidence.family import peer_files
    from archsim.evidence.sources import claims
    from archsim.validation.scoreboard import from_file, read_predictors, scoreboard

    known = {case.fields[ID] for case in every}
    given = read_predictors([word for word in words if word != PUBLISHED], cases, known, tell)
    names = {one.name for one in given}
    published = [one for one in (from_file(place, None) for place in peer_files()) if one.name not in names]
    board = scoreboard(cases, skips, [*given, *published], settings, tell)
    return replace(board, claims=claims() if PUBLISHED in words else ())


def _freeze(folder: str, calibration: str | None) -> None:
    """Write validation.json of the corpus to which constants are fitted, and served.json of served language models."""
    from archsim.calibration.constants import default, load
    from archsim.evidence.family import serving_files
    from archsim.evidence.readers import data_hash, read_files
    from archsim.validation.frozen import as_text, freeze, served_cases, served_summary

    refuse_others("--freeze", frozenset({"freeze", "calibration", "force"}))
    constants = load(calibration) if calibration else default()
    corpus, served = files_in(folder, {"validation": "archsim-validation-summary/", "served": "archsim-served/"})
    with Progress() as tell:
        tell("reading")
        corpus.write(as_text(freeze(*read_files(()), constants, data=data_hash(()), version=__version__, tell=tell)))
        of_served = served_summary(*served_cases(), constants, data=data_hash(serving_files()), version=__version__, tell=tell)
        served.write(as_text(of_served))
    note(f"wrote {corpus.path} and {served.path}")


# --------------------------------------------------------------------------------------------------------------- calibrate


@click.command("calibrate")
@MEASUREMENTS
@ROWS_OF
@own("--fit prefixes", "Fit only constants whose names begin with this; all if not given.", multiple=True, metavar="PREFIX")
@own("--kind", "Use only rows of this kind of device.", ["gpu", "cpu"])
@own("--calibration", "Start from these constants instead of the shipped ones.", FILE)
@own("--intervals", "Also measure the intervals, by cross-validation over this fold.", FOLD)
@flag("--select", "Fit nothing; show what rows not in view lose by each constant that stays at its prior.")
@own("--workers", "Worker processes.", click.IntRange(1, 256), 1)
@output("--out", TOML, "Write the calibration here; otherwise it is printed.", prints=True)
@FORCE
def calibrate_command(
    measurements: tuple[str, ...], hw: list[str], prefixes: tuple[str, ...], kind: str | None, calibration: str | None,
    intervals: str | None, select: bool, workers: int, out: OutputFile | None,
) -> None:  # fmt: skip
    """Fit the constants of the model to measurements, within the ranges that physics allows.

    Nothing is fitted to rows of split watched; intervals count their errors. The shipped corpus moves constants that are fitted
    already. With rows of your own (--measurements) a constant changes only where they tell it; all others keep what the shipped
    corpus gave. Constants of energy (--fit energy.) are fitted to power, energy, clocks and power limits, all others to times. A
    constant that ends at the bound of its range is reported and the exit code is 1, because then the model lacks something.

    \b
    Examples:
      archsim calibrate --kind gpu --intervals source --out calibration.toml
      archsim calibrate --select --fit energy.
      archsim calibrate --measurements mine.csv --hw host.toml --fit cpu. --out constants.toml
      archsim calibrate --measurements mine.csv --fit gemm. --fit dispatch. --out constants.toml
      archsim estimate --net alexnet --hw gtx_1080 --calibration constants.toml
    """
    import numpy as np

    from archsim.calibration.constants import ENERGY, default, dump, load
    from archsim.device.catalog import spec_beside
    from archsim.evidence.case import with_power
    from archsim.evidence.family import serving_files
    from archsim.evidence.readers import read_files
    from archsim.validation.crossvalidate import Refits, cross_validate, selection, thinned, with_times
    from archsim.validation.evaluation import ValidationSettings, device_files, predictions, selected_rows
    from archsim.validation.fit import fit, fittable, kept, told, unchanged
    from archsim.validation.interval import with_intervals
    from archsim.validation.predict import floors, prepare

    for path in measurements:
        if out is not None and Path(out.path).resolve() == Path(spec_beside(path)).resolve():
            raise click.BadParameter(f"{out.path} is the device file of {path}; name another file", param_hint="--out")
    if select:
        refuse({"intervals", "out", "force"}, "--select")
    given = load(calibration) if calibration else default()
    _check_prefixes(prefixes, tuple(given.constants))
    of_energy = bool(prefixes) and all(prefix.startswith(ENERGY) for prefix in prefixes)
    fitted = [name for name, c in given.constants.items()
              if c.fitted and name.startswith(ENERGY) is of_energy and name.startswith(prefixes or "")]  # fmt: skip
    wanted = prefixes if measurements and prefixes else fitted or prefixes
    start = given.before_energy_fit(wanted) if of_energy else given.before_fit(wanted)
    with Progress() as tell:
        tell("reading")
        cases, skips = read_files(measurements, device_files(hw, measurements))
    every = thinned(with_power(cases) if of_energy else with_times(cases), unfitted=select or bool(intervals))
    every, _ = selected_rows(every, [], hw=hw, disturbed=True)
    rows = [case for case in every if kind in (None, case.spec.kind)]
    with_time = fittable(rows, start) if rows else []
    if len(with_time) < len(rows):
        note(f"{len(rows) - len(with_time)} rows are of ops that take no time in the model; left out")
    rows = with_time
    if select:
        from archsim.answers.validation import selected

        with Progress() as tell:
            found = selection(Refits(cases=rows, start=start, prefixes=wanted, optimum=given, workers=workers), tell)
        return show_text([selected(found)])
    note(f"fitting to {sum(case.fitted for case in rows)} of {len(cases)} rows ({len(skips)} skipped)")
    with Progress() as tell:
        answer = fit(rows, start, wanted, tell=tell, workers=workers)
    shares, record, only_told = told(answer), answer.fit, bool(measurements)
    assert record is not None
    answer = result = kept(answer, given, only_told)
    if of_energy:
        result = replace(result, version=given.version, fit=given.fit, energy_fit=record)
    if intervals:
        # No constant was fitted to rows of the other kind of device, nor to any of a served model, so all of them are held out.
        served = [] if of_energy or measurements else read_files(serving_files())[0]
        others = [*(case for case in every if kind not in (None, case.spec.kind)), *served]
        with Progress() as tell:
            held_out = cross_validate(rows, rows, answer, intervals, wanted, tell, workers=workers)
            predicted, least_s, *_ = predictions(others, ValidationSettings(calibration=result, baselines=()), tell)
        result = with_intervals(result, [*rows, *others], np.concatenate([held_out, predicted]),
                                np.concatenate([floors(prepare(rows)), least_s]), intervals)  # fmt: skip
    note(f"median error {100 * record.median_before:.1f} % -> {100 * record.median_after:.1f} %")
    for why, which in unchanged(shares, given, wanted, only_told).items():
        note(f"{why}: {_listed(which)}")
    if out:
        write(out, dump(result))
    else:
        click.echo(dump(result), nl=False)
    if record.at_bound:
        missed(f"at the bound of their range, so the model lacks something: {', '.join(record.at_bound)}")


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
