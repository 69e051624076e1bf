"""Before and after as a self-contained HTML page."""

from __future__ import annotations

from archsim.estimation.result import OpEstimate
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.layers import MOST
from archsim.report.markup import TableCell, bound_cell, items, number, table, text, valued, words
from archsim.report.study_figures import before_after
from archsim.report.text import longest
from archsim.report.whatif import dies_text, followed_text, heading, moves_text, notes_of, quantity, ratio_text, seconds
from archsim.study.whatif import TOTALS, Change


def whatif_page(c: Change) -> str:
    """The whole page."""
    asked, _ = heading(c).split("\n")
    title = f"What if: {', '.join(c.written)}"
    chart = figures.embed(before_after(longest(c.ops, MOST, seconds)), "ops")
    sections = [
        f'<h1>{text(title)}</h1>\n<p class="asked">{text(asked)}</p>',
        *(f'<p class="quiet">{text(line)}</p>' for line in followed_text(c).splitlines()),
        '<p class="warn">No output of this network on this device depends on the change.</p>' if c.idle else "",
        *(f'<p class="warn">{text(line)}</p>' for line in notes_of(c)),
        _cards(c),
        _dies(c),
        f"<h2>What changed its limit</h2>\n{items(moves_text(c).splitlines())}",
        f'<h2>Layer by layer</h2>\n<p class="quiet">Before (pale) above after, coloured by what limits each.</p>\n{chart}',
        f'<h2>Layers</h2>\n<div class="scroll">\n{layer_table(c)}\n</div>',
    ]
    return document(title, sections, figures.library())


def _cards(c: Change) -> str:
    boxes = []
    for name, title, unit in TOTALS[:6]:
        b, a = getattr(c.before, name), getattr(c.after, name)
        note = f"{quantity(b, unit, name, c.before)} before"
        value = f"{quantity(a, unit, name, c.after)} ({ratio_text(c.ratios.get(name))})"
        boxes.append(f'<div><dt>{text(title)}</dt><dd class="big">{text(value)}</dd><dd class="note">{text(note)}</dd></div>')
    return '<dl class="cards">\n' + "\n".join(boxes) + "\n</dl>"


def _dies(c: Change) -> str:
    if c.dies is None:
        return ""
    return f"<h2>Die</h2>\n{items(dies_text(c).splitlines())}"


def layer_table(c: Change) -> str:
    """Every layer before and after."""
    rows = []
    for op in c.ops:
        ratio = valued(ratio_text(op.ratio), op.ratio or 0.0)
        limits, times = (_bound(op.before), _bound(op.after)), (_time(op.before), _time(op.after))
        rows.append((words(op.name), words(op.kind), *limits, *times, ratio))
    return table(("layer", "kind", "limit before", "limit after", "before", "after", "time"), rows)


def _bound(op: OpEstimate | None) -> TableCell:
    if op is None:
        return words("")
    return bound_cell(op.bound)


def _time(op: OpEstimate | None) -> TableCell:
    return number(op.time_s, "s") if op is not None else TableCell(body="", style="num")
