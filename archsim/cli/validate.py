"""`archsim validate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from archsim.base.values import parts
from archsim.base.writer import OutputFile, OutputKind
from archsim.cli.output import AnswerForm, answer_forms, files_in, html_option, output, write, write_page
from archsim.cli.progress import Progress
from archsim.cli.terminal import missed, note, say
from archsim.cli.vocabulary import FIDELITY, MEASUREMENTS, ROWS_OF, Known, ListOption, refuse_others

if TYPE_CHECKING:
    from archsim.evidence.case import Case, Skip
    from archsim.validation.evaluation import Validation, ValidationSettings
    from archsim.validation.scoreboard import Scoreboard

PUBLISHED = "published"  # a word for --predictor: those that others have published, alone
CASES = OutputKind(name="file of cases", own=lambda text, command: text.startswith('{"id": "'))


@click.command("validate")
@MEASUREMENTS
@click.option("--add", type=click.Path(), default=None, metavar="FILE", help="Only check that a file can be added to the corpus.")
@click.option("--template", is_flag=True, help="Only print a measurement file to start from, with what its columns are.")
@click.option("--disturbed", is_flag=True, help="Score measurements that other work disturbed, as `archsim measure` says, too.")
@click.option("--source", cls=ListOption, default=None, help="Only rows of these sources (separated by commas, as below).")
@ROWS_OF
@click.option("--net", cls=ListOption, type=Known("network", many=True), default=None,
              help="Only these networks, or ops of kernel rows.")  # fmt: skip
@click.option("--stack", cls=ListOption, type=Known("stack", many=True), default=None, help="Only these stacks.")
@click.option("--split", cls=ListOption, default=None, help="calibrate or test.")
@click.option("--metric", cls=ListOption, default=None,
              help="latency_s, throughput_per_s, power_w, energy_j, system_power_w, system_energy_j.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), default=None, help="Only the first N rows.")
@click.option("--by", cls=ListOption, default="source,quantity", show_default=True,
              help="Columns to group by; cell: one line for each measured value, as for up to 30 rows.")  # fmt: skip
@FIDELITY
@click.option("--baseline", cls=ListOption, default="roofline,constants", show_default=True,
              help="Baselines to show beside the model, or none; plain: the model, asked with a row's words.")  # fmt: skip
@click.option("--without", cls=ListOption, default=None, metavar="PART",
              help="Leave parts of the model out: waves, l2, algorithms, voltage, ...")  # fmt: skip
@click.option("--calibration", type=click.Path(), default=None, metavar="FILE",
              help="Use these constants instead of the shipped ones.")  # fmt: skip
@click.option("--cross-validate", "fold", default=None, type=click.Choice(["hardware", "network", "stack", "source"]),
              help="Predict each row with constants fitted without its device, network, stack or source.")  # fmt: skip
@click.option("--predictor", "predictors", multiple=True, metavar="FILE|COMMAND",
              help="Score another predictor: a CSV of id,value, a command that reads --cases and prints it, or `published`.")
@output("--cases", CASES, "Only write the rows as JSON lines with their ids, without measured values.")
@answer_forms("Print one CSV line per row.", json="Print one JSON object with every row.",
              all="Also print every statistic, each skipped line, and what was compared.")
@html_option()
@click.option("--freeze", default=None, metavar="FOLDER",
              help="Only write summaries of the shipped corpus and of served models, into this folder.")  # fmt: skip
@click.option("--folds", cls=ListOption, default=None, metavar="FOLDS",
              help="Cross-validation for --freeze, minutes each: hardware,network,stack,source.")  # fmt: skip
def command(
    measurements: tuple[str, ...], hw: str | None, add: str | None, limit: int | None, by: str, fidelity: str,
    baseline: str, without: str | None, calibration: str | None, fold: str | None, form: AnswerForm,
    html: OutputFile | None, freeze: str | None, folds: str | None, predictors: tuple[str, ...],
    cases: OutputFile | None, template: bool, disturbed: bool, **chosen: str | None,
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
      archsim validate --split test --without waves
      archsim validate --source jcjohnson --cross-validate hardware
      archsim validate --measurements mine.csv --html mine.html
      archsim validate --measurements mine.csv --hw host.toml --by network
      archsim validate --fidelity cycle --measurements loops.json
      archsim validate --freeze reports/validation --folds hardware,network,stack,source
      archsim validate --add mine.csv
      archsim validate --predictor published --html scoreboard.html
      archsim validate --source jcjohnson --cases cases.jsonl
      archsim validate --predictor "python predict.py" --source jcjohnson --by hardware
    """
    if template:
        from archsim.evidence.spelling import TEMPLATE

        click.echo(TEMPLATE, nl=False)
        return
    if freeze is not None:
        _freeze(freeze, folds, calibration)
        return
    if folds is not None:
        raise click.UsageError("--folds belongs to --freeze; --cross-validate takes one fold")
    if add is not None:
        from archsim.validation.check import check_file

        say(check_file(add))
        return
    if predictors and (fold or without or cases):
        raise click.UsageError("--predictor scores what is given; --cross-validate and --without are about the model of archsim, "
                               "and --cases only writes the rows")  # fmt: skip
    from dataclasses import replace

    from archsim.answers import sections_of
    from archsim.calibration.constants import load
    from archsim.evidence.readers import data_hash
    from archsim.evidence.shipped import shipped_files
    from archsim.validation.evaluation import validate
    from archsim.validation.selection import Filters, selected_rows, settings_of

    filters = Filters(hw=parts(hw or ""), disturbed=disturbed, **{name: parts(text or "") for name, text in chosen.items()})
    told = click.get_current_context().get_parameter_source("by") is not ParameterSource.DEFAULT
    with Progress() as tell:
        tell("reading")
        every, skips = _read(measurements, filters.hw, identified=bool(predictors or cases))
        rows, skips = selected_rows(every, skips, filters)
        rows = rows[:limit]
        if not told:
            by = "quantity" if predictors else "group" if _is_grouped(every) else by
        settings = settings_of(every, by=parts(by), fidelity=fidelity, baseline=parts(baseline), without=parts(without or ""),
                               calibration=load(calibration) if calibration else None)  # fmt: skip
        if cases is not None:
            from archsim.evidence.identity import case_line

            write(cases, "".join(f"{case_line(case)}\n" for case in rows))
            return
        result: Validation | Scoreboard
        if predictors:
            data = data_hash(measurements or shipped_files(with_peers=True))
            result = replace(_scoreboard(predictors, every, rows, skips, settings, tell), data=data)
        else:
            if fold is not None:
                settings = _held_out(settings, fold, tell)
            result = replace(validate(rows, skips, settings, tell), data=data_hash(measurements))
    if html is not None:
        write_page(html, sections_of(result))
    form.show(result)
    if not predictors and not result.cases:
        missed()


def _is_grouped(cases: Sequence[Case]) -> bool:
    """Whether all are loops of a core, in groups that their file names."""
    from archsim.evidence.pattern import LoopPattern

    loops = bool(cases) and all(isinstance(case.pattern, LoopPattern) for case in cases)
    return loops and any("group" in case.fields for case in cases)


def _read(measurements: Sequence[str], hw: Sequence[str], *, identified: bool) -> tuple[list[Case], list[Skip]]:
    """The rows of tables and of loops; `identified`: with ids, and with the shipped rows that only other tools predict."""
    from archsim.evidence.identity import with_ids
    from archsim.evidence.readers import read_files
    from archsim.evidence.shipped import shipped_files
    from archsim.validation.loop_cases import is_loop_file, loop_cases
    from archsim.validation.selection import device_files

    tables, loops = ([path for path in measurements if is_loop_file(path) == wanted] for wanted in (False, True))
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
    from dataclasses import replace

    from archsim.evidence.claims import claims
    from archsim.evidence.identity import ID
    from archsim.evidence.shipped import peer_files
    from archsim.validation.predictor import from_file, read_predictors
    from archsim.validation.scoreboard import scoreboard

    known = {case.fields[ID] for case in every}
    given = read_predictors([word for word in words if word != PUBLISHED], cases, known, tell)
    names = {one.name for one in given}
    published = [one for one in (from_file(place, None) for place in peer_files()) if one.name not in names]
    board = scoreboard(cases, skips, [*given, *published], settings, tell)
    return replace(board, claims=claims() if PUBLISHED in words else ())


def _held_out(settings: ValidationSettings, fold: str, tell: Callable[[str], None]) -> ValidationSettings:
    """The same settings with constants that are fitted, for each fold, to the rest of the shipped corpus."""
    from dataclasses import replace

    from archsim.estimation.fidelity import FITTED
    from archsim.evidence.readers import read_files
    from archsim.validation.crossvalidate import cross_validate

    if settings.fidelity != FITTED or settings.without:
        raise click.UsageError(f"--cross-validate fits the whole {FITTED} model; leave --fidelity and --without out")
    training, _ = read_files(())
    return replace(
        settings, fold=fold, held_out=lambda cases: cross_validate(cases, training, settings.calibration, fold, progress=tell)
    )


def _freeze(folder: str, folds: str | None, calibration: str | None) -> None:
    """Write validation.json of the corpus to which constants are fitted, and served.json of served language models."""
    from archsim.base.version import __version__
    from archsim.calibration.constants import default, load
    from archsim.evidence.readers import data_hash, read_files
    from archsim.validation.crossvalidate import FOLDS
    from archsim.validation.frozen import as_text, freeze
    from archsim.validation.selection import known_words
    from archsim.validation.served import provenance, served_cases, served_summary

    refuse_others("--freeze", frozenset({"freeze", "folds", "calibration", "force"}))
    wanted = known_words("fold", parts(folds or ""), list(FOLDS))
    constants = load(calibration) if calibration else default()
    corpus, served = files_in(folder, {"validation": "archsim-validation-summary/", "served": "archsim-served/"})
    place = Path(corpus.path)
    earlier = place.read_text("utf-8", "replace") if place.exists() else ""
    with Progress() as tell:
        tell("reading")
        summary = freeze(*read_files(()), constants, data=data_hash(()), version=__version__, folds=wanted, earlier=earlier,
                         tell=tell)  # fmt: skip
        corpus.write(as_text(summary))
        served.write(as_text(served_summary(*served_cases(), constants, provenance(constants), tell)))
    note(f"wrote {corpus.path} and {served.path}; cross-validated: {', '.join(sorted(summary['cross_validation'])) or 'none'}")
