"""`archsim detect`."""

from __future__ import annotations

import click

from archsim.base.writer import TOML, OutputFile
from archsim.cli.output import FORCE, output
from archsim.cli.terminal import note, show_text


@click.command("detect")
@output("--out", TOML, "Write the spec of the device here.")
@FORCE
@click.option("--toml", "as_toml", is_flag=True, help="Print the spec in place of the summary.")
@click.option("--probe", is_flag=True, help="Measure clocks, multiply-adds, latencies and bandwidths; takes some seconds.")
@click.option("--id", "name", default="host", help="The id of the spec: lower case, digits, _.")
@click.option("--gpu", type=click.IntRange(min=0), metavar="N", help="Describe this NVIDIA GPU instead.")
def command(out: OutputFile | None, as_toml: bool, probe: bool, name: str, gpu: int | None) -> None:
    """Describe this computer as a device: what the system reports, what --probe measures, and what had to be assumed.

    It prints a summary; --out writes the spec, and --toml prints that instead. Every value of it names its origin. In a container
    its limits count. `--hw host` of every other command is this computer, described without --probe.

    \b
    Examples:
      archsim detect
      archsim detect --probe --out host.toml
      archsim estimate --net alexnet --hw host.toml
      archsim detect --gpu 0 --out gpu.toml
    """
    from archsim.cli.progress import Progress

    if gpu is not None:
        from archsim.detect.gpus import described

        if probe:
            raise click.UsageError("--probe measures the processor; leave it out beside --gpu")
        found, gpus = described(gpu, name), []
    else:
        from archsim.detect.detect import detect
        from archsim.detect.gpus import gpus_said

        with Progress() as tell:
            found = detect(probe, name, tell=tell)
        gpus = gpus_said()
    if out is not None:
        out.write(found.text)
        note(f"wrote {out.path}; use it with --hw {out.path}")
    if as_toml:
        click.echo(found.text, nl=False)
        return
    from archsim.answers.computer import sections

    show_text(sections(found, gpus, "host" if out is None else out.path))
