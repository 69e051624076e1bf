"""Pages that are made: commands from what they declare to click, keys of specs, JSON, terms of the model, accuracy."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import click

import archsim.cost
from archsim.answers.schemas import SCHEMAS, schema_of
from archsim.base.units import TEXT
from archsim.device.device import CLASSES, PARTS
from archsim.device.spec import keys, read_by
from archsim.render.markdown import table

Pages = Mapping[str, tuple[str, str]]  # name -> text, and what the page answers
Term = Callable[..., Any]
WIDTH = 80  # of a command's help
SCORES = ("values", "median error", "90 % below", "bias", "in the 80 % interval")
QUANTITIES = {  # of a served model, in the order of its run
    "prefill": "time to first token", "decode": "time per output token", "end to end": "end to end",
    "tokens": "tokens per second", "energy": "energy per token", "power": "power",
}  # fmt: skip
LEADS = {
    "commands": "# Commands\n\nEach prints its own page with `--help`.",
    "keys": "# Keys of a spec\n\nA spec describes one device in a TOML file: what each value means, in which unit and within "
            "which limits, and which fidelities it moves. `archsim show hw NAME` prints those of a device with their sources; "
            "the page [own-files](../own-files.md) says how to write one.",
    "schemas": "# JSON\n\nWhat `--json` prints, by command, as JSON Schema 2020-12 (`archsim show schema NAME`). A key that is "
               "listed here keeps its name and its unit; units are SI and stand in the name.",
    "terms": "# Terms of the model\n\nEach quantity between an op and its time or energy: its equation with what the letters "
             "mean, where it comes from, and an example that a test computes. `archsim explain` prints the same equations with "
             "the numbers of one layer in them.",
}  # fmt: skip
_MARKUP = re.compile(r"([\\*_\[\]<>|$#{}])")


def plain(text: str) -> str:
    """Text in which no character is markup, on one line.

    >>> plain("a_b | [s]\\nof <x>")
    'a\\\\_b \\\\| \\\\[s\\\\] of \\\\<x\\\\>'
    """
    parts = re.split(r"(`[^`\n]+`)", " ".join(text.split()))  # what stands between backticks is code already
    return "".join(part.replace("|", "\\|") if at % 2 else _MARKUP.sub(r"\\\1", part) for at, part in enumerate(parts))


def fenced(text: str, language: str = "text") -> str:
    """A block of code.

    >>> print(fenced("a = 1", "python"), end="")
    ```python
    a = 1
    ```
    """
    return f"```{language}\n{text.rstrip()}\n```\n"


def listed(rows: Mapping[str, tuple[str, str]], caption: str = "") -> str:
    """Pages with what each answers, as a table and as a part of the menu: place -> (title, line)."""
    shown = [[f"[{title}]({name}.md)", plain(line)] for name, (title, line) in rows.items()]
    menu = "\n".join([*([f":caption: {caption}"] if caption else []), ":hidden:", ":maxdepth: 1", "", *rows])
    return f"{table(('page', 'what it answers'), shown)}\n{fenced(menu, '{toctree}')}"


def title(page: str) -> str:
    """The heading of a page."""
    return page.removeprefix("# ").partition("\n")[0]


def folders(group: click.Group) -> Iterator[tuple[str, str]]:
    """The text of each page of a folder, and of the list of these, by its place in the site."""
    made = {"commands": of_commands(group), "keys": of_specs(), "schemas": of_schemas(), "terms": of_terms()}
    for folder, pages in made.items():
        rows = {name: (title(text), about) for name, (text, about) in pages.items()}
        yield f"{folder}/index", f"{LEADS[folder]}\n\n{listed(rows)}"
        yield from ((f"{folder}/{name}", text) for name, (text, _) in pages.items())


def of_commands(group: click.Group, above: click.Context | None = None) -> dict[str, tuple[str, str]]:
    """What every command that a user can type says with `--help`."""
    context = above or click.Context(group, info_name="archsim", terminal_width=WIDTH, **group.context_settings)
    found = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        own = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH)
        words = own.command_path
        found["-".join(words.split()[1:])] = f"# `{words}`\n\n{fenced(command.get_help(own))}", command.get_short_help_str(200)
        if isinstance(command, click.Group):
            found |= of_commands(command, own)
    return found


def of_specs() -> Pages:
    """The keys of each kind of device."""
    found = {}
    for kind in CLASSES:
        parts = [f"# Spec of a {kind.upper()}\n"]
        for part, rows in groupby(keys(kind), key=lambda row: row[0].partition(".")[0]):
            about = plain((PARTS[kind][part].__doc__ or "").partition("\n")[0])
            cells = [[f"`{key}`", *(("word", "") if unit.unit == TEXT else (plain(unit.unit), plain(unit.range))),
                      "yes" if required else "", read_by(unit) or "nothing", plain(unit.doc)]
                     for key, unit, required in rows]  # fmt: skip
            parts.append(f"## `[{part}]`\n\n{about}\n\n{table(('key', 'unit', 'range', 'needed', 'moves', 'meaning'), cells)}")
        found[kind] = "\n".join(parts), f"every key of a {kind.upper()}"
    return found


def of_schemas() -> Pages:
    """The schema of what each command prints."""
    found = {name: schema_of(name) for name in sorted(SCHEMAS)}
    return {name: (f"# {name}\n\n{fenced(json.dumps(one, indent=1), 'json')}", one["title"]) for name, one in found.items()}


def of_terms() -> Pages:
    """Each part of the cost model, from the docstrings of the functions that compute its terms."""
    found = {}
    for room, about, terms in modules():
        first, _, rest = about.partition("\n")
        parts = [f"# `{room}`\n\n{plain(first)}\n", *([fenced(rest.strip())] if rest.strip() else [])]
        for term in terms:
            text, sign, example = (inspect.getdoc(term) or "").partition(">>>")
            parts.append(f"## `{term.__name__}`\n\n{fenced(text)}\n{fenced(sign + example, 'python')}")
        found[room] = "\n".join(parts), first
    return found


def modules() -> Iterator[tuple[str, str, list[Term]]]:
    """Modules of the cost model, what they say of themselves, and their public functions that show an example, in their order."""
    for found in pkgutil.iter_modules(archsim.cost.__path__):
        module = importlib.import_module(f"{archsim.cost.__name__}.{found.name}")
        terms: list[Term] = [thing for name, thing in vars(module).items() if inspect.isfunction(thing) and name[0] != "_"
                             and thing.__module__ == module.__name__ and ">>>" in (thing.__doc__ or "")]  # fmt: skip
        if terms:
            yield found.name, module.__doc__ or "", terms


def accuracy(summary: Mapping[str, Any], served: Mapping[str, Any] | None = None) -> str:
    """Errors of the shipped model on the shipped measurements, and with constants fitted without what is predicted.

    summary: what `archsim validate --freeze` wrote; served: the same of language models that engines served, where it is there
    """
    worth = [[plain(part), _share(one["median"])] for part, one in sorted(summary["ablation"].items())]
    parts = [
        "# Accuracy\n\nPredictions of the shipped model beside the shipped measurements, as `archsim validate` prints them "
        "([validation](validation.md)). Constants were fitted in part to these rows; what they reach on devices, networks, "
        "stacks and sources that no constant has seen is the table of rows not in view. What other tools reach is on the page of "
        "[predictors](predictors.md).\n",
        *(f"## {said}\n\n{_scored(['', 'of'], (((name, metric), one) for name, metric, one in _nested(summary[key])))}"
          for key, said in (("by_class", "By class"), ("by_source", "By source of the measurements"))),
        "## Rows in view and not\n\n" + _scored(["", "a fit may use them"], (
            ((what, sight), one) for what, sight, one in _nested(summary["by_sight"]))),
        f"## What parts are worth to times of networks\n\n{table(('without', SCORES[1]), worth, (1,))}",
    ]  # fmt: skip
    return "\n".join([*parts, *([_served(served)] if served else [])])


def _served(served: Mapping[str, Any]) -> str:
    """Language models by quantity, by engine and card, and each by itself."""
    values, left = sum(one["n"] for one in served["overall"]), sum(served["skipped"].values())
    sources = " and ".join(f"`{name}` ({count:,})" for name, count in sorted(served["sources"].items()))
    order, place = list(QUANTITIES), ("engine", "hardware", "model")
    rows = sorted((([one.get(name, "all") for name in place], one) for one in (*served["cards"], *served["groups"])),
                  key=lambda row: (row[0], order.index(row[1]["quantity"])))  # fmt: skip
    return (
        f"## Served language models\n\n{values:,} values of published runs, of {sources}: batches that arrive at once, and a "
        "number of requests that is kept. No constant is fitted to them; but the clocks that each engine's host takes between "
        "two steps, one to three numbers of its stack, follow from these runs, but for SGLang's, which are assumed: its rows are "
        f"what to expect of an engine that nobody measured. {left} further values cannot be predicted; `archsim validate "
        "--measurements reports/published/serving/llm_serving.csv.gz` says why, and `archsim llm` shows the nearest run beside "
        "its answer ([llm](llm.md)). An engine is called as its source calls it. Intervals are those that `archsim llm` states; "
        "where less than 80 % of the values lie in one, it is too narrow.\n\n"
        + _scored(["quantity"], (([QUANTITIES[one["quantity"]]], one) for one in served["overall"]))
        + "\n### By engine and card\n\n"
        + _scored(["engine", "card", "model", "quantity"], (([*names, QUANTITIES[one["quantity"]]], one) for names, one in rows))
    )


def _nested(groups: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    return ((name, inner, groups[name][inner]) for name in sorted(groups) for inner in sorted(groups[name]))


def _scored(heads: Sequence[str], rows: Iterable[tuple[Sequence[str], Mapping[str, Any]]]) -> str:
    """A table of scores, each behind its names."""
    cells = [[*map(plain, names), f"{one['n']:,}", _share(one["median"]), _share(one["p90"]), _share(one["bias"], "+.1f"),
              "" if one["coverage"] is None else _share(one["coverage"], ".0f")] for names, one in rows]  # fmt: skip
    return table([*heads, *SCORES], cells, range(len(heads), len(heads) + len(SCORES)))


def _share(value: float, form: str = ".1f") -> str:
    return f"{100 * value:{form}}\u00a0%"  # where no line is broken
