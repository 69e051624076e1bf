"""What changes from one stack to another: what each difference saves, with its source, and which layers."""

from __future__ import annotations

from archsim.base.units import show
from archsim.render.blocks import Block, Cell, Column, Facts, Table, number, stacked, words
from archsim.study.stack_change import StackChange

TONES = {"before": "0", "after": "1"}


def change_blocks(c: StackChange) -> list[Block]:
    """The steps from one stack to the other, then every layer, then the sources."""
    numbers: dict[str, int] = {}

    def marks(sources: tuple[str, ...]) -> str:
        return "".join(f"[{numbers.setdefault(source, len(numbers) + 1)}]" for source in sources)

    rows = [[words(step.title), number(step.latency_s, "s"), number(step.saved_s, "s"),
             Cell(text=f"{100 * step.saved_s / c.before_s:+.1f} %", value=step.saved_s), words(", ".join(step.keys)),
             words(marks(step.sources))] for step in c.steps]  # fmt: skip
    was, now = show(c.before_s, "s", 3), show(c.after_s, "s", 3)
    notes = [f"One after the other, from {c.before} ({was}) to {c.after} ({now}), {c.before_s / c.after_s:.2f} times as fast."]
    notes += [] if rows else ["No value differs that changes a time."]
    if c.fp32_s is not None:
        notes.append(f"With every product in fp32 in place of tf32 {c.before} takes {show(c.fp32_s, 's', 3)}, "
                     f"{c.fp32_s / c.before_s:.2f} times as long {marks((c.tf32_source,) if c.tf32_source else ())}".rstrip())
    head = [Column(head=text, kind="number" if 0 < i < 4 else "text", needed=i not in (1, 4, 5))
            for i, text in enumerate(("", "latency", "saved", "of the first", "keys of the stack", "source"))]  # fmt: skip
    title = f"From {c.before} to {c.after}"
    sources = [(f"[{i}]", source) for source, i in numbers.items()]
    return [Table(title=title, columns=head, rows=rows, notes=notes), _layers(c, f"{title}, layer by layer"),
            Facts(title=f"Sources of {title[0].lower()}{title[1:]}", rows=sources, level=2)]  # fmt: skip


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
    head = [Column(head=text, kind="bar" if i == 3 else "number" if i > 3 else "text", needed=i not in (1, 2))
            for i, text in enumerate(heads)]  # fmt: skip
    return Table(title=title, columns=head, rows=rows, long=len(rows) > 20, level=1,
                 key=[("", f"above {c.before}, below {c.after}")],
                 notes=[f'Ops under "with" share the kernel that {c.after} launches.'])  # fmt: skip
