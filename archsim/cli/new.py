"""`archsim new`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from archsim.base.arguments import ARGUMENTS
from archsim.base.writer import TOML, OutputFile
from archsim.cli.output import FORCE, output, write
from archsim.cli.terminal import note
from archsim.cli.vocabulary import Known, option


@click.command("new")
@click.argument("what", type=click.Choice(["hw"]))
@click.option("--from", "parent", type=Known("device"), required=True, help="The device that it is like: a name, or a path.")
@option(ARGUMENTS["settings"], required=True,
        help="What is other: sm.count=40, memory.bandwidth=500GB/s; `archsim show hw NAME` prints the keys.")  # fmt: skip
@click.option("--id", help="Its id, lower case; the name of the file if not given.")
@click.option("--name", help="Its full name; made of the changes if not given.")
@click.option("--year", type=int, help="Its year; that of the other device if not given.")
@click.option("--source", help="Where the values are from; without, the file says that they are assumed.")
@output("--out", TOML, "Write the spec here; otherwise it is printed.", prints=True)
@FORCE
def command(
    what: str, parent: str, settings: dict[str, str], id: str | None, name: str | None, year: int | None, source: str | None,
    out: OutputFile | None,
) -> None:  # fmt: skip
    """Write the spec file of a device of your own, which differs from a known one in some values.

    \b
    Examples:
      archsim new hw --from gtx_1080 --set sm.count=40 --set memory.bandwidth=500GB/s --out my.toml
      archsim new hw --from rtx_3060 --set sm.count=30 --set power.tdp=80W --source "maker's page" --out rtx_3060_laptop.toml
      archsim estimate --net alexnet --hw my.toml
    """
    from archsim.base.files import is_path
    from archsim.detect.catalog import find
    from archsim.device.catalog import canonical
    from archsim.device.file import loads
    from archsim.device.new import new_file

    base = find(parent)
    named = os.path.abspath(parent) if is_path(parent) else canonical(parent)
    called = id or (f"{base.identity.id}_new" if out is None else Path(out.path).stem)
    text = new_file(base, named, settings, id=called, name=name or "", year=year, source=source or "")
    loads(text, "archsim new", find)  # what no file may hold is found out before one is there
    if out is None:
        click.echo(text, nl=False)
        return
    write(out, text)
    note(f"archsim estimate --net alexnet --hw {out.path}")
