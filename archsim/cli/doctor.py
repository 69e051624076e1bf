"""`archsim doctor`."""

from __future__ import annotations

import platform
import sys

import click

from archsim.cli.terminal import missed, show_text

PACKAGES = ("numpy", "networkx", "simpy", "pydantic", "click", "rich", "jinja2")
EXTRAS = {  # extra -> (package, what it is for)
    "calibrate": ("scipy", "`archsim calibrate`"), "measure": ("onnxruntime", "`archsim measure`"),
    "fast": ("numba", "compiled `archsim cache` and `--fidelity cycle`, all loops of `archsim detect --probe`"),
    "dse": ("optuna", "`archsim search --trials`"), "ui": ("starlette", "`archsim ui`"),
    "onnx": ("onnx", "ONNX models"), "chakra": ("protobuf", "Chakra's .et files"),
    "data": ("pyarrow", "Parquet files of `archsim sweep`"), "cluster": ("distributed", "`archsim sweep --scheduler`"),
}  # fmt: skip


OK, ABSENT, PROBLEM, REMOVED = "ok", "absent", "PROBLEM", "removed"
Check = tuple[str, str, str]  # how it is, what was looked at, what was found


@click.command("doctor")
def command() -> None:
    """Check this installation: versions, optional packages, every shipped file, what `--fidelity cycle` keeps, one prediction.

    \b
    Example:
      archsim doctor
    """
    from archsim.base.version import __version__
    from archsim.render.blocks import Table, Verdict, columns, words

    found = [_packages(), *_extras(), *_data(), _prediction(), *_memo()]
    bad, absent = (sum(state == which for state, _, _ in found) for which in (PROBLEM, ABSENT))
    rows = [[words(what), words(state, tone="bad" if state == PROBLEM else "good" if state == OK else ""), words(said)]
            for state, what, said in found]  # fmt: skip
    about = (f"Python {platform.python_version()}", sys.platform)
    verdict = f"{bad} of {len(found)} checks found a problem." if bad else "All well."
    left = f" {absent} optional packages are absent." if absent else ""
    show_text([Table(title="Checks", columns=columns("", "", ""), rows=rows),
               Verdict(title=f"archsim {__version__}", asked=about, sentences=[verdict + left])])  # fmt: skip
    if bad:
        missed()


def _packages() -> Check:
    """The packages without which nothing runs."""
    versions = {name: _version(name) for name in PACKAGES}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return PROBLEM, "packages", f"{', '.join(missing)} not installed: pip install {' '.join(missing)}"
    return OK, "packages", ", ".join(f"{name} {version}" for name, version in versions.items())


def _extras() -> list[Check]:
    found = []
    for extra, (package, use) in EXTRAS.items():
        version = _version(package)
        found.append((ABSENT, f"extra {extra}", f'{package}, for {use}: pip install "archsim[{extra}]"') if version is None else
                     (OK, f"extra {extra}", f"{package} {version}"))  # fmt: skip
    return found


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _data() -> list[Check]:
    """Every shipped file, read."""
    from archsim.base.errors import ArchsimError
    from archsim.calibration.constants import default
    from archsim.detect import catalog as devices
    from archsim.node import spec as nodes
    from archsim.stack import catalog as stacks
    from archsim.trace import file as traces

    problems: list[Check] = []
    counts = []
    for what, names, find in (
        ("devices", devices.names(), devices.find),
        ("nodes", nodes.names(), nodes.find),
        ("networks", traces.names(), traces.load),
        ("stacks", stacks.names(), stacks.find),
    ):
        counts.append(f"{len(names)} {what}")
        for name in names:
            try:
                find(name)
            except ArchsimError as error:
                problems.append((PROBLEM, what, str(error)))
        if not names:
            problems.append((PROBLEM, what, "the installation lacks its data"))
    return problems or [(OK, "data", f"{', '.join(counts)}, calibration {default().version}")]


def _prediction() -> Check:
    from archsim.base.units import show
    from archsim.estimation.estimate import estimate

    bound = estimate("alexnet", "tegra_x1", fidelity="roofline").latency_s
    predicted = estimate("alexnet", "tegra_x1").latency_s
    said = f"alexnet on tegra_x1: {show(predicted, 's', 3)}, at least {show(bound, 's', 3)}"
    return OK if 0 < bound <= predicted else PROBLEM, "prediction", said


def _memo() -> list[Check]:
    """What `--fidelity cycle` has simulated before; a damaged file is deleted, and no problem any more."""
    from archsim.estimation.memo import memo

    kept = memo()
    count = kept.checked()
    if kept.damaged:
        return [(REMOVED, "simulations", f"{kept.place}: was not as archsim wrote it; --fidelity cycle simulates anew")]
    return [] if kept.place is None else [(OK, "simulations", f"{count or 'no'} programs in {kept.place}")]
