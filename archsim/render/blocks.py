"""What an answer says: a sequence of five kinds of block with typed cells. Renderers know these, and no answer.

    Verdict   the answer itself: what was asked, the numbers, and the sentence that follows from them
    Facts     names with values, in order
    Table     rows of typed cells; a cell may hold a bar, so that a chart of bars is a table
    Chart     series over two axes, intervals on tracks, or a tree of shares
    Note      a paragraph

A block's `level` says how deep a reader must look: 0 stands on the first screen, 1 is what `--layers` adds, 2 what `--all` adds;
a page has all of them, the deeper ones folded. `only` leaves a block to "text" or "page".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from archsim.base.units import COUNT, grouped, show

Only = Literal["", "text", "page"]
Half = Literal["", "upper", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a bar, from `start` to `end`, as shares of its column [1]; `tone` names its colour, `tip` is told on hover.

    sign: "" a filled part, "|" a mark at `end`, "o" a ring there: what others measured
    half: of the bar's height: before above, after below
    """

    start: float
    end: float
    tone: str = ""
    tip: str = ""
    sign: Literal["", "|", "o"] = ""
    half: Half = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell: what people read, `value` by which it sorts, `tone` of its text ("good", "bad", "quiet") or of a square before it.

    shade: of the ground [1], in a table that is read as a map
    """

    text: str = ""
    value: float | None = None
    tone: str = ""
    tip: str = ""
    bar: Sequence[Piece] = ()
    shade: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its head; numbers stand at the right, bars stretch; a phone leaves out what is not `needed`."""

    head: str
    kind: Literal["text", "number", "bar"] = "text"
    needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Where a block is shown: at which `level` of detail, and whether in text or on a page `only`."""

    level: int = 0
    only: Only = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Shown):
    """The answer: a title, what was asked, `lines` of numbers (value, how sure, what else), and sentences that follow."""

    title: str
    asked: Sequence[str] = ()
    lines: Sequence[tuple[str, str, str]] = ()
    sentences: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Shown):
    """Names with values; a value of several lines is a list."""

    title: str = ""
    rows: Sequence[tuple[str, Cell | str | Sequence[Cell | str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Shown):
    """Rows of cells under columns; `notes` are said below, `long` tables scroll and are searched on a page.

    key: tones of bars with what they stand for, for a page
    first: places of the rows that stand on the first screen, where there are more; `--all` has the others
    """

    title: str = ""
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    key: Sequence[tuple[str, str]] = ()
    first: Sequence[int] = ()
    long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: title and unit; `log` or None to decide by the range of its values; `ends` or None for those of the values.

    unit: a row of `base.units.UNITS`, "KiB" for bytes in binary units, or any word
    names: of the places 0, 1, ... in place of numbers, the first on top
    """

    title: str
    unit: str = COUNT
    log: bool | None = None
    ends: tuple[float, float] | None = None
    marks: Sequence[float] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points under one name. `x` [n] and `y` [n] in base units.

    tone: a bound, a component of the energy, or "" for the next colour; "quiet" for what others are seen against
    mark: the sign at each point, "" for a line alone; `joined` by a line; `stepped`: a value holds until the next point
    ends: [n] where intervals that begin at `x` end; the points are then bars at the row `y`
    low, high: [n] a band around `y`
    sizes: [n] areas of the marks, as shares of the largest; hollow: [n] whether a point has a reservation
    labels: [n] what stands beside a point, where there is room; tips: [n] what is told on hover
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    tone: str = ""
    mark: Literal["", "o"] = "o"
    joined: bool = True
    stepped: bool = False
    dashed: bool = False
    ends: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    sizes: Sequence[float] = ()
    hollow: Sequence[bool] = ()
    labels: Sequence[str] = ()
    tips: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Shown):
    """Series over two axes. `guides` are lines across: (axis, value, what it stands for).

    zooms: many points, of which a page shows a part larger
    name: of the picture in a file of its own
    tree: shares that open, as `[name, time, energy, tone]` and `[name, [children]]`, in place of series
    """

    title: str
    x: Axis = field(default_factory=lambda: Axis(title=""))
    y: Axis = field(default_factory=lambda: Axis(title=""))
    series: Sequence[Series] = ()
    guides: Sequence[tuple[Literal["x", "y"], float, str]] = ()
    notes: Sequence[str] = ()
    height: int = 340
    zooms: bool = False
    name: str = ""
    tree: Mapping[str, Any] | None = None
    only: Only = "page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Shown):
    """Paragraphs, a line each; tone "verdict" for what follows from the numbers, "warning" for what a reader must not miss,
    "quiet" for what explains."""

    text: str
    tone: Literal["", "verdict", "warning", "quiet"] = ""


Block = Verdict | Facts | Table | Chart | Note


def words(text: str, tone: str = "", tip: str = "") -> Cell:
    """A cell of text."""
    return Cell(text=text, tone=tone, tip=tip)


def number(value: float | None, unit: str = COUNT, digits: int = 3, tone: str = "") -> Cell:
    """A quantity with its unit; unknown is a dash, never 0.

    >>> number(0.00213, "s").text, number(None).text
    ('2.13 ms', '-')
    """
    return Cell(text="-", tone="quiet") if value is None else Cell(text=show(value, unit, digits), value=value, tone=tone)


def count(value: float, digits: int = 4) -> Cell:
    """A number without a prefix, thousands apart."""
    return Cell(text=grouped(value, digits), value=value)


def percent(share: float | None, form: str = ".1f", tone: str = "") -> Cell:
    """A share as per cent; unknown is a dash.

    >>> percent(0.0512).text, percent(0.05, "+.0f").text, percent(None).text
    ('5.1 %', '+5 %', '-')
    """
    return Cell(text="-", tone="quiet") if share is None else Cell(text=f"{100 * share:{form}} %", value=share, tone=tone)


def stacked(
    parts: Mapping[str, float], most: float, unit: str = COUNT, tones: Mapping[str, str] | None = None,
    half: Half = "",
) -> Cell:  # fmt: skip
    """A bar of parts by tone, of which `most` fills the column; `tones` are those of parts that have another name."""
    pieces, at = [], 0.0
    for name, value in parts.items():
        if value > 0 and most > 0:
            tone, tip = (tones or {}).get(name, name), f"{name} {show(value, unit, 3)}"
            pieces.append(Piece(start=at / most, end=(at + value) / most, tone=tone, tip=tip, half=half))
            at += value
    return Cell(bar=pieces, value=at)


def columns(*heads: str, numbers: Iterable[int] = (), bars: Iterable[int] = (), spare: Iterable[int] = ()) -> list[Column]:
    """Columns by their heads; those at these places are of numbers, of bars, or left out on a phone."""
    right, drawn, left_out = set(numbers), set(bars), set(spare)
    return [Column(head=head, kind="number" if i in right else "bar" if i in drawn else "text", needed=i not in left_out)
            for i, head in enumerate(heads)]  # fmt: skip


def visible(blocks: Iterable[Block], level: int, where: Only) -> list[Block]:
    """The blocks that a reader of this depth sees there."""
    return [_filled(block) for block in blocks if block.level <= level and block.only in ("", where)]


def _filled(block: Block) -> Block:
    """A table without columns that hold nothing."""
    if not isinstance(block, Table) or not block.rows:
        return block
    kept = [i for i in range(len(block.columns)) if not i or any(row[i].text or row[i].bar for row in block.rows)]
    return replace(block, columns=[block.columns[i] for i in kept], rows=[[row[i] for i in kept] for row in block.rows])
