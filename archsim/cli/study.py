"""`archsim study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from archsim.base.errors import EXIT


@click.command("study")
@click.argument("paths", metavar="STUDY.TOML...", nargs=-1, required=True)
@click.option("--out", default=None, metavar="FOLDER", help="Folder for the files; that of the study if not given.")
@click.option("--check", is_flag=True, help="Write nothing; exit with code 1 if a file is out of date.")
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
        raise click.exceptions.Exit(EXIT["bound missed"])


def _run(study: Any, folder: Path, check: bool) -> list[str]:
    """Write the files of a study, or name those that differ."""
    from archsim.base.files import write_text
    from archsim.cli.progress import Progress
    from archsim.report.study import study_files

    with Progress() as tell:
        files = study_files(study, tell)
    if check:
        stale = [str(folder / name) for name, text in files.items() if not _same(folder / name, text)]
        for name in stale:
            click.echo(f"archsim: {name} is not what the study gives now", err=True)
        return stale
    for name, text in files.items():
        write_text(folder / name, text)
    click.echo(f"archsim: wrote {len(files)} files to {folder}", err=True)
    return []


def _same(place: Path, text: str) -> bool:
    return place.is_file() and place.read_bytes() == text.encode()
