"""`archsim study`."""

from __future__ import annotations

import click

from archsim.errors import EXIT


@click.command("study")
@click.argument("path", metavar="STUDY.TOML")
@click.option("--out", default=None, metavar="FOLDER", help="Where the files go; beside the study if not given.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file differs from what the study gives now.")
def command(path: str, out: str | None, check: bool) -> None:
    """Run a study: a file that asks a question in parts, and becomes a report with tables and pictures.

    The same study gives the same bytes. Its format is in reports/README.md; three worked studies are in reports/studies.

    \b
    Examples:
      archsim study reports/studies/bandwidth_or_sms/study.toml
      archsim study my/study.toml --out /tmp/result
      archsim study reports/studies/tegra_lpddr5/study.toml --check
    """
    from pathlib import Path

    from archsim.cli.progress import Progress
    from archsim.files import write_text
    from archsim.report.study import study_files
    from archsim.study.file import load

    study = load(path)
    folder = Path(out) if out is not None else Path(path).parent
    if not folder.is_dir():
        raise click.BadParameter(f"{folder} is no folder", param_hint="--out")
    with Progress() as tell:
        files = study_files(study, tell)
    if check:
        stale = [name for name, text in files.items() if not _same(folder / name, text)]
        for name in stale:
            click.echo(f"archsim: {folder / name} is not what the study gives now", err=True)
        raise click.exceptions.Exit(EXIT["bound missed"] if stale else EXIT["ok"])
    for name, text in files.items():
        write_text(folder / name, text)
    click.echo(f"archsim: wrote {len(files)} files to {folder}", err=True)


def _same(place: object, text: str) -> bool:
    from pathlib import Path

    path = Path(str(place))
    return path.is_file() and path.read_bytes() == text.encode()
