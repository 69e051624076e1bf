"""`archsim sweep`, and `archsim study`, which asks several questions of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archsim.base.errors import ArchsimError, InputError
from archsim.base.files import read_text
from archsim.base.writer import SWEEP, OutputFile, OutputKind
from archsim.cli.output import FORCE, AnswerForm, answer_forms, output, output_file
from archsim.cli.terminal import Progress, missed, note, screen, tell_idle
from archsim.cli.vocabulary import HWS, NETS, ask_about, choices, flag, own, setting_options, space_options

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.study.space import Space
    from archsim.study.sweep import Chunk
    Executor = Callable[[Iterable[int]], Iterator[Chunk]]  # computes the parts of these numbers


# ------------------------------------------------------------------------------------------------------------------- sweep


MANY = 5_000_000  # points from which on --yes is required


@click.command("sweep")
@NETS
@HWS
@space_options
@own("--seed", "Random seed of --sample.", int, 0)
@setting_options
@output("--out", SWEEP, "Write an SQLite, .csv or .parquet file.", prints=True)
@answer_forms("Print one CSV row for each point, as a pipe gets them.", json="Print one JSON object with a row for each point.",
              all="Print every point of the fronts.", page=True)  # fmt: skip
@flag("--resume", "Continue the interrupted sweep in the --out file.")
@own("--workers", "Worker processes.", click.IntRange(1, 256), 1)
@own("--scheduler", "Compute on a dask cluster (extra `cluster`).", metavar="ADDRESS")
def sweep_command(
    net: list[str], hw: list[str], vary: tuple[str, ...], link: tuple[str, ...], sample: int | None, seed: int,
    out: OutputFile | None, resume: bool, workers: int, scheduler: str | None, yes: bool, form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Estimate every combination of the values of some knobs, or a sample of them.

    A sweep may be killed at any moment; the same command with --resume continues it.

    \b
    Examples:
      archsim sweep --net alexnet --hw gtx_1080 --vary memory.bandwidth=100GB/s:1TB/s:4log --vary batch=1,16
      archsim sweep --net alexnet,vgg_16 --hw gtx_1080 --vary sm.count=8:160:8 --link l2.bandwidth=sm.count --out study.sqlite
      archsim sweep --net resnet_50 --hw titan_x_pascal --vary memory.bandwidth=100GB/s:2TB/s:log --vary sm.count=8:160
          --sample 1000 --seed 1 --batch 16 --workers 2 --out study.csv
      archsim sweep --net alexnet --hw gtx_1080 --vary sm.count=8:40:4 --vary clock=1GHz:2GHz:6lin --out study.csv
          --html study.html
    """
    from archsim.detect.catalog import selected
    from archsim.study.space import space_of

    if out is not None and (form.json or form.csv):
        raise click.UsageError("--json and --csv print the points, --out writes them to a file; give one of them")
    if resume and out is None:
        raise click.UsageError("--resume needs the --out file of the interrupted sweep")
    if scheduler is not None and workers > 1:
        raise click.UsageError("--workers starts processes on this computer, --scheduler uses a cluster; give one of them")
    space = space_of(net, selected(hw), vary, link, sample=sample or 0, seed=seed, arguments=choices(given))
    requests = space.checked()
    ask_about(space, requests[0], yes, MANY, stored=True)
    tell_idle(space, requests)
    if out is not None and resume and form.html is None and not out.force and _is_finished(out, space, requests):
        note(f"{out.path} holds all {space.count:,} points of this sweep")
        return
    with _executor(space, workers, scheduler) as compute:
        if out is not None:
            _to_file(out, space, requests, compute, resume, form)
        elif form.json or form.csv or screen().width is None:
            _stream(space, requests, compute, form)
        else:
            _summary(space, requests, compute, form)


@contextmanager
def _executor(space: Space, workers: int, scheduler: str | None) -> Iterator[Executor]:
    """What computes parts. A scheduler has answered before this begins, so that a failed one leaves no file behind."""
    from archsim.study import executors
    from archsim.study.sweep import in_this_process

    executors.keep_freed_memory()
    if scheduler is not None:
        with executors.cluster(space, scheduler) as parts:
            yield parts
    elif workers > 1:
        yield lambda numbers: executors.over_processes(space, numbers, workers)
    else:
        yield lambda numbers: in_this_process(space, numbers)


def _stream(space: Space, requests: list[Request], compute: Executor, form: AnswerForm) -> None:
    """CSV, or one JSON object; rows are printed as they are computed."""
    from archsim.answers.sweep import stack_rows
    from archsim.render.text import csv_lines
    from archsim.study.sweep import names as column_names
    from archsim.study.sweep import rows
    from archsim.study.swept import SweepCollector

    units, collector = column_names(space, requests[0].spec.kind), SweepCollector(space=space, requests=requests)
    behind = json.dumps([asdict(rows_behind) for rows_behind in stack_rows(requests)])
    opened = f'{{"schema": "archsim-sweep/1", "units": {json.dumps(units)}, "stack_rows": {behind}, "rows": [\n'
    head = opened if form.json else csv_lines([tuple(units)])
    for chunk in compute(range(space.parts)):
        found = list(rows(chunk, space))
        if form.html is not None:
            collector.add(found)
        objects = (json.dumps(dict(zip(units, row, strict=True)), allow_nan=False) for row in found)
        click.echo(head + (",\n".join(objects) if form.json else csv_lines(found)), nl=False)
        head = ",\n" if form.json else ""  # what stands between the rows of two parts
    if form.json:
        click.echo("\n]}")
    if form.html is not None:
        form.write(collector.done())


def _summary(space: Space, requests: list[Request], compute: Executor, form: AnswerForm) -> None:
    """The best points and the front, where somebody looks."""
    from archsim.study.sweep import rows
    from archsim.study.swept import SweepCollector

    collector = SweepCollector(space=space, requests=requests)
    with Progress() as tell:
        for chunk in compute(range(space.parts)):
            collector.add(list(rows(chunk, space)))
            tell(f"{collector.count:,} of {space.count:,} points")
    form.show(collector.done())


def _is_finished(out: OutputFile, space: Space, requests: list[Request]) -> bool:
    from archsim.answers.sweep import finished
    from archsim.study.store import about_of

    return finished(out, about_of(space, space.record(requests), requests[0].spec.kind))


def _to_file(out: OutputFile, space: Space, requests: list[Request], compute: Executor, resume: bool, form: AnswerForm) -> None:
    from archsim.answers.sweep import FORMATS, export
    from archsim.study.store import open_store
    from archsim.study.swept import collected

    record = space.record(requests)
    path, kept = _places(out, resume)
    with open_store(kept, space, record, requests[0].spec.kind, resume) as store:
        before, numpy = store.count, store.about()["numpy"]
        if numpy != record["numpy"]:
            said = f"begun with numpy {numpy}, goes on with {record['numpy']}: the last digits of its rows may differ"
            note(f"{kept}: {said}")
        try:
            with Progress() as tell:
                for chunk in compute(range(space.part_at(before), space.parts)):
                    store.append(chunk)
                    tell(f"{store.count:,} of {space.count:,} points")
            if path.suffix in FORMATS:
                export(store, out)
        except (KeyboardInterrupt, InputError):
            note(f"{store.count:,} of {space.count:,} points are safe in {kept}; --resume goes on")
            raise
        found = collected(space, requests, store.read(rest="ORDER BY point"))
    if path.suffix in FORMATS:
        kept.unlink()
    elif kept != path:
        kept.replace(out.check())
    form.show(found)
    note(f"wrote {space.count:,} points to {path}")


def _places(out: OutputFile, resume: bool) -> tuple[Path, Path]:
    """The file of a sweep, and the one that holds it until it is complete: a neighbour for CSV and Parquet, and by --force."""
    from archsim.answers.sweep import FORMATS, beside

    path = Path(out.path)
    if path.suffix in FORMATS:
        FORMATS[path.suffix].check(out)
        if path.suffix == ".csv":
            beside(out).check()
    elif not (out.force and path.exists()):
        return path, path
    kept = Path(f"{out.path}.partial")
    replace(out, path=str(kept)).check()
    if out.force and not resume:
        kept.unlink(missing_ok=True)
    return path, kept


# ------------------------------------------------------------------------------------------------------------------- study


@click.command("study")
@click.argument("paths", metavar="STUDY.TOML...", nargs=-1, required=True)
@own("--out", "Folder for the files; that of the study if not given.", metavar="FOLDER")
@flag("--check", "Write nothing; exit with code 1 if a file is out of date.")
@FORCE
def study_command(paths: tuple[str, ...], out: str | None, check: bool) -> None:
    """Run studies: files with a question in parts, which become reports with tables and pictures.

    The same study always gives the same bytes. reports/README.md has the format; reports/studies has three examples.

    \b
    Examples:
      archsim study reports/studies/*/study.toml
      archsim study my/study.toml --out /tmp/result
      archsim study reports/studies/tegra_lpddr5/study.toml --check
    """
    from archsim.study.file import load

    if out is not None and len(paths) > 1:
        raise click.UsageError("--out takes the files of one study; several go beside theirs")
    studies = [load(path) for path in paths]
    folders = [Path(path).parent if out is None else Path(out) for path in paths]
    for folder in folders:
        if not folder.is_dir():
            raise click.BadParameter(f"{folder} is no folder", param_hint="--out")
    stale = [name for study, folder in zip(studies, folders, strict=True) for name in _run(study, folder, check)]
    if stale:
        missed()


def _run(study: Any, folder: Path, check: bool) -> list[str]:
    """Write the files of a study, or name those that differ."""
    from archsim.answers.study import REPORT, study_files

    report = _report(folder / REPORT)
    if not check:
        output_file(str(folder / REPORT), _own(REPORT, "", report)).check()
    with Progress() as tell:
        files = study_files(study, tell)
    if check:
        stale = [str(folder / name) for name, text in files.items() if not _same(folder / name, text)]
        for name in stale:
            note(f"{name} is not what the study gives now")
        return stale
    outputs = {name: output_file(str(folder / name), _own(name, text, report)) for name, text in files.items()}
    for file in outputs.values():
        file.check()
    for name, text in files.items():
        outputs[name].write(text)
    note(f"wrote {len(files)} files to {folder}")
    return []


def _report(place: Path) -> str:
    """The report that an earlier run left; empty where there is none."""
    from archsim.answers.study import LARGEST_REPORT, MADE
    try:
        text = read_text(place, LARGEST_REPORT)
    except ArchsimError:  # no file, or none of ours, which is not replaced
        return ""
    return text if MADE in text else ""


def _own(name: str, text: str, report: str) -> OutputKind:
    """The files of a study are its report, the pictures that the report names, and tables beside it with the same columns."""
    from archsim.answers.study import REPORT

    head, named = text.partition("\n")[0], name == REPORT or f"({name})" in report
    own = bool(report) and (named or name.endswith(".csv"))
    return OutputKind(name="file of this study", own=lambda old, command: own and (named or old.partition("\n")[0] == head))


def _same(place: Path, text: str) -> bool:
    return place.is_file() and place.read_bytes() == text.encode()
