"""What changes from one stack to another: what each difference saves, and which layers."""

from __future__ import annotations

from archsim.base.units import show
from archsim.render.blocks import Block, Table, columns, number, percent, words
from archsim.study.stack_change import StackChange


def change_blocks(c: StackChange) -> list[Block]:
    """The steps from one stack to the other, then every layer. The record has keys and sources of each step."""
    rows = [[words(one.title), number(one.latency_s, "s"), number(one.saved_s, "s"), percent(one.saved_s / c.before_s, "+.1f")]
            for one in c.steps]  # fmt: skip
    was, now = show(c.before_s, "s", 3), show(c.after_s, "s", 3)
    notes = [f"One after the other, from {c.before} ({was}) to {c.after} ({now}), {c.before_s / c.after_s:.2f} times as fast."]
    notes += [] if rows else ["No value differs that changes a time."]
    title = f"From {c.before} to {c.after}"
    return [
        Table(title=title, columns=columns("", "latency", "saved", "of the first", numbers=(1, 2, 3)), rows=rows, notes=notes),
        _layers(c, f"{title}, layer by layer"),
    ]


def _layers(c: StackChange, title: str) -> Table:
    """Every kernel of the second stack, what takes part in it, and both times."""
    rows = [[words(one.layer), words(", ".join(one.fused)), words(one.kind), number(one.before_s, "s"), number(one.after_s, "s"),
             number(one.before_s - one.after_s, "s")] for one in c.layers]  # fmt: skip
    heads = columns("kernel of", "with", "kind", "before", "after", "saved", numbers=(3, 4, 5), spare=(1, 2))
    return Table(title=title, columns=heads, rows=rows, long=len(rows) > 20, level=1,
                 notes=[f'Ops under "with" share the kernel that {c.after} launches.'])  # fmt: skip
