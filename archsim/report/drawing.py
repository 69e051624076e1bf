"""A static drawing on a page, with its data beside it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from archsim.report.data import rows_as_csv
from archsim.report.markup import text


def drawing(svg: str, name: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An SVG picture in a box that scrolls where the page is narrower, and a link that saves `rows` as `name`.csv."""
    return f'<div class="drawing">{svg}</div>\n{data_link(name, head, rows)}'


def data_link(name: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A link that holds a table as csv."""
    packed = b64encode(rows_as_csv(tuple(head), [list(row) for row in rows]).encode()).decode("ascii")
    return (f'<p class="data"><a download="{text(name)}.csv" href="data:text/csv;base64,{packed}" '
            f'aria-label="data as csv: {text(name)}">data as csv</a></p>')  # fmt: skip
