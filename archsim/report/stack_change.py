"""Two stacks side by side, as text and on a page: what each difference saves, with its source, and the layers."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.report.markup import TableCell, number, percent, table, text, words
from archsim.report.palette import SERIES
from archsim.report.text import clean, longest
from archsim.report.text import table as text_table
from archsim.study.stack_change import LayerChange, StackChange

MOST = 15  # layers without --layers
LONGEST = 60  # characters of the ops that share a kernel


def stack_change_text(c: StackChange, every: bool = False) -> str:
    """The steps from one stack to the other, then the layers: all of them, or those whose time changes most."""
    numbers: dict[str, int] = {}
    rows = []
    for step in c.steps:
        marks = "".join(f"[{numbers.setdefault(source, len(numbers) + 1)}]" for source in step.sources)
        rows.append((step.title, show(step.latency_s, "s", 3), _saved(step.saved_s, c.before_s), ", ".join(step.keys), marks))
    was, now = show(c.before_s, "s", 3), show(c.after_s, "s", 3)
    parts = [f"{clean(c.network)} on {clean(c.hardware)}, from {clean(c.before)} ({was}) to {clean(c.after)} ({now}, "
             f"{c.before_s / c.after_s:.2f}x as fast):"]  # fmt: skip
    if rows:
        head = ("what changes, one after the other", "latency", "saved", "keys of the stack", "source")
        parts.append(text_table(head, rows, left=1))
    else:
        parts.append("no value differs that changes a time")
    if c.fp32_s is not None:
        mark = f" [{numbers.setdefault(c.tf32_source, len(numbers) + 1)}]" if c.tf32_source else ""
        parts.append(f"tf32: with every product in fp32 {clean(c.before)} takes {show(c.fp32_s, 's', 3)}, "
                     f"{c.fp32_s / c.before_s:.2f} times as long{mark}")  # fmt: skip
    shown = c.layers if every else changed_most(c)
    lines = [_line(one) for one in shown]
    left = len(c.layers) - len(shown)
    parts.append(text_table(("kernel of", "with", "kind", "before", "after", "saved"), lines, left=3)
                 + (f"\n{left} more change less; --layers prints all" if left else ""))  # fmt: skip
    if numbers:
        parts.append("\n".join(["Sources", *(clean(f"  [{number}] {source}") for source, number in numbers.items())]))
    return "\n\n".join(parts)


def changed_most(c: StackChange) -> Sequence[LayerChange]:
    """The layers whose time changes most, in the order of the network."""
    return longest(c.layers, MOST, lambda one: abs(one.before_s - one.after_s))


def _line(one: LayerChange) -> tuple[str, ...]:
    fused = ", ".join(one.fused)
    fused = fused if len(fused) <= LONGEST else f"{fused[:LONGEST]}..."
    saved = show(one.before_s - one.after_s, "s", 3)
    return clean(one.layer), clean(fused), one.kind, show(one.before_s, "s", 3), show(one.after_s, "s", 3), saved


def _saved(saved_s: float, whole_s: float) -> str:
    return f"{show(saved_s, 's', 3)} ({100 * saved_s / whole_s:+.1f} %)"


LAYERS = ("kernel of", "with", "kind", "before", "after", "saved", "")
NOTE = 'Bars have one scale: above the first stack, below the second one. Ops under "with" share the kernel of the second stack.'


def stack_change_section(c: StackChange) -> str:
    """The groups of values that change one after the other, then the layers that change most; the others are folded."""
    numbers: dict[str, int] = {}
    rows = []
    for step in c.steps:
        marks = ", ".join(str(numbers.setdefault(source, len(numbers) + 1)) for source in step.sources)
        rows.append((words(step.title), number(step.latency_s, "s"), number(step.saved_s, "s"),
                     percent(step.saved_s / c.before_s, "+.1f"), words(", ".join(step.keys)), words(marks)))  # fmt: skip
    head = ("what changes, one after the other", "latency", "saved", "of the first", "keys of the stack", "source")
    steps = table(head, rows) if rows else '<p class="quiet">No value differs that changes a time.</p>'
    was, now = show(c.before_s, "s", 3), show(c.after_s, "s", 3)
    first = f"{was} with {c.before}, {now} with {c.after}: {c.before_s / c.after_s:.2f} times as fast."
    parts = [f"<h2>{text(f'From {c.before} to {c.after}, layer by layer')}</h2>", _quiet(first), steps]
    if c.fp32_s is not None:
        mark = f" (source {numbers.setdefault(c.tf32_source, len(numbers) + 1)})" if c.tf32_source else ""
        parts.append(_quiet(f"With every product in fp32 in place of tf32 {c.before} takes {show(c.fp32_s, 's', 3)}, "
                            f"{c.fp32_s / c.before_s:.2f} times as long{mark}."))  # fmt: skip
    return "\n".join([*parts, _layers(c), _sources(list(numbers))])


def _layers(c: StackChange) -> str:
    """Those that change most in sight, all others folded; bars of both tables have one scale."""
    longest = max((max(one.before_s, one.after_s) for one in c.layers), default=0.0) or 1.0
    most = changed_most(c)
    rest = [one for one in c.layers if one not in most]
    shown = f"{_quiet(NOTE)}\n{table(LAYERS, [_row(one, longest) for one in most])}"
    if not rest:
        return shown
    body = table(LAYERS, [_row(one, longest) for one in rest])
    return f"{shown}\n<details><summary>{len(rest)} more, which change less</summary>\n{body}\n</details>"


def _row(one: LayerChange, longest: float) -> tuple[TableCell, ...]:
    bars = "".join(
        f'<div class="bar"><i style="width:{100 * time / longest:.2f}%;background:{colour}"></i></div>'
        for time, colour in zip((one.before_s, one.after_s), SERIES, strict=False)
    )
    return (words(one.layer), words(", ".join(one.fused)), words(one.kind), number(one.before_s, "s"), number(one.after_s, "s"),
            number(one.before_s - one.after_s, "s"), TableCell(body=bars))  # fmt: skip


def _sources(listed: list[str]) -> str:
    items = "".join(f"<li>{text(source)}</li>" for source in listed)
    return f"<h3>Sources</h3>\n<ol>{items}</ol>" if listed else ""


def _quiet(note: str) -> str:
    return f'<p class="quiet">{text(note)}</p>'
