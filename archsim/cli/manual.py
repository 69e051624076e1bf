"""`archsim manual`."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import click

from archsim.base.errors import UnknownName
from archsim.base.files import read_text
from archsim.cli.terminal import screen, show_text
from archsim.cli.vocabulary import items

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
    "simulate": "serving requests, training on several devices, all-reduce",
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
    "lab-roofline": "exercise: which layers arithmetic limits and which the memory",
    "lab-caches": "exercise: the same loop in another order, and where its misses come from",
    "lab-batch": "exercise: why one image is slow; hosts, waves, graphs",
    "lab-precision": "exercise: what half the bits save, time and energy; the best clock",
    "lab-stalls": "exercise: what the warps of an SM wait for",
}


@click.command("manual")
@click.argument("page", required=False, shell_complete=lambda ctx, param, begun: items(PAGES, begun))
@click.option("--site", metavar="FOLDER", help="Write all pages as a linked site: manual, commands, keys, terms (extra `docs`).")
def command(page: str | None, site: str | None) -> None:
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
    from pathlib import Path

    from archsim.site.build import CHECKOUT, build, sources

    group = click.get_current_context().find_root().command
    assert isinstance(group, click.Group)
    pages = sources({name: text(name) for name in PAGES}, PAGES, group, CHECKOUT)
    target = Path(folder)
    click.echo(f"{build(target, pages)} pages; open {target / 'index.html'}")


def _rendered(page: str, on: Any) -> str:
    """A page as a terminal shows Markdown."""
    import io

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
