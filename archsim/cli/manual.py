"""The manual, completion, and a check of the installation."""

from __future__ import annotations

import io
import platform
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from archsim.base.errors import ArchsimError, UnknownName
from archsim.base.files import read_text
from archsim.base.units import show
from archsim.base.version import __version__
from archsim.cli.terminal import missed, screen, show_text
from archsim.cli.vocabulary import items, own

# ------------------------------------------------------------------------------------------------------------------ manual


LIMIT = 100_000  # B of a page
PAGES = {
    "getting-started": "install, the first prediction, how to read it",
    "readers": "a student, a buyer, an architect, an engineer, a researcher: where each begins",
    "model": "the layers of the model, the bounds with their sources, fidelities, what is not modelled",
    "estimate": "one network on one device: what runs, at which speed, what comes out",
    "what-if": "before and after a change; elasticities",
    "ui": "the what-if page in a browser: what it shows, its address, what it refuses",
    "sweep": "grids and samples of devices that do not exist",
    "compare": "several devices: fastest, per watt, per dollar, from which batch on",
    "search": "the best device within conditions; what a target takes; area and cost",
    "tune": "the best clocks, power limit and batch of a device that you have; a budget of energy",
    "llm": "language models that an engine serves: time to first token, per token, joules, memory",
    "stacks": "software stacks: what is composed of what, which ops share a kernel, two stacks layer by layer, release notes",
    "tpu": "tensor processing units: systolic arrays, what is modelled, what was compared",
    "simulate": "serving requests, training on several devices, all-reduce; one SM, one core, their curves",
    "cache": "cache hierarchies, exactly, on the addresses of a program or a layer",
    "validation": "accuracy, intervals, your own measurements, fitting constants",
    "predictors": "score another tool or rule on the shipped rows; how to send a row or a predictor",
    "cells": "published tables cell by cell, and why some are missed",
    "power": "what the watts consist of; power from a profiler's utilisations; power limits",
    "measure": "describe this computer and measure networks on it",
    "own-model": "from model.onnx, a torch.nn.Module, config.json, prototxt or Chakra to an answer",
    "profile": "what a profiler recorded beside the prediction, and what the gap is made of",
    "devices": "what is known of each shipped device: how many values are sourced, what is assumed, which were measured",
    "own-files": "your own devices, nodes, networks and stacks",
    "studies": "questions in files, answered by reports",
    "python": "the same from Python",
    "formats": "JSON keys, files, exit codes",
    "glossary": "the nouns of keys, columns, bounds and answers, in the field's sense",
    "lab-roofline": "exercise: which layers arithmetic limits and which the memory",
    "lab-caches": "exercise: the same loop in another order, and where its misses come from",
    "lab-batch": "exercise: why one image is slow; hosts, waves, graphs",
    "lab-precision": "exercise: what half the bits save, time and energy; the best clock",
    "lab-stalls": "exercise: what the warps of an SM wait for",
}


@click.command("manual")
@click.argument("page", required=False, shell_complete=lambda ctx, param, begun: items(PAGES, begun))
@own("--site", "Write all pages as a linked site: manual, commands, keys, terms (extra `docs`).", metavar="FOLDER")
def manual_command(page: str | None, site: str | None) -> None:
    """Print one page of the manual, or the list of pages; or write them all as a site.

    \b
    Examples:
      archsim manual
      archsim manual getting-started
      archsim manual --site manual
    """
    if site is not None:
        if page is not None:
            raise click.UsageError("--site writes every page; leave PAGE out")
        return _write_site(site)
    on = screen()
    if page is None:
        from archsim.render.blocks import Facts

        show_text([Facts(title="archsim manual PAGE prints one of these pages", rows=list(PAGES.items()))])
    elif on.width is None and not on.color:
        click.echo(text(page))
    else:
        click.echo(_rendered(text(page), on), color=on.color, nl=False)


def _write_site(folder: str) -> None:
    from archsim.site.build import CHECKOUT, build, sources

    group = click.get_current_context().find_root().command
    assert isinstance(group, click.Group)
    pages = sources({name: text(name) for name in PAGES}, PAGES, group, CHECKOUT)
    target = Path(folder)
    click.echo(f"{build(target, pages)} pages; open {target / 'index.html'}")


def _rendered(page: str, on: Any) -> str:
    """A page as a terminal shows Markdown."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), force_terminal=on.color, color_system="standard" if on.color else None,
                      width=on.width or 100, no_color=not on.color, legacy_windows=False)  # fmt: skip
    with console.capture() as capture:
        console.print(Markdown(page, hyperlinks=False))
    return capture.get()


def text(page: str) -> str:
    """The page called `page`, as Markdown; UnknownName otherwise."""
    if page not in PAGES:
        raise UnknownName("page", page, list(PAGES), hint="`archsim manual` lists all")
    return read_text(files("archsim").joinpath("manual", f"{page}.md"), LIMIT).rstrip("\n")


# -------------------------------------------------------------------------------------------------------------- completion


SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_ARCHSIM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print what makes a shell complete commands, options, devices, networks, stacks and keys.

    \b
    Examples:
      eval "$(archsim completion bash)"     in ~/.bashrc
      eval "$(archsim completion zsh)"      in ~/.zshrc
      archsim completion fish | source      in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from archsim.cli.main import group

    found = get_completion_class(shell)
    assert found is not None
    script = found(group, {}, "archsim", VARIABLE)
    click.echo(script.source_template % script.source_vars())


# ------------------------------------------------------------------------------------------------------------------ doctor


PACKAGES = {  # package -> (extra that has it, where not all need it; what it is for)
    **dict.fromkeys(("numpy", "networkx", "simpy", "plotly", "pydantic", "click", "rich", "jinja2"), ("", "everything")),
    "scipy": ("calibrate", "`archsim calibrate`"), "onnxruntime": ("measure", "`archsim measure`"),
    "numba": ("fast", "compiled `archsim cache` and `--fidelity cycle`, all loops of `archsim detect --probe`"),
    "optuna": ("dse", "`archsim search --trials`"), "starlette": ("ui", "`archsim ui`"), "onnx": ("onnx", "ONNX models"),
    "protobuf": ("chakra", "Chakra's .et files"), "pyarrow": ("data", "Parquet files of `archsim sweep`"),
    "distributed": ("cluster", "`archsim sweep --scheduler`"),
}  # fmt: skip
OK, ABSENT, PROBLEM, REMOVED = "ok", "absent", "PROBLEM", "removed"
Check = tuple[str, str, str]  # how it is, what was looked at, what was found


@click.command("doctor")
def doctor_command() -> None:
    """Check this installation: versions, optional packages, every shipped file, what `--fidelity cycle` keeps, one prediction.

    \b
    Example:
      archsim doctor
    """
    from archsim.render.blocks import Table, Verdict, columns, words

    found = [*_packages(), *_data(), _prediction(), *_memo()]
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


def _packages() -> Iterator[Check]:
    """What archsim is built on."""
    from importlib.metadata import PackageNotFoundError, version

    for package, (extra, use) in PACKAGES.items():
        what = f"extra {extra}" if extra else "package"
        try:
            yield OK, what, f"{package} {version(package)}"
        except PackageNotFoundError:
            wanted = f'"archsim[{extra}]"' if extra else package
            yield ABSENT if extra else PROBLEM, what, f"{package}, for {use}: pip install {wanted}"


def _data() -> list[Check]:
    """Every shipped file, read."""
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
