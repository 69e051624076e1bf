"""Whether two outputs have the same form: what a page shows, and what its command prints now.

Compared are blocks, as blank lines part them, each with the one in its place. Words have to agree, and so do numbers inside of
words (`conv1`, `gtx_1080`, `fp32`, `1x96x55x55`, `51.2GB/s`). Left out is what follows from the values of constants:

- numbers: any other of the same unit will do, whatever its digits, sign and prefix; so will `N to M` and `above N`
- padding, and with it the length of a ruler
- the order of the rows of a table: its header is compared as it stands, and each column holds the same words as often, in
  whatever rows, and numbers of the same units. Rows of numbers alone may so be more or fewer. `-`, `yes`, `no` and nothing
  stand for a number; where a column holds bounds, others may stand
- the order of the other lines of a block
- how many items of a list in a line differ only in numbers; which bound stands after `by`, and which ones beside their shares
- which layers went from one side of the roofline to another; whether a change is `uncertain`; the picture of a pipeline; digests

A sentence that names another winner is another sentence: then the page has to be regenerated.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import zip_longest

from archsim.base.units import BINARY, PREFIXES, UNITS
from archsim.cost.bounds import BOUNDS

_SCALED = "|".join(sorted((unit for unit, scales in UNITS.items() if any(scales)), key=len, reverse=True))
_UNIT = rf" (?:{'|'.join(name for name in (*PREFIXES, *BINARY) if name)})?(?P<unit>{_SCALED})(?![\w/])"
_BOUND = rf"(?<![\w.-])(?:{'|'.join(BOUNDS)})(?![\w.-])"
_SIDE = "|".join({row.side for row in BOUNDS.values()})

NUMBER = re.compile(rf"(?<![^\s(\[])[+-]?\d+(?:,\d{{3}})*(?:\.\d+)?(?:e[+-]?\d+)?(?P<times>x)?(?:{_UNIT})?(?=[),.;:\]]*(?:\s|$))")
RULER = re.compile(r" *-[ -]*")
GAPS = re.compile(r"\s{2,}|[,;] ")
NUMERIC = re.compile(r"Nx?(?!\w)")  # the beginning of a shape
WORDLESS = {"", "-", "yes", "no"}  # cells of a column of numbers, or that numbers decide
SHARES = {"<bound> N %", "<bound> (N %)"}
PATTERNS = (
    (re.compile(r"\b[0-9a-f]{16}\b"), "<digest>"),
    (re.compile(r"(?<=\s)\.*D[=eE-]*R$"), "<picture>"),
    (NUMBER, lambda number: " ".join(filter(None, ("Nx" if number["times"] else "N", number["unit"])))),
    (re.compile(r"\bN to N\b|\babove N\b"), "N"),
    (re.compile(rf"{_BOUND}(?= N %(?! \()|: N %| \(N %)|(?<=\bby ){_BOUND}"), "<bound>"),
    (re.compile(rf"^(?:{_SIDE}) to (?:{_SIDE}): .+"), ""),
    (re.compile(r", uncertain\)"), ")"),
)


def differences(shown: str, printed: str) -> list[str]:
    """What only one of two outputs has, block by block; nothing if they have the same form."""
    found = []
    forms = (filter(None, map(form, blocks(text))) for text in (shown, printed))
    for before, now in zip_longest(*forms, fillvalue=Counter()):
        found += [f"only shown: {fact}" for fact in before - now] + [f"only printed: {fact}" for fact in now - before]
    return found


def blocks(text: str) -> list[str]:
    """What blank lines part."""
    return re.split(r"\n(?:[ \t]*\n)+", text.strip("\n"))


def form(block: str) -> Counter[str]:
    """The shapes of the lines of a block, the header of its table, and the words and units of each column."""
    lines = block.splitlines()
    ruler = next((place for place, line in enumerate(lines) if place and RULER.fullmatch(line)), None)
    if ruler is None:
        return _lines(lines)
    spans = [column.span() for column in re.finditer("-+", lines[ruler])]
    rows = [_cells(line, spans) for line in lines[ruler + 1 :]]
    end = rows.index([]) if [] in rows else len(rows)
    head = _cells(lines[ruler - 1], spans)
    found = _lines([*lines[: ruler - 1], *lines[ruler + 1 + end :]]) + Counter([f"columns {' | '.join(map(shape, head))}"])
    for name, column in zip(head, zip(*rows[:end], strict=True), strict=False):
        found += _words(shape(name), column)
    return found


def _lines(lines: list[str]) -> Counter[str]:
    return Counter(filter(None, map(shape, lines)))


@cache
def shape(line: str) -> str:
    """A line with a pattern for each number, and of items that then are the same only one.

    >>> shape("batches   1: 9.92 ms, 4: 15.6 ms of conv1")
    'batches  N: N s  N: N s of conv1'
    """
    for pattern, instead in PATTERNS:
        line = pattern.sub(instead, line.strip())
    return "  ".join(item for item in dict.fromkeys(GAPS.split(line)) if item not in SHARES)


def _cells(line: str, spans: list[tuple[int, int]]) -> list[str]:
    """The cells of a line, without their padding; none if it is no row of these columns."""
    gaps = zip((0, *(end for _, end in spans)), (*(start for start, _ in spans), len(line)), strict=True)
    return [] if any(line[start:end].strip() for start, end in gaps) else [line[start:end].strip() for start, end in spans]


def _words(name: str, column: tuple[str, ...]) -> Counter[str]:
    """What a column holds: the units of its numbers, and its words as often as they come."""
    if BOUNDS.keys() >= set(column):
        return Counter({f"column {name}: bounds": 1})
    cells = [cell for cell in map(shape, column) if cell not in WORDLESS]
    numbers = set(filter(NUMERIC.match, cells))
    return Counter(f"column {name}: {cell}" for cell in [*numbers, *(cell for cell in cells if cell not in numbers)])
