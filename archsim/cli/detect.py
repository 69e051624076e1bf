"""`archsim detect`."""

from __future__ import annotations

import click

from archsim.base.writer import TOML, OutputFile
from archsim.cli.output import FORCE, output
from archsim.cli.terminal import note


@click.command("detect")
@output("--out", TOML, "Write the spec here; otherwise it is printed.", prints=True)
@FORCE
@click.option("--probe", is_flag=True, help="Measure clocks, multiply-adds, latencies and bandwidths; takes some seconds.")
@click.option("--id", "name", default="host", show_default=True, help="The id of the spec: lower case, digits, _.")
@click.option("--gpu", type=click.IntRange(min=0), default=None, metavar="N", help="Describe this NVIDIA GPU instead.")
def command(out: OutputFile | None, probe: bool, name: str, gpu: int | None) -> None:
    """Describe this computer as a device: what the system reports, what --probe measures, and what had to be assumed.

    Every value names its origin. In a container its limits count. Without --out the file goes to standard output. `--hw host`
    of every other command is this computer, described without --probe.

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
        text, said = described(gpu, name)
    else:
        from archsim.detect.describe import summary
        from archsim.detect.detect import detect
        from archsim.detect.gpus import gpus_said

        with Progress() as tell:
            found = detect(probe, name, tell=tell)
        text, said = found.text, f"{summary(found.spec, found.computer, found.probe)}\n{gpus_said()}"
    click.echo("\n".join(f"archsim: {line}" for line in said.splitlines()), err=True)
    if out is None:
        click.echo(text, nl=False)
        return
    out.write(text)
    note(f"wrote {out.path}; use it with --hw {out.path}")
