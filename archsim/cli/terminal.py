"""Answers on a terminal: within its width, in colour, with bars. Into a pipe or a file goes the text as it is.

A table that is too wide is cut between columns, and each part repeats the first column; nothing is left out. Colour follows
`--color`, then NO_COLOR (https://no-color.org), then whether standard output is a terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import click

from archsim.base.errors import EXIT
from archsim.render.text import Screen

if TYPE_CHECKING:
    from rich.text import Text

    from archsim.render.blocks import Block

MODES = ("auto", "always", "never")
CHOSEN = "archsim.color"  # where click keeps the value of --color
BAR, NARROWEST = 10, 24  # width of a bar; least width of a cell whose text is folded
BARRED = ("share", "latency")  # heads of columns beside which bars stand; the first that a table has
TIMES = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
COLORS = {  # what limits, and what energy goes to -> style
    "dram": "blue", "compute": "green", "l2": "cyan", "latency": "magenta", "launch": "yellow", "host": "red", "host CPU": "red",
    "input": "red",    "power": "bright_red", "cache": "cyan", "clock": "yellow", "base": "bright_black", "none": "bright_black",
}  # fmt: skip
ALARMS = re.compile(r"\bNO\b|\bdoes not fit\b|\bcannot run\b|\bunstable\b|^warning\b.*")
GOOD = re.compile(r"\S+ \*(?= |$)")
_RULE = re.compile(r"-+(?:  -+)*\Z")
_LABEL = re.compile(r"(\S+(?: \S+){0,2}?)(\s{2,})(?=\S)")
_SHARE = re.compile(r"([a-z][\w ]*?) (\d+(?:\.\d+)?) %")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenColumn:
    """A column of a table: head and cells, and whether they are aligned on the left."""

    cells: tuple[str, ...]
    left: bool

    @property
    def width(self) -> int:
        """The longest cell."""
        return max(map(len, self.cells), default=0)


def color_option(command: click.Command) -> click.Command:
    """The command with the option `--color`."""
    if not any(parameter.name == "color" for parameter in command.params):
        command.params.append(click.Option(
            ["--color"], type=click.Choice(MODES), default=None, expose_value=False, callback=_choose,
            help="Colour on standard output: always, never, or auto (a terminal without NO_COLOR), which is usual."))  # fmt: skip
    return command


def _choose(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[CHOSEN] = value


def screen() -> Screen:
    """Standard output as it is now."""
    context = click.get_current_context(silent=True)
    mode = (context.meta.get(CHOSEN) if context else None) or "auto"
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return Screen(width=shutil.get_terminal_size().columns if terminal else None, blocks=encoding.startswith("utf"),
                  color=mode == "always" or (mode == "auto" and terminal and not plain))  # fmt: skip


def say(text: str, plain: bool = False) -> None:
    """Print the text of an answer; `plain`, as it is on any screen."""
    on = screen()
    if plain or (on.width is None and not on.color):
        click.echo(text)
    else:
        click.echo(laid_out(text, on), color=on.color)


def show_text(blocks: Sequence[Block], level: int = 0) -> None:
    """Print the blocks of an answer, as deep as is asked for."""
    from archsim.render.text import text_of

    on = screen()
    click.echo(text_of(blocks, level, on), color=on.color)


def note(text: str) -> None:
    """Say on standard error what is no part of an answer."""
    click.echo(f"archsim: {text}", err=True)


def missed(why: str = "") -> NoReturn:
    """Leave with the exit code of an unmet condition, after saying which."""
    if why:
        note(why)
    raise click.exceptions.Exit(EXIT["bound missed"])


def laid_out(text: str, on: Screen) -> str:
    """The text as a screen shows it: tables cut and lines folded to its width, with colours and bars."""
    lines, shown, i = text.split("\n"), list[str](), 0
    while i < len(lines):
        if i + 1 < len(lines) and _RULE.match(lines[i + 1]) and lines[i].strip():
            end = _end_of_table(lines, i)
            shown += _table(lines[i:end], on)
            i = end
        else:
            shown += _line(lines[i], on)
            i += 1
    return "\n".join(shown)


def _end_of_table(lines: Sequence[str], start: int) -> int:
    """The line after a table: the first that is empty or has text between the columns."""
    gaps = [(m.start(), m.end()) for m in re.finditer("  ", lines[start + 1])]
    end = start + 2
    while end < len(lines) and lines[end].strip() and not any(lines[end][a:b].strip() for a, b in gaps):
        end += 1
    return end


def _table(lines: Sequence[str], on: Screen) -> list[str]:
    rule = lines[1]
    spans = [(m.start(), m.end()) for m in re.finditer("-+", rule)]
    rows = [line for i, line in enumerate(lines) if i != 1]
    columns = [_column([row[a:b] if b < len(rule) else row[a:] for row in rows]) for a, b in spans]
    heads = [column.cells[0] for column in columns]
    barred = next((name for name in BARRED if name in heads), None)
    if barred and (on.width is None or not sum(c.width + 2 for c in columns) - 2 <= on.width < len(rule) + BAR + 2):
        columns.insert(heads.index(barred) + 1, _bars(columns[heads.index(barred)], on))
        heads = [column.cells[0] for column in columns]
    bound = next((heads.index(name) for name in ("bound", "limited by") if name in heads), None)
    shown: list[str] = []
    for part in _parts(columns, on.width):
        shown += ([""] if shown else []) + _drawn(part, columns[bound] if bound is not None else None, on)
    return shown


def _column(cells: Sequence[str]) -> ScreenColumn:
    """A column, aligned on the left if a cell begins at its edge and ends before the other one."""
    width = max(map(len, cells))
    left = all(not cell.startswith(" ") for cell in cells if cell.strip())
    short = any(len(cell.rstrip()) < width for cell in cells)
    return ScreenColumn(cells=tuple([cell.strip() for cell in cells]), left=left and short)


def _bars(shares: ScreenColumn, on: Screen) -> ScreenColumn:
    """Bars as long as the shares, the largest of them as long as can be."""
    numbers = [_number(cell) for cell in shares.cells]
    most = max([n for n in numbers if n is not None], default=0.0)
    sign = "█" if on.blocks else "#"
    bars = ["" if n is None or most <= 0 else sign * round(BAR * n / most) for n in numbers]
    return ScreenColumn(cells=tuple(bars), left=True)


def _number(cell: str) -> float | None:
    """A share, or a time in seconds."""
    found = re.match(r"(\d+(?:\.\d+)?) (%|[munp]?s\b)", cell)
    return None if found is None else float(found[1]) * TIMES.get(found[2], 1.0)


def _parts(columns: Sequence[ScreenColumn], width: int | None) -> list[list[ScreenColumn]]:
    """The columns in parts that fit the width; each begins with the first column, and a cell that is too long is folded."""
    if width is None or sum(c.width + 2 for c in columns) - 2 <= width:
        return [list(columns)]
    first, *rest = columns
    free = width - first.width
    parts: list[list[ScreenColumn]] = [[first]]
    for column in rest:
        used = sum(c.width + 2 for c in parts[-1][1:])
        room = free - used - 2
        if column.width > room and len(parts[-1]) > 1 and not (column.width > free - 2 and room >= NARROWEST):
            parts.append([first])
            room = free - 2
        parts[-1].append(column if column.width <= room else _folded(column, max(room, NARROWEST)))
    return parts


def _folded(column: ScreenColumn, width: int) -> ScreenColumn:
    """The column with lines of at most this width in its cells."""
    folded = ["\n".join(_wrapped(cell, width)) for cell in column.cells]
    return replace(column, cells=tuple(folded), left=True)


def _drawn(columns: Sequence[ScreenColumn], bound: ScreenColumn | None, on: Screen) -> list[str]:
    widths = [max(len(line) for cell in c.cells for line in cell.split("\n")) for c in columns]
    shown: list[str] = []
    for i in range(len(columns[0].cells)):
        cells = [c.cells[i].split("\n") for c in columns]
        for number in range(max(map(len, cells))):
            words = [lines[number] if number < len(lines) else "" for lines in cells]
            placed = [w.ljust(n) if c.left else w.rjust(n) for w, n, c in zip(words, widths, columns, strict=True)]
            line = "  ".join(placed).rstrip()
            shown.append(_colored(line, on, head=i == 0, bound="" if bound is None else bound.cells[i]))
        if i == 0:
            shown.append("  ".join("-" * n for n in widths))
    return shown


def _line(line: str, on: Screen) -> list[str]:
    """A line of prose, folded under the text of its label; a line of shares is followed by a bar of them."""
    label = _LABEL.match(line)
    if on.width is None or len(line) <= on.width:
        folded = [line]
    else:
        margin = label.end() if label and label.end() <= on.width // 2 else len(line) - len(line.lstrip()) + 2
        folded = _wrapped(line, on.width, margin, long_words=False)
    shown = [_colored(part, on, label=bool(label) and i == 0) for i, part in enumerate(folded or [""])]
    bar = _stacked(line, label.end(), on) if label and on.color else ""
    return [*shown, bar] if bar else shown


def _wrapped(text: str, width: int, margin: int = 0, long_words: bool = True) -> list[str]:
    """Lines of at most this width; a number stays with its sign."""
    kept = re.sub(r"(?<=\d) (?=%|[a-zA-Z]{1,3}/?s?(?:[\s,;)]|$))", "\u00a0", text)
    lines = textwrap.wrap(kept, width, subsequent_indent=" " * margin, break_long_words=long_words, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _stacked(line: str, margin: int, on: Screen) -> str:
    """One bar of all shares of a line, each in its colour."""
    shares = [(name.strip(), float(number)) for name, number in _SHARE.findall(line)]
    if len(shares) < 2 or not all(name in COLORS for name, _ in shares):
        return ""
    from rich.text import Text

    length = min(50, (on.width or 80) - margin)
    whole = sum(number for _, number in shares)
    found, ends = Text(" " * margin), 0.0
    for name, number in shares:
        begin, ends = ends, ends + number
        found.append(("█" if on.blocks else "#") * (round(length * ends / whole) - round(length * begin / whole)), COLORS[name])
    return _escaped(found)


def _colored(line: str, on: Screen, head: bool = False, label: bool = False, bound: str = "") -> str:
    if not on.color or not line:
        return line
    from rich.text import Text

    found = Text(line)
    if head:
        found.stylize("bold")
    if label and (match := _LABEL.match(line)):
        found.stylize("dim" if match[1] == "assumed" else "bold", 0, match.end(1) if match[1] != "assumed" else len(line))
    for name in (bound,) if bound in COLORS else ():
        found.highlight_regex(rf"(?<!\w){re.escape(name)}(?!\w)|[█#]+", COLORS[name])
    found.highlight_regex(ALARMS, "bold red")
    found.highlight_regex(GOOD, "bold green")
    return _escaped(found)


def _escaped(text: Text) -> str:
    """The text with its escape sequences."""
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=10_000, no_color=False,
                      legacy_windows=False, highlight=False, markup=False, emoji=False)  # fmt: skip
    with console.capture() as capture:
        console.print(text, end="", soft_wrap=True)
    return capture.get()
