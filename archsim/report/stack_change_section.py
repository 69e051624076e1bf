"""Two stacks side by side as a section of a page: what each difference saves, with its source, and the layers."""

from __future__ import annotations

from archsim.base.units import show
from archsim.report.markup import TableCell, number, percent, table, text, words
from archsim.report.palette import SERIES
from archsim.report.stack_change import changed_most
from archsim.study.stack_change import LayerChange, StackChange

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
