"""This computer, and devices of your own: `archsim` alone, `measure`, `detect` and `new`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import Unsupported
from archsim.base.files import is_path
from archsim.base.units import show_capacity
from archsim.base.writer import TOML, OutputFile, table_with
from archsim.cli.output import FORCE, output, output_file, write
from archsim.cli.terminal import Progress, missed, note, show_text
from archsim.cli.vocabulary import FILE, Quantity, flag, listed, option, own
from archsim.detect.system import allowed_here, available_here, read_computer, words_of

# -------------------------------------------------------------------------------------------------------------------- here


ASKED = (
    ("archsim estimate --net resnet_50 --hw {hw}", "how long a network takes on it, and why"),
    ("archsim compare --net resnet_50 --hw {hw},l4,rtx_4090 --batch 16", "beside two GPUs"),
    ("archsim manual getting-started", "the first ten minutes; archsim --help lists all commands"),
)


def hello(root: Path = Path("/")) -> str:
    """This computer in a line, and three commands; of another one below `root`, for a test."""
    said, hw = "This computer cannot be described (only Linux tells what is needed); i7_6700k stands for it.", "i7_6700k"
    try:
        computer = read_computer(root, allowed_here() if root == Path("/") else None)
    except Unsupported:
        pass
    else:
        cores = f"{computer.cores} {'core' if computer.cores == 1 else 'cores'}"
        memory = [] if computer.memory is None else [f"{show_capacity(computer.memory.value, 2)} of memory"]
        gpus = [line.partition(":")[2].strip() for file in sorted(root.glob("proc/driver/nvidia/gpus/*/information"))
                for line in words_of(file).splitlines() if line.startswith("Model:")]  # fmt: skip
        said, hw = f"This computer: {', '.join([computer.name or 'a CPU', cores, *memory, *gpus])}.", "host"
    commands = [(line.format(hw=hw), what) for line, what in ASKED]
    width = max(len(line) for line, _ in commands)
    shown = "".join(c if c.isprintable() else "?" for c in said)
    return "\n".join([shown, "", *(f"  {line:{width}}  # {what}" for line, what in commands)])


# ----------------------------------------------------------------------------------------------------------------- measure


def _columns() -> Sequence[str]:
    from archsim.measure.rows import COLUMNS

    return COLUMNS


@click.command("measure")
@listed("--net", "Networks, or paths of their files, separated by commas.", "network")
@own("--cases", "Instead of --net: measure the networks or kernels that the rows of this file name.", FILE)
@listed("--batch", "Samples per run, separated by commas.", usual="1")
@own("--seq-len", "Tokens of each sequence; what the network has if not given.", click.IntRange(min=1, max=1 << 20))
@option(ARGUMENTS["bind"])
@own("--threads", "CPU threads, separated by commas; one per core if not given.")
@own("--backend", "onnxruntime, or torch where it is installed.", usual="onnxruntime")
@own("--device", "Where torch runs.", ["cpu", "cuda"], "cpu")
@own("--stack", "How torch runs: op by op, channels last, as a CUDA graph, or compiled. Default: op by op.", "stack")
@own("--precision", "With --backend torch.", ["fp32", "tf32", "fp16", "bf16"], "fp32")
@own("--task", "With --backend torch.", ["inference", "forward_backward"], "inference")
@own("--hw", "The device that the rows name; this computer if not given.", "device", metavar="DEVICE")
@own("--rounds", "Undisturbed rounds of each measurement.", click.IntRange(min=1), 30)
@own("--time-limit seconds", "Time limit for them.", Quantity("s", low=0.0), "10s", metavar="TIME")
@flag("--per-op", "Also time every op, with the runtime's profiler.")
@flag("--processor-time by_processor", "Measure processor time instead of wall time, for one thread on a shared computer.")
@flag("--strict", "Write no measurement during which other work used the cores.")
@own("--split", "What the rows may be used for.", ["calibrate", "watched"], "calibrate")
@output("--out", table_with(_columns, "file of measurements"), "Write the rows here; otherwise they are printed.", prints=True)
@FORCE
def measure_command(
    net: list[str], cases: str | None, batch: list[str], bind: dict[str, int] | None, threads: str | None, backend: str,
    device: str, stack: str | None, precision: str, task: str, hw: str | None, out: OutputFile | None, **asked: Any,
) -> None:  # fmt: skip
    """Run networks on this computer, with random weights, and write their times as measurement rows.

    Each measurement is warmed up and timed in rounds. A round in which the process got less than 90 % of its processor time is
    disturbed, and is dropped where enough others are left. Rows are written one by one, so an interrupt keeps them. Beside
    --out FILE.csv a new computer is probed and described in FILE.toml, where the other commands find it.

    \b
    Examples:
      archsim measure --net alexnet,resnet_50 --out mine.csv
      archsim measure --net resnet_50 --batch 1,16 --threads 1,2 --per-op --out mine.csv
      archsim measure --net bert_base --seq-len 64 --out bert.csv
      archsim measure --net resnet_50 --backend torch --device cuda --precision fp16 --stack pytorch-2-compile
      archsim measure --cases rows.csv --out measured.csv
      archsim measure --net model.onnx --bind height=320 --bind width=320 --out mine.csv
      archsim validate --measurements mine.csv --by network
      archsim detect --probe --out host.toml
      archsim measure --net resnet_50 --hw host.toml --out other.csv
      archsim validate --measurements other.csv --hw host.toml
    """
    from archsim.estimation.network import sizes_of
    from archsim.measure import run
    from archsim.measure.rows import Writer
    from archsim.trace.file import canonical

    if bool(net) == (cases is not None):
        raise click.UsageError("give --net, or --cases with a file of rows")
    if cases is not None:
        return _measure_cases(cases, asked["rounds"], asked["seconds"], out)
    wanted_stack, seq_len = stack or "", asked["seq_len"]
    open_session, stack = run.opener(backend, device, wanted_stack, precision, task), run.stack_of(backend, device, wanted_stack)
    networks, batches = tuple(dict.fromkeys(map(canonical, net))), run.whole_numbers(",".join(batch), "--batch")
    counts = run.whole_numbers(threads, "--threads") if threads else ()
    run.check_threads(counts or (1,), len(allowed_here()))
    sizes = sizes_of(bind)
    run.check_networks(networks, batches, stack, seq_len, sizes)
    if device == "cpu":  # before the probes, which take long
        run.check_memory(networks, batches, stack, available_here(), seq_len, sizes)
    wanted = run.device_of(_described(out) if hw is None and out and device == "cpu" else hw, device)
    plan = run.MeasurementPlan(networks=networks, batches=batches, threads=counts or (_cores(wanted),), hw=wanted, stack=stack,
                               sizes=sizes, **asked)  # fmt: skip
    kind = "gpu" if device == "cuda" else "cpu"
    run.check(plan, kind)
    if device == "cuda":
        run.check_memory(networks, batches, stack, run.memory_of(wanted), seq_len, sizes)
    note(run.energy_said(kind))
    refused, writer, progress = 0, Writer(out, sys.stdout), Progress()
    try:
        with progress as tell:
            for result in run.results(plan, open_session, tell):
                progress.clear()
                writer.write(result.rows)
                refused += result.refused
                note(result.said)
    finally:
        note(f"{writer.rows} row{'' if writer.rows == 1 else 's'}" + (f" in {out.path}" if out and writer.rows else ""))
    if refused:
        missed()


def _measure_cases(file: str, rounds: int, seconds: float, out: OutputFile | None) -> None:
    """The rows of a file with the values that were measured here; those that could not be are left out and told."""
    from archsim.evidence.table import read_table
    from archsim.measure.cases import added, measured_rows
    from archsim.measure.rows import Writer

    table = read_table(file)
    columns = (*table.header, *(name for name in added(table) if name not in table.header))
    place = out if out is None else replace(out, kind=table_with(lambda: columns, "file of measurements"))
    writer, refused, progress = Writer(place, sys.stdout, columns), 0, Progress()
    with progress as tell:
        for result in measured_rows(table, rounds=rounds, seconds=seconds, tell=tell):
            progress.clear()
            if result.refused:
                refused += 1
                note(result.said)
            else:
                writer.write([result.cells])
    note(f"{writer.rows} of {len(table.rows)} rows measured" + (f", in {out.path}" if out and writer.rows else ""))
    if refused:
        missed()


def _described(out: OutputFile) -> str:
    """The device file of this computer beside its measurements; probed and written if there is none."""
    from archsim.detect.detect import detect
    from archsim.device.catalog import spec_beside

    path = spec_beside(out.path)
    if not Path(path).is_file():
        place = output_file(path, TOML)
        place.check()
        with Progress() as tell:
            found = detect(probe=True, tell=tell)
        place.write(found.text)
        note(f"probed this computer and described it in {path}, which the rows name")
    return path if "/" in path else f"./{path}"


def _cores(hw: str) -> int:
    """The cores of the device that the rows name, as far as this process may use them."""
    from archsim.detect.catalog import find
    from archsim.device.device import Cpu

    device = find(hw).device
    return min(int(device.core.count), len(allowed_here())) if isinstance(device, Cpu) else 1


# ------------------------------------------------------------------------------------------------------------------ detect


@click.command("detect")
@output("--out", TOML, "Write the spec of the device here.")
@FORCE
@flag("--toml as_toml", "Print the spec in place of the summary.")
@flag("--probe", "Measure clocks, multiply-adds, latencies and bandwidths; takes some seconds.")
@own("--id name", "The id of the spec: lower case, digits, _.", usual="host")
@own("--gpu", "Describe this NVIDIA GPU instead.", click.IntRange(min=0), metavar="N")
def detect_command(out: OutputFile | None, as_toml: bool, probe: bool, name: str, gpu: int | None) -> None:
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

    if gpu is not None:
        from archsim.detect.detect import described

        if probe:
            raise click.UsageError("--probe measures the processor; leave it out beside --gpu")
        found, gpus = described(gpu, name), []
    else:
        from archsim.detect.detect import detect, gpus_said

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


# --------------------------------------------------------------------------------------------------------------------- new


@click.command("new")
@click.argument("what", type=click.Choice(["hw"]))
@own("--from parent", "The device that it is like: a name, or a path.", "device", required=True)
@option(ARGUMENTS["settings"], required=True,
        help="What is other: sm.count=40, memory.bandwidth=500GB/s; `archsim show hw NAME` prints the keys.")  # fmt: skip
@own("--id", "Its id, lower case; the name of the file if not given.")
@own("--name", "Its full name; made of the changes if not given.")
@own("--year", "Its year; that of the other device if not given.", int)
@own("--source", "Where the values are from; without, the file says that they are assumed.")
@output("--out", TOML, "Write the spec here; otherwise it is printed.", prints=True)
@FORCE
def new_command(
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
    from archsim.detect.catalog import find
    from archsim.device.catalog import canonical
    from archsim.device.file import loads
    from archsim.device.write import new_file

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
