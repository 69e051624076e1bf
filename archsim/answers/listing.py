"""What a list says: rows of texts, in the text perhaps as tables of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from archsim.render.blocks import Block, Table, columns, words
from archsim.render.text import csv_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Rows of texts under heads; `right` are the columns of numbers.

    shown: what people read instead; the rows, where it is empty
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()
    shown: Sequence[Block] = ()


def record(found: Listing) -> list[dict[str, str]]:
    """An object a row."""
    return [dict(zip(found.head, row, strict=True)) for row in found.rows]


def csv(found: Listing) -> str:
    """A line a row."""
    return csv_lines([tuple(found.head), *found.rows])


def sections(found: Listing) -> Sequence[Block]:
    """The tables."""
    return found.shown or [table_of(found.head, found.rows, found.right)]


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = (), title: str = "") -> Table:
    """Texts as a table; without a title under the head of its first column."""
    cells = [[*map(words, row)] for row in rows]
    return Table(title=title, columns=columns(*head, numbers=right), rows=cells, long=len(cells) > 20)
