"""Answers as text: aligned in a pipe, within the width of a terminal, there with colours.

The head of a table's first column is the title; its rows stand two spaces in. A table wider than the screen leaves out its bars,
then is cut between columns, and each part repeats the first one: nothing is lost.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from archsim.render.blocks import Block, Cell, Chart, Column, Facts, Note, Table, Verdict, visible

BAR, MARKED, GAP, INDENT = 10, 20, 2, "  "  # widths of a bar, of one with signs, between columns
NARROWEST = 24  # of a value beside its name; narrower ones stand below it
STYLES = {  # colour codes; those of bounds stand here too, so that an option that is completed imports no model
    "bold": "1", "dim": "2", "bad": "1;31", "good": "1;32", "quiet": "2", "warning": "1;31",
    "dram": "34", "compute": "32", "l1": "36", "l2": "36", "latency": "35", "launch": "33", "host": "31", "input": "31",
    "power": "91", "none": "90",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Where text goes: its width, None where nobody sees the lines; whether it shows colours, and block signs."""

    width: int | None = None
    color: bool = False
    blocks: bool = True


PIPE = Screen()


def text_of(blocks: Iterable[Block], level: int = 0, on: Screen = PIPE) -> str:
    """The blocks of an answer as text, a line between them."""
    parts = [_written(_shortened(block, level), on) for block in visible(blocks, level, "text")]
    return "\n\n".join(part for part in parts if part)


def clean(text: str) -> str:
    """Text without control characters, so that a name from a file cannot move the cursor.

    >>> clean("a" + chr(27) + "[2Jb")
    'a?[2Jb'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def _shortened(block: Block, level: int) -> Block:
    """A long table on the first screen: some of its rows, and how many more there are."""
    if not isinstance(block, Table) or not block.first or level > 1 or len(block.first) >= len(block.rows):
        return block
    more = f"{len(block.rows) - len(block.first):,} more: --all"
    return replace(block, rows=[block.rows[i] for i in block.first], notes=[more, *block.notes])


def _written(block: Block, on: Screen) -> str:
    match block:
        case Verdict():
            return "\n".join(_verdict(block, on))
        case Facts():
            return "\n".join(_facts(block, on))
        case Table():
            return "\n".join(_table(block, on))
        case Note():
            label = "warning: " if block.tone == "warning" else ""
            return "\n".join(part for line in block.text.splitlines() for part in _folded(label + line, on, style=block.tone))
        case Chart():
            return ""


def _verdict(v: Verdict, on: Screen) -> list[str]:
    title = _folded(" · ".join([v.title, *v.asked]), on, style="bold")
    lines = [[Cell(text=cell) for cell in line] for line in v.lines]
    widths = [max((len(line[i].text) for line in lines), default=0) for i in range(3)]
    if on.width is not None and sum(widths) + 3 * GAP + len(INDENT) > on.width:
        body = [part for line in v.lines for part in _folded(", ".join(filter(None, line)), on, INDENT)]
    else:
        body = [_row(line, widths, [False] * 3, on, first="bold") for line in lines]
    return [*title, *([""] if lines else []), *body, *([""] if v.sentences else []),
            *(part for sentence in v.sentences for part in _folded(sentence, on))]  # fmt: skip


def _facts(f: Facts, on: Screen) -> list[str]:
    rows = [(name, value) for name, value in f.rows if value not in ("", [], ())]
    width = max((len(clean(name)) for name, _ in rows), default=0)
    lead, found = INDENT if f.title else "", _folded(f.title, on, style="bold") if f.title else []
    for name, value in rows:
        cells = [value] if isinstance(value, str | Cell) else list(value)
        margin = len(lead) + width + GAP
        below = on.width is not None and margin + NARROWEST > on.width
        margin = len(lead) + GAP if below else margin
        found += [lead + line for line in _folded(name, on, "", len(lead), "bold")] if below else []
        for i, cell in enumerate(cells):
            said, tone = (cell, "") if isinstance(cell, str) else (cell.text, cell.tone)
            label = clean(name) if not i and not below else ""
            first, *rest = _folded(said, on, "", margin, tone) or [""]
            pad = " " * (margin - len(lead) - len(label))
            found.append(f"{lead}{_styled(label, 'bold', on)}{pad}{first}".rstrip())
            found += [" " * margin + line for line in rest]
    return found if rows else []


def _table(t: Table, on: Screen) -> list[str]:
    notes = [line for note in t.notes for line in _folded(note, on)]
    if not t.rows:
        return notes
    columns, rows = t.columns, t.rows
    if on.width is not None and _width(columns, rows, on) > on.width:
        kept = [i for i, column in enumerate(columns) if column.kind != "bar"]
        columns, rows = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
    head = [_heads(columns, t.title)]
    body = [line for part in _parts(columns, rows, on, head[0]) for line in ([""] if part[0] else []) + part[1]]
    return [*body, *notes]


def _heads(columns: Sequence[Column], title: str) -> list[str]:
    first = clean(title or columns[0].head)
    return [first, *(clean(column.head) for column in columns[1:])]


def _shown(cell: Cell, column: Column, on: Screen) -> str:
    if column.kind == "bar" and cell.bar:
        filled, signs = [p for p in cell.bar if not p.sign and p.half != "upper"], [p for p in cell.bar if p.sign]
        width = MARKED if signs else BAR
        begin, end = (round(width * pick(ends, default=0.0)) for pick, ends in
                      ((min, [p.start for p in filled]), (max, [p.end for p in filled])))  # fmt: skip
        line = list(" " * begin + ("-" if signs else "█" if on.blocks else "#") * max(end - begin, 0))
        for piece in signs:
            place = min(int(width * piece.end), width - 1)
            line += " " * (place + 1 - len(line))
            line[place] = piece.sign
        return "".join(line)
    return clean(cell.text)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], on: Screen, heads: Sequence[str]) -> list[int]:
    """Columns as wide as their widest cell; a long title does not widen the first one, over which it may reach."""
    found = []
    for i, column in enumerate(columns):
        cells = max((len(_shown(row[i], column, on)) for row in rows), default=0)
        found.append(max(cells, BAR if column.kind == "bar" else len(heads[i])))
    found[0] = max(max((len(_shown(row[0], columns[0], on)) for row in rows), default=0), len(heads[0]) - len(INDENT))
    return found


def _width(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], on: Screen) -> int:
    widths = _widths(columns, rows, on, _heads(columns, ""))
    return len(INDENT) + sum(widths) + GAP * (len(widths) - 1)


def _parts(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], on: Screen, heads: Sequence[str]
) -> list[tuple[bool, list[str]]]:
    """The lines of a table in parts that fit the screen, and whether one follows another."""
    natural = widths = _widths(columns, rows, on, heads)
    if on.width is not None:
        room = on.width - len(INDENT) - GAP
        first = min(widths[0], room - min(max(widths[1:], default=0), room // 2))
        widths = [first, *(min(width, room - first) for width in widths[1:])]
    groups, used = [[0]], len(INDENT) + widths[0]
    for i in range(1, len(columns)):
        if on.width is not None and used + GAP + widths[i] > on.width and len(groups[-1]) > 1:
            room = on.width - used - GAP
            if widths[i] < natural[i] and room >= NARROWEST:  # folded anyway
                widths[i] = room
            else:
                groups.append([0])
                used = len(INDENT) + widths[0]
        groups[-1].append(i)
        used += GAP + widths[i]
    return [(place > 0, _lines(columns, rows, on, heads, widths, group)) for place, group in enumerate(groups)]


def _lines(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], on: Screen, heads: Sequence[str], widths: Sequence[int],
    group: Sequence[int],
) -> list[str]:  # fmt: skip
    own = [widths[i] for i in group]
    right = [columns[i].kind == "number" for i in group]
    found = []
    for line in _folded_cells([heads[i] for i in group], [own[0] + len(INDENT), *own[1:]]):
        first, *rest = [(text.rjust if flag else text.ljust)(width) for text, width, flag in zip(line, own, right, strict=True)]
        found.append(_styled((" " * GAP).join([first.ljust(own[0] + len(INDENT)), *rest]).rstrip(), "bold", on))
    for row in rows:
        cells = [row[i] for i in group]
        for line in _folded_cells([_shown(cell, columns[i], on) for cell, i in zip(cells, group, strict=True)], own):
            told = [Cell(text=text, tone=cell.tone or _tone(cell)) for text, cell in zip(line, cells, strict=True)]
            found.append(_row(told, own, right, on))
    return found


def _folded_cells(texts: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    """The lines of a row, of which each cell is folded to its width."""
    parts = [textwrap.wrap(text, width, break_on_hyphens=False) if len(text) > width else [text]
             for text, width in zip(texts, widths, strict=True)]  # fmt: skip
    for line in zip_longest(*parts, fillvalue=""):
        yield list(line)


def _tone(cell: Cell) -> str:
    """The colour of a bar in one colour: that of its largest part."""
    longest = max(cell.bar, key=lambda piece: piece.end - piece.start, default=None)
    return "" if longest is None else longest.tone


def _row(cells: Sequence[Cell], widths: Sequence[int], right: Sequence[bool], on: Screen, first: str = "") -> str:
    parts = []
    for i, (cell, width, flag) in enumerate(zip(cells, widths, right, strict=True)):
        plain = clean(cell.text)
        pad = " " * (width - len(plain))
        said = _styled(plain, first if first and not i else cell.tone, on)
        parts.append(f"{pad}{said}" if flag else f"{said}{pad}")
    return (INDENT + (" " * GAP).join(parts)).rstrip()


def _folded(text: str, on: Screen, lead: str = "", margin: int = 0, style: str = "") -> list[str]:
    """Lines that fit the screen, a number beside its sign; as it is where nobody sees the lines."""
    plain = lead + clean(text)
    if on.width is None or len(plain) + margin <= on.width:
        return [_styled(plain, style, on)] if plain else []
    kept = re.sub(r"(?<=\d) (?=%|[a-zA-Z]{1,3}/?s?(?:[\s,;)]|$))", "\u00a0", plain)
    lines = textwrap.wrap(kept, max(on.width - margin, NARROWEST), subsequent_indent=lead, initial_indent="",
                          break_on_hyphens=False)  # fmt: skip
    return [_styled(line.replace("\u00a0", " "), style, on) for line in lines]


def _styled(text: str, style: str, on: Screen) -> str:
    code = STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if on.color and code and text.strip() else text
