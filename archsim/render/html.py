"""Answers as pages: one file that loads nothing, drawn by templates that escape all that they are given.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from archsim.render.blocks import Block, Chart, Verdict, visible
from archsim.render.csv import csv_lines
from archsim.render.palette import tones
from archsim.render.svg import drawn, legend
from archsim.render.text import clean

DEEPEST = 9
MOST_POINTS = 1000  # of a chart whose page holds them as CSV too
SCRIPTS = ("tables.js", "tree.js", "page.js")


def page(blocks: Iterable[Block]) -> str:
    """A whole page; its title is that of the first verdict."""
    shown = list(blocks)
    title = next((block.title for block in shown if isinstance(block, Verdict)), "archsim")
    found: str = _templates()["page.html"].render(
        title=title, sections=_marked(sections(shown)), styles=_marked(styles()), scripts=_marked("".join(map(asset, SCRIPTS))),
    )  # fmt: skip
    return found


def sections(blocks: Iterable[Block]) -> str:
    """The blocks as a part of a page, without its frame, styles and scripts."""
    shown = visible(blocks, DEEPEST, "page")
    wrapped = [{"kind": type(block).__name__, "block": block,
                "title": "" if isinstance(block, Verdict) else getattr(block, "title", "")} for block in shown]  # fmt: skip
    found: str = _templates()["blocks.html"].render(blocks=wrapped)
    return found.strip() + "\n"


def styles() -> str:
    """The style sheet of all pages: that of the package, and a class for the colour of each tone."""
    rules = (f".t-{name.replace('.', '-')} {{ --c: {colour}; }}\n" for name, colour in tones().items())
    return asset("page.css") + "".join(rules)


def escaped(text: str) -> str:
    """Text for the body of a page or for a quoted attribute.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(clean(text))


def asset(name: str) -> str:
    """A style or script of this package."""
    return files("archsim.render").joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> Mapping[str, Any]:
    """The templates, which escape all words; jinja2 is imported when a page is first made."""
    import jinja2

    made = jinja2.Environment(loader=jinja2.PackageLoader("archsim.render"), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined)  # fmt: skip
    made.filters |= {"clean": clean, "identifier": _identifier}
    made.globals |= {"legend": legend, "data": _data, "drawn": lambda chart: _marked(drawn(chart)),
                     "packed": lambda tree: _marked(_packed(tree))}  # fmt: skip
    return {name: made.get_template(name) for name in ("page.html", "blocks.html")}


def _marked(made: str) -> Any:
    """Markup that is as it should be."""
    from markupsafe import Markup

    return Markup(made)


def _packed(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def _identifier(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "chart"


def _data(chart: Chart) -> str:
    """The points of a chart as CSV in an address; empty of very many, which `--json` has."""
    if sum(len(s.x) for s in chart.series) > MOST_POINTS:
        return ""
    rows = [(s.name, f"{x:.6g}", f"{y:.6g}") for s in chart.series for x, y in zip(s.x, s.y, strict=True)]
    return quote(csv_lines([("series", chart.x.title, chart.y.title), *rows]), safe=", +")


def notebook(blocks: Iterable[Block]) -> str:
    """The first screen of an answer for a notebook: what `--html` shows, with the styles that it needs."""
    first = [block for block in visible(blocks, 0, "page") if not (isinstance(block, Chart) and (block.zooms or block.tree))]
    scoped = re.sub(r"(?m)^:root", ".archsim", styles()).replace("body {", ".archsim {")
    return f'<div class="archsim"><style>\n@scope (.archsim) {{\n{scoped}}}\n</style>\n{sections(first)}</div>'
