"""Answers as Markdown, with charts as pictures beside it. Bars are left out: the numbers that they show stand in their rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from archsim.render.blocks import Block, Cell, Chart, Facts, Note, Table, Verdict, visible
from archsim.render.charts import drawn
from archsim.render.text import clean

WIDTH = 900  # of a picture [px]


def markdown(blocks: Iterable[Block], depth: int = 1) -> str:
    """The blocks of the first screen, a line between them; verdicts have headings of this `depth`."""
    parts = ["\n".join(_written(block, depth)).strip() for block in visible(blocks, 0, "page")]
    return "".join(f"{part}\n\n" for part in parts if part)


def pictures(blocks: Iterable[Block]) -> Mapping[str, str]:
    """The charts of the first screen as SVG, by the file that the text names."""
    charts = [block for block in visible(blocks, 0, "page") if isinstance(block, Chart)]
    return {_file(chart): drawn(chart, WIDTH) for chart in charts if _has_points(chart)}


def _has_points(chart: Chart) -> bool:
    return any(len(s.x) for s in chart.series)


def _file(chart: Chart) -> str:
    return file_name(chart.name or chart.title.lower(), "svg")


def file_name(words: str, ending: str) -> str:
    """A name for a file beside the text.

    >>> file_name("a/b of c.1", "svg")
    'a_b_of_c.1.svg'
    """
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', words).strip('_.')}.{ending}"


def _written(block: Block, depth: int) -> list[str]:
    match block:
        case Verdict():
            asked = [" · ".join(map(_safe, block.asked)), ""] if block.asked else []
            lines = [f"- **{_safe(value)}**{''.join(f'; {_safe(one)}' for one in more if one)}" for value, *more in block.lines]
            return [f"{'#' * depth} {_safe(block.title)}", "", *asked, *lines, *([""] if lines else []),
                    *_paragraphs(block.sentences)]  # fmt: skip
        case Facts():
            rows = [(name, value) for name, value in block.rows if value not in ("", [], ())]
            return [*_titled(block.title if rows else ""), *(f"- {_safe(name)}: {_value(value)}" for name, value in rows)]
        case Table():
            return [*_titled(block.title), *_table(block), *([""] if block.rows and block.notes else []),
                    *_paragraphs(block.notes)]  # fmt: skip
        case Chart():
            picture = [f"![{_safe(block.title)}]({_file(block)})", ""] if _has_points(block) else []
            return [*_titled(block.title), *picture, *_paragraphs(block.notes)]
        case Note():
            return [*_paragraphs(block.text.splitlines(), "**Warning:** " if block.tone == "warning" else "")]


def _titled(title: str) -> list[str]:
    return [f"**{_safe(title)}**", ""] if title else []


def _paragraphs(lines: Iterable[str], lead: str = "") -> Iterator[str]:
    """Paragraphs with a line between them."""
    for i, line in enumerate(filter(None, lines)):
        yield from [""] * (i > 0)
        yield lead + _safe(line)


def _value(value: Cell | str | Sequence[Cell | str]) -> str:
    cells = [value] if isinstance(value, str | Cell) else value
    return "; ".join(_safe(cell if isinstance(cell, str) else cell.text) for cell in cells)


def _table(t: Table) -> list[str]:
    """The columns that have words, and of a long table its first rows."""
    rows = [t.rows[i] for i in t.first if i < len(t.rows)] or t.rows
    kept = [i for i, column in enumerate(t.columns) if column.kind != "bar" and (not i or any(row[i].text for row in rows))]
    right = [place for place, i in enumerate(kept) if t.columns[i].kind == "number"]
    body = [[_safe(row[i].text).replace("|", "\\|") for i in kept] for row in rows]
    more = ["", f"{len(t.rows) - len(rows):,} more"] if len(rows) < len(t.rows) else []
    return [table([_safe(t.columns[i].head) for i in kept], body, right).rstrip(), *more]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> str:
    """A table whose cells are Markdown; the columns at these places stand at the `right`.

    >>> print(table(["key", "unit"], [["`sm.count`", "1"]]), end="")
    | key | unit |
    | --- | --- |
    | `sm.count` | 1 |
    """
    marks = ["---:" if i in right else "---" for i in range(len(head))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, marks, *rows))


def _safe(text: str) -> str:
    """Words that start no tag; what marks words in Markdown stays as it is written."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", clean(text)).rstrip()
