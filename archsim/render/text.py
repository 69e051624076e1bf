"""Answers as text: aligned in a pipe, within the width of a terminal, there with colours; rows as CSV for a spreadsheet.

The head of a table's first column is the title; its rows stand two spaces in. A table wider than the screen leaves out its bars,
then is cut between columns, and each part repeats the first one: nothing is lost.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from archsim.render.blocks import Block, Cell, Chart, Column, Facts, Note, Table, Verdict, visible

BAR, MARKED, GAP, INDENT = 10, 20, 2, "  "  # widths of a bar, of one with signs, between columns
ENDLESS = 1 << 20  # of a line that nobody sees
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
    lines = [[Cell(text=cell, tone="" if i else "bold") for i, cell in enumerate(line)] for line in v.lines]
    widths = [max((len(clean(line[i].text)) for line in lines), default=0) for i in range(3)]
    if on.width is not None and sum(widths) + 3 * GAP + len(INDENT) > on.width:
        body = [part for line in v.lines for part in _folded(", ".join(filter(None, line)), on, INDENT)]
    else:
        body = [part for line in lines for part in _row(line, widths, on)]
    return [*_folded(" · ".join([v.title, *v.asked]), on, style="bold"), *([""] if lines else []), *body,
            *([""] if v.sentences else []), *(part for sentence in v.sentences for part in _folded(sentence, on))]  # fmt: skip


def _facts(f: Facts, on: Screen) -> list[str]:
    rows = [(name, [value] if isinstance(value, str | Cell) else value) for name, value in f.rows if value not in ("", [], ())]
    lead, width = INDENT if f.title else "", max((len(clean(name)) for name, _ in rows), default=0)
    found = _folded(f.title, on, style="bold") if rows else []
    room = (ENDLESS if on.width is None else on.width) - len(lead) - GAP
    below = room - width < NARROWEST  # names have lines of their own
    widths = [0, room] if below else [width, room - width]
    for name, values in rows:
        found += [lead + line for line in _folded(name, on, margin=len(lead), style="bold")] if below else []
        labels = ["" if below else name, *[""] * len(values)]
        for label, one in zip(labels, values, strict=False):
            said = Cell(text=one) if isinstance(one, str) else one
            found += _row([Cell(text=label, tone="bold"), said], widths, on, lead=lead)
    return found


def _table(t: Table, on: Screen) -> list[str]:
    """A table in as many parts as the screen needs."""
    notes = [line for note in t.notes for line in _folded(note, on)]
    if not t.rows:
        return notes
    heads = [clean(head) for head in (t.title or t.columns[0].head, *(column.head for column in t.columns[1:]))]
    rows = [[replace(cell, text=_shown(cell, column, on)) for cell, column in zip(row, t.columns, strict=True)] for row in t.rows]
    cells = [max(len(row[i].text) for row in rows) for i in range(len(heads))]
    widths = [max(cells[0], len(heads[0]) - len(INDENT)),  # over the indent the title may reach
              *(max(cell, BAR if column.kind == "bar" else len(head))
                for cell, column, head in zip(cells[1:], t.columns[1:], heads[1:], strict=True))]  # fmt: skip
    kept = [i for i, column in enumerate(t.columns) if column.kind != "bar"]
    whole = max(cells[0] + len(INDENT), len(t.columns[0].head)) + sum(widths[1:]) + GAP * (len(widths) - 1)  # but for the title
    if on.width is not None and whole > on.width and len(kept) < len(widths):
        fewer = [[row[i] for i in kept] for row in t.rows]
        return _table(replace(t, columns=[t.columns[i] for i in kept], rows=fewer), on)
    found: list[str] = []
    widths, groups = _groups(widths, on)
    for group in groups:
        own, right = [widths[i] for i in group], {place for place, i in enumerate(group) if t.columns[i].kind == "number"}
        titles = [Cell(text=heads[i], tone="bold") for i in group]
        found += [*([""] if found else []), *_row(titles, [own[0] + len(INDENT), *own[1:]], on, right, lead="")]
        found += [line for row in rows for line in _row([row[i] for i in group], own, on, right)]
    return [*found, *notes]


def _shown(cell: Cell, column: Column, on: Screen) -> str:
    if column.kind != "bar" or not cell.bar:
        return clean(cell.text)
    filled, signs = [p for p in cell.bar if not p.sign and p.half != "upper"], [p for p in cell.bar if p.sign]
    width = MARKED if signs else BAR
    begin = round(width * min((p.start for p in filled), default=0.0))
    end = round(width * max((p.end for p in filled), default=0.0))
    line = list(" " * begin + ("-" if signs else "█" if on.blocks else "#") * max(end - begin, 0))
    for piece in signs:
        place = min(int(width * piece.end), width - 1)
        line += " " * (place + 1 - len(line))
        line[place] = piece.sign
    return "".join(line)


def _groups(natural: Sequence[int], on: Screen) -> tuple[list[int], list[list[int]]]:
    """Widths of the columns that fit the screen, and which of them stand in each part; the first one stands in all."""
    widths, every = list(natural), range(1, len(natural))
    if on.width is None:
        return widths, [[0, *every]]
    room = on.width - len(INDENT) - GAP
    widths[0] = min(widths[0], room - min(max(widths[1:], default=0), room // 2))
    widths[1:] = [min(width, room - widths[0]) for width in widths[1:]]
    groups, left = [[0]], room - widths[0]
    for i in every:
        if widths[i] > left and len(groups[-1]) > 1:
            if widths[i] < natural[i] and left >= NARROWEST:  # folded anyway
                widths[i] = left
            else:
                groups.append([0])
                left = room - widths[0]
        groups[-1].append(i)
        left -= GAP + widths[i]
    return widths, groups


def _row(
    cells: Sequence[Cell], widths: Sequence[int], on: Screen, right: Collection[int] = (), lead: str = INDENT
) -> Iterator[str]:
    """The lines of a row, of which each cell is folded to its width."""
    last, parts = len(cells) - 1, [_wrapped(cell.text, width) for cell, width in zip(cells, widths, strict=True)]
    for line in zip_longest(*parts, fillvalue=""):
        said = [_styled(text.rjust(width) if i in right else text.ljust(width * (i < last)), cell.tone or _tone(cell), on)
                for i, (text, cell, width) in enumerate(zip(line, cells, widths, strict=True))]  # fmt: skip
        yield (lead + (" " * GAP).join(said)).rstrip()


def _tone(cell: Cell) -> str:
    """The colour of a bar in one colour: that of its largest part."""
    longest = max(cell.bar, key=lambda piece: piece.end - piece.start, default=None)
    return "" if longest is None else longest.tone


def _folded(text: str, on: Screen, lead: str = "", margin: int = 0, style: str = "") -> list[str]:
    """Lines that fit the screen; as it is where nobody sees the lines."""
    width = ENDLESS if on.width is None else max(on.width - margin, NARROWEST)
    return [_styled(line, style, on) for line in _wrapped(lead + text, width, lead)] if text else []


def _wrapped(text: str, width: int, lead: str = "") -> list[str]:
    """Lines of a width, a number beside its sign."""
    plain = clean(text)
    if len(plain) <= width:
        return [plain]
    kept = re.sub(r"(?<=\d) (?=%|[a-zA-Z]{1,3}/?s?(?:[\s,;)]|$))", "\u00a0", plain)
    lines = textwrap.wrap(kept, width, subsequent_indent=lead, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _styled(text: str, style: str, on: Screen) -> str:
    """Coloured words; the room around them is not."""
    code, words = STYLES.get(style), text.strip()
    return text.replace(words, f"\x1b[{code}m{words}\x1b[0m") if on.color and code and words else text


# ------------------------------------------------------------------------------------------------------------------ CSV

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")  # rounded, and so a text

def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    r"""CSV with `\n` line ends; text that a spreadsheet would run as a formula is escaped."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return buffer.getvalue()


def records_csv(records: Iterable[Mapping[str, Any]], every: Mapping[str, Any] | None = None) -> str:
    """CSV of the numbers and texts of records, one row each, behind those that `every` row has; "" without records.

    Tables in a record are columns NAME.KEY, lists are left out.
    """
    rows = [_flat({**(every or {}), **record}) for record in records]
    head = tuple(dict.fromkeys(name for row in rows for name in row))
    return csv_lines([head, *([row.get(name) for name in head] for row in rows)]) if rows else ""


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif not isinstance(value, list | tuple):
            found[f"{before}{name}"] = value
    return found


def _harmless(cell: Any) -> Any:
    risky = isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell
