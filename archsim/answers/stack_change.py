"""What changes from one stack to another: what each difference saves, with its source, and which layers."""

from __future__ import annotations

from archsim.base.units import show
from archsim.render.blocks import Block, Cell, Facts, Table, columns, number, percent, stacked, words
from archsim.study.stack_change import StackChange

TONES = {"before": "0", "after": "1"}


def change_blocks(c: StackChange) -> list[Block]:
    """The steps from one stack to the other, then every layer, then keys and sources of each step."""
    rows = [[words(one.title), number(one.latency_s, "s"), number(one.saved_s, "s"), percent(one.saved_s / c.before_s, "+.1f")]
            for one in c.steps]  # fmt: skip
    was, now = show(c.before_s, "s", 3), show(c.after_s, "s", 3)
    notes = [f"One after the other, from {c.before} ({was}) to {c.after} ({now}), {c.before_s / c.after_s:.2f} times as fast."]
    notes += [] if rows else ["No value differs that changes a time."]
    if c.fp32_s is not None:
        notes.append(f"With every product in fp32 in place of tf32 {c.before} takes {show(c.fp32_s, 's', 3)}, "
                     f"{c.fp32_s / c.before_s:.2f} times as long.")  # fmt: skip
    title = f"From {c.before} to {c.after}"
    sources = [(step.title, [f"keys of the stack: {', '.join(step.keys)}", *step.sources]) for step in c.steps]
    return [
        Table(title=title, columns=columns("", "latency", "saved", "of the first", numbers=(1, 2, 3)), rows=rows, notes=notes),
        _layers(c, f"{title}, layer by layer"),
        Facts(title="Sources of what changes", rows=[*sources, ("tf32", c.tf32_source if c.fp32_s else "")], level=2),
    ]


def _layers(c: StackChange, title: str) -> Table:
    """Every kernel of the second stack, what takes part in it, and both times as bars of one scale."""
    most = max((max(one.before_s, one.after_s) for one in c.layers), default=0.0)
    rows = [
        [words(one.layer), words(", ".join(one.fused)), words(one.kind),
         Cell(bar=[*stacked({"before": one.before_s}, most, "s", TONES, "upper").bar,
                   *stacked({"after": one.after_s}, most, "s", TONES, "lower").bar]),
         number(one.before_s, "s"), number(one.after_s, "s"), number(one.before_s - one.after_s, "s")]
        for one in c.layers
    ]  # fmt: skip
    heads = ("kernel of", "with", "kind", "", "before", "after", "saved")
    return Table(title=title, columns=columns(*heads, numbers=(4, 5, 6), bars=(3,), spare=(1, 2)), rows=rows, long=len(rows) > 20,
                 level=1, key=[("", f"above {c.before}, below {c.after}")],
                 notes=[f'Ops under "with" share the kernel that {c.after} launches.'])  # fmt: skip
