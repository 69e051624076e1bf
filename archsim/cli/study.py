"""`archsim study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from archsim.base.errors import ArchsimError
from archsim.base.writer import OutputKind
from archsim.cli.output import FORCE, output_file
from archsim.cli.terminal import missed, note


@click.command("study")
@click.argument("paths", metavar="STUDY.TOML...", nargs=-1, required=True)
@click.option("--out", metavar="FOLDER", help="Folder for the files; that of the study if not given.")
@click.option("--check", is_flag=True, help="Write nothing; exit with code 1 if a file is out of date.")
@FORCE
def command(paths: tuple[str, ...], out: str | None, check: bool) -> None:
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
    from archsim.cli.progress import Progress

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
    for output in outputs.values():
        output.check()
    for name, text in files.items():
        outputs[name].write(text)
    note(f"wrote {len(files)} files to {folder}")
    return []


def _report(place: Path) -> str:
    """The report that an earlier run left; empty where there is none."""
    from archsim.answers.study import LARGEST_REPORT, MADE
    from archsim.base.files import read_text

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
