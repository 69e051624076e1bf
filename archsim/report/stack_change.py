"""Two stacks side by side as text: what each difference saves, with its source, and the layers that change most."""

from __future__ import annotations

from archsim.base.units import show
from archsim.report.text import clean, table
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
        parts.append(table(head, rows, left=1))
    else:
        parts.append("no value differs that changes a time")
    if c.fp32_s is not None:
        mark = f" [{numbers.setdefault(c.tf32_source, len(numbers) + 1)}]" if c.tf32_source else ""
        parts.append(f"tf32: with every product in fp32 {clean(c.before)} takes {show(c.fp32_s, 's', 3)}, "
                     f"{c.fp32_s / c.before_s:.2f} times as long{mark}")  # fmt: skip
    shown = c.layers if every else changed_most(c)
    lines = [_line(one) for one in shown]
    left = len(c.layers) - len(shown)
    parts.append(table(("kernel of", "with", "kind", "before", "after", "saved"), lines, left=3)
                 + (f"\n{left} more change less; --layers prints all" if left else ""))  # fmt: skip
    if numbers:
        parts.append("\n".join(["Sources", *(clean(f"  [{number}] {source}") for source, number in numbers.items())]))
    return "\n\n".join(parts)


def changed_most(c: StackChange) -> tuple[LayerChange, ...]:
    """The layers whose time changes most, in the order of the network."""
    found = sorted(range(len(c.layers)), key=lambda i: -abs(c.layers[i].before_s - c.layers[i].after_s))
    return tuple(c.layers[i] for i in sorted(found[:MOST]))


def _line(one: LayerChange) -> tuple[str, ...]:
    fused = ", ".join(one.fused)
    fused = fused if len(fused) <= LONGEST else f"{fused[:LONGEST]}..."
    saved = show(one.before_s - one.after_s, "s", 3)
    return clean(one.layer), clean(fused), one.kind, show(one.before_s, "s", 3), show(one.after_s, "s", 3), saved


def _saved(saved_s: float, whole_s: float) -> str:
    return f"{show(saved_s, 's', 3)} ({100 * saved_s / whole_s:+.1f} %)"
