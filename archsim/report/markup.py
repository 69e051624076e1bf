"""Text and tables as HTML. All content of files is escaped here, by `text` or `label`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archsim.base.units import show
from archsim.cost.bounds import BOUNDS
from archsim.report.text import clean

LONG = 40  # characters of a cell that a narrow page still gives some width


def text(words: str) -> str:
    """Words for the body of a page or for a quoted attribute.

    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(clean(words))


def label(words: str, longest: int = 34) -> str:
    """Words for a chart, cut to `longest` characters; a chart library reads some tags, but knows no `&quot;`.

    >>> label("<b>conv1</b>"), label("a" * 9, longest=5)
    ('&lt;b&gt;conv1&lt;/b&gt;', 'aaaa…')
    """
    plain = clean(words)
    short = plain if len(plain) <= longest else plain[: longest - 1] + "…"
    return html.escape(short, quote=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell: `body` is escaped HTML, `value` the key by which a click on the head sorts."""

    body: str
    value: float | None = None
    style: str = ""
    tip: str = ""


def words(content: str, *, style: str = "", tip: str = "") -> TableCell:
    """A cell of text."""
    return TableCell(body=text(content), style=style or ("long" if len(content) > LONG else ""), tip=tip)


def valued(shown: str, value: float) -> TableCell:
    """A figure as it is shown, right-aligned, which sorts by `value`."""
    return TableCell(body=text(shown), value=value, style="num")


def number(value: float, unit: str, digits: int = 3) -> TableCell:
    """A quantity, right-aligned."""
    return valued(show(value, unit, digits), value)


def marked(name: str, colour: str) -> TableCell:
    """A name behind a square of its colour."""
    return TableCell(body=f'<i class="swatch" style="background:{colour}"></i>{text(name)}', style="marked")


def bound_cell(bound: str) -> TableCell:
    """A bound behind its colour, by a class of the page's styles (`bound_styles`), so that large tables stay small."""
    return TableCell(body=text(bound), style=f"b-{bound if bound in BOUNDS else 'none'}")


def bound_styles() -> str:
    """The colours of the cells of bounds."""
    return "".join(f".b-{name}::before {{ background: {row.colour}; }}\n" for name, row in BOUNDS.items())


def percent(fraction: float, form: str = ".1f") -> TableCell:
    """A fraction as per cent, right-aligned."""
    return valued(f"{100 * fraction:{form}} %", fraction)


def items(lines: Iterable[str]) -> str:
    """Lines of text as a list; empty without any."""
    body = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul>{body}</ul>" if body else ""


def table(head: Sequence[str], rows: Iterable[Sequence[TableCell]], style: str = "") -> str:
    """A table whose numeric columns are right-aligned, in a box that scrolls where the page is narrower."""
    lines = [list(row) for row in rows]
    numeric = [bool(lines) and all(line[i].style == "num" for line in lines) for i in range(len(head))]
    marks = [' class="num"' if column else "" for column in numeric]
    heads = "".join(
        f'<th scope="col"{mark}>{text(title)}</th>' if title else "<td></td>" for mark, title in zip(marks, head, strict=True)
    )
    body = "\n".join(
        f"<tr>{''.join(_written(cell, column) for cell, column in zip(line, numeric, strict=True))}</tr>" for line in lines
    )
    styles = [*filter(None, [style]), *(f"r{i}" for i, column in enumerate(numeric, 1) if column)]
    named = f' class="{" ".join(styles)}"' if styles else ""
    return f'<div class="wide"><table{named}>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _written(cell: TableCell, aligned: bool) -> str:
    """A cell; the style of the table aligns one of an `aligned` column, which keeps large tables small."""
    marks = f' class="{cell.style}"' if cell.style and not aligned else ""
    marks += f' data-v="{cell.value:.5g}"' if cell.value is not None else ""
    marks += f' title="{text(cell.tip)}"' if cell.tip else ""
    return f"<td{marks}>{cell.body}</td>"
