"""Answers as pages: one file that loads nothing, drawn by templates that escape all that they are given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from archsim.render.blocks import Block, Chart, Verdict, visible
from archsim.render.charts import drawn, legend
from archsim.render.palette import tones
from archsim.render.text import clean, csv_lines

DEEPEST = 9
MOST_POINTS = 1000  # of a chart whose page holds them as CSV too
SCRIPTS = ("tables.js", "tree.js", "page.js")


def page(blocks: Iterable[Block]) -> str:
    """A whole page; its title is that of the first verdict."""
    shown = list(blocks)
    title = next((block.title for block in shown if isinstance(block, Verdict)), "archsim")
    return templated("page.html", title=title, sections=marked(sections(shown)), styles=marked(styles()),
                     scripts=marked("".join(map(asset, SCRIPTS))))  # fmt: skip


def sections(blocks: Iterable[Block]) -> str:
    """The blocks as a part of a page, without its frame, styles and scripts."""
    shown = visible(blocks, DEEPEST, "page")
    wrapped = [{"kind": type(block).__name__, "block": block,
                "title": "" if isinstance(block, Verdict) else getattr(block, "title", "")} for block in shown]  # fmt: skip
    return templated("blocks.html", blocks=wrapped).strip() + "\n"


def templated(name: str, package: str = "archsim.render", **given: Any) -> str:
    """A template of a package with what it is given; all words are escaped, but for those that are `marked`."""
    found: str = _templates(package).get_template(name).render(given)
    return found


def styles() -> str:
    """The style sheet of all pages: that of the package, and a class for the colour of each tone."""
    rules = (f".t-{name.replace('.', '-')} {{ --c: {colour}; }}\n" for name, colour in tones().items())
    return asset("page.css") + "".join(rules)


def asset(name: str, package: str = "archsim.render") -> str:
    """A style, a script or a text of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def _templates(package: str) -> Any:
    """The templates, which escape all words; jinja2 is imported when a page is first made."""
    import jinja2

    made = jinja2.Environment(loader=jinja2.PackageLoader(package), autoescape=True, trim_blocks=True, lstrip_blocks=True,
                              undefined=jinja2.StrictUndefined, finalize=_cleaned)  # fmt: skip
    made.filters["identifier"] = _identifier
    made.globals |= {"legend": legend, "data": _data, "drawn": lambda chart: marked(drawn(chart)),
                     "packed": lambda tree: marked(_packed(tree)),
                     "sections": lambda *blocks: marked(sections(blocks))}  # fmt: skip
    return made


def marked(made: str) -> Any:
    """Markup that is as it should be."""
    from markupsafe import Markup

    return Markup(made)


def _cleaned(said: Any) -> Any:
    """Words without control characters; markup is as it was made."""
    return clean(said) if type(said) is str else said


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
