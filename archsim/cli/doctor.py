"""`archsim doctor`."""

from __future__ import annotations

import platform
import sys

import click

from archsim.cli.terminal import missed, say

PACKAGES = ("numpy", "networkx", "simpy", "plotly", "pydantic", "click", "rich")
EXTRAS = {  # extra -> (package, what it is for)
    "calibrate": ("scipy", "`archsim calibrate`"), "measure": ("onnxruntime", "`archsim measure`"),
    "fast": ("numba", "compiled `archsim cache` and `--fidelity cycle`, all loops of `archsim detect --probe`"),
    "dse": ("optuna", "`archsim search --trials`"), "ui": ("starlette", "`archsim ui`"),
    "onnx": ("onnx", "ONNX models"), "chakra": ("protobuf", "Chakra's .et files"),
    "data": ("pyarrow", "Parquet files of `archsim sweep`"), "cluster": ("distributed", "`archsim sweep --scheduler`"),
}  # fmt: skip


@click.command("doctor")
def command() -> None:
    """Check this installation: versions, optional packages, every shipped file, what `--fidelity cycle` keeps, one prediction.

    \b
    Example:
      archsim doctor
    """
    problems = [*_versions(), *_data(), *_prediction()]
    _memo()
    for problem in problems:
        say(f"PROBLEM  {problem}")
    click.echo("all well" if not problems else f"{len(problems)} problems")
    if problems:
        missed()


def _versions() -> list[str]:
    from importlib.metadata import PackageNotFoundError, version

    from archsim.base.version import __version__

    say(f"archsim {__version__}, Python {platform.python_version()}, {sys.platform}")
    problems = []
    for package in PACKAGES:
        try:
            say(f"ok       {package} {version(package)}")
        except PackageNotFoundError:
            problems.append(f"{package} is not installed: pip install {package}")
    for extra, (package, use) in EXTRAS.items():
        try:
            say(f"ok       {package} {version(package)} (extra {extra})")
        except PackageNotFoundError:
            say(f'absent   {package}, for {use}: pip install "archsim[{extra}]"')
    return problems


def _data() -> list[str]:
    from archsim.base.errors import ArchsimError
    from archsim.calibration.constants import default
    from archsim.detect import catalog as devices
    from archsim.node import spec as nodes
    from archsim.stack import catalog as stacks
    from archsim.trace import file as traces

    problems, counts = [], {}
    for what, names, find in (
        ("devices", devices.names(), devices.find),
        ("nodes", nodes.names(), nodes.find),
        ("networks", traces.names(), traces.load),
        ("stacks", stacks.names(), stacks.find),
    ):
        counts[what] = len(names)
        for name in names:
            try:
                find(name)
            except ArchsimError as error:
                problems.append(str(error))
        if not names:
            problems.append(f"no {what}: the installation lacks its data")
    listed = ", ".join(f"{count} {what}" for what, count in counts.items())
    say(f"ok       {listed}, calibration {default().version}")
    return problems


def _prediction() -> list[str]:
    from archsim.estimation.estimate import estimate

    bound = estimate("alexnet", "tegra_x1", fidelity="roofline").latency_s
    predicted = estimate("alexnet", "tegra_x1").latency_s
    if not 0 < bound <= predicted:
        return [f"alexnet on tegra_x1: predicted {predicted:g} s is below its bound {bound:g} s"]
    say(f"ok       alexnet on tegra_x1: {1e3 * predicted:.3g} ms, roofline {1e3 * bound:.3g} ms")
    return []


def _memo() -> None:
    """What `--fidelity cycle` has simulated before; a damaged file is deleted, and no problem any more."""
    from archsim.estimation.memo import memo

    kept = memo()
    count = kept.checked()
    if kept.damaged:
        say(f"removed  {kept.place}: was not as archsim wrote it; --fidelity cycle simulates anew")
    elif kept.place is not None:
        say(f"ok       {kept.place}: {count or 'no'} programs simulated")
