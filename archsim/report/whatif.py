"""Before and after as text and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.answers.silicon import die_line
from archsim.base.units import show
from archsim.device.follow import notes
from archsim.estimation.result import Estimate, OpEstimate
from archsim.report.data import records_csv
from archsim.report.text import FASTER_TEXT, clean, floor_line, listed_ops, rate_unit, table, task_words
from archsim.study.whatif import FOLLOWING, TOTALS, Change, OpChange, side

SCHEMA = "archsim-whatif/1"
MOST_NAMES = 12  # of ops whose limit changed in the same way


def whatif_text(c: Change, layers: bool = True, all_layers: bool = False) -> str:
    """The whole result: the change, layer by layer, ops whose limit changed, totals."""
    parts = ["\n".join(filter(None, [heading(c), followed_text(c)]))]
    if c.idle:
        parts.append(f"Nothing changes: by the {c.before.fidelity} model no output of this network on this device depends on it.")
    if layers:
        parts.append(_layers(c, all_layers))
    parts += [moves_text(c), _totals(c), dies_text(c), "\n".join(notes_of(c))]
    return "\n\n".join(filter(None, parts))


def heading(c: Change) -> str:
    """The request and the change."""
    b = c.before
    return (
        f"{clean(b.network)} on {clean(b.hardware_name)}: {task_words(b)}, batch {b.batch}, {b.precision}, stack {b.stack}, "
        f"{b.fidelity} model\n"
        f"what if     {clean(', '.join(c.written))}"
    )


def followed_text(c: Change) -> str:
    """The defaults that came with the change, and the values of the device that follow it; empty without any."""
    words = []
    for name, (before, after) in c.followed.items():
        was, now = ("none" if value is None else show(value, "Hz") if isinstance(value, float) else str(value)
                    for value in (before, after))  # fmt: skip
        words.append(f"{'host CPU' if name == 'host_cpu' else FOLLOWING[name]} {now}, not {was}")
    lines = [f"{'; '.join(words)}: the defaults there, which --to sets"] if words else []
    lines += [line for line in notes(c.after.spec.entries) if line not in notes(c.before.spec.entries)]
    return "\n".join(clean(f"with it     {line}") for line in lines)


def _layers(c: Change, all_layers: bool) -> str:
    shown, others = listed_ops(c.ops, all_layers, seconds)
    rows = [
        (op.name, op.kind, _bound(op.before), _bound(op.after), _time(op.before), _time(op.after), ratio_text(op.ratio))
        for op in shown
    ]
    return table(("layer", "kind", "before", "after", "before", "after", "time"), rows, left=4) + others


def seconds(op: OpChange) -> float:
    """Time of an op on the side where it is longer [s]."""
    return max(0.0 if one is None else one.time_s for one in (op.before, op.after))


def _time(op: OpEstimate | None) -> str:
    return "-" if op is None else show(op.time_s, "s", 3)


def _bound(op: OpEstimate | None) -> str:
    return "-" if op is None else op.bound


def ratio_text(ratio: float | None) -> str:
    """After / before, as a factor."""
    return "-" if ratio is None else f"x {ratio:.3g}"


def moves_text(c: Change) -> str:
    """The ops whose limit changed, grouped."""
    lines = []
    for (before, after), ops in c.moves.items():
        names = [clean(op.name) for op in ops]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        lines.append(f"{before} to {after}: {', '.join(names[:MOST_NAMES])}{more}")
    return "\n".join(lines) if lines else "no op changes what limits it"


def _totals(c: Change) -> str:
    rows = []
    for name, title, unit in TOTALS:
        b, a = getattr(c.before, name), getattr(c.after, name)
        rows.append((title, quantity(b, unit, name, c.before), quantity(a, unit, name, c.after), ratio_text(c.ratios.get(name))))
    rows.append(("fits", "yes" if c.before.fits else "NO", "yes" if c.after.fits else "NO", ""))
    lines = [f"limited by  {limits(c.before)} before; {limits(c.after)} after (saved if {FASTER_TEXT} faster)"]
    lines += [f"host {when:<6} {floor}" for when, e in (("before", c.before), ("after", c.after)) if (floor := floor_line(e))]
    return "\n".join([table(("", "before", "after", ""), rows), *lines])


def quantity(value: float, unit: str, name: str, e: Estimate) -> str:
    """A total with its unit."""
    if unit:
        return show(value, unit, 4)
    return f"{value:.4g} {rate_unit(e)}" + ("/W" if name == "throughput_per_w" else "")


def limits(e: Estimate) -> str:
    """What limits an estimate, and what more of the first three resources would save."""
    saved = [(name, 100 * time / e.latency_s) for name, time in e.relief_s.items() if time > 0.005 * e.latency_s]
    return ", ".join(f"{name} ({share:.0f} %)" for name, share in saved[:3]) or e.limited_by


def dies_text(c: Change) -> str:
    """The two dies, where they are wanted."""
    if c.dies is None:
        return ""
    return "\n".join(f"die {when:<7} {die_line(one)}" for when, one in zip(("before", "after"), c.dies, strict=True)) + (
        "\n            an estimate: `archsim show silicon` prints its parts and errors"
    )


def notes_of(c: Change) -> list[str]:
    """What is to be known beside the totals: how the two sides differ, and the warnings of both."""
    lines = []
    if c.before.batch != c.after.batch:
        lines.append("times are of a whole batch, and the batches differ: compare throughputs")
    only = [op.name for op in c.ops if op.before is None or op.after is None]
    if only:
        lines.append(f"{len(only)} ops exist on one side only: the two stacks build different graphs")
    return lines + [f"warning     {line}" for line in dict.fromkeys((*c.before.warnings, *c.after.warnings))]


def whatif_record(c: Change) -> dict[str, Any]:
    """Both estimates in full, the ratios, and the ops whose limit changed."""
    from archsim.report.data import record

    moves = [{"before": before, "after": after, "ops": [op.name for op in ops]} for (before, after), ops in c.moves.items()]
    return {
        "schema": SCHEMA, "changes": list(c.changes), "followed": {name: list(pair) for name, pair in c.followed.items()},
        "changed": not c.idle, "ratios": dict(c.ratios), "moves": moves,
        "ops": [_op_record(op) for op in c.ops], "before": record(c.before), "after": record(c.after),
        "dies": None if c.dies is None else [asdict(one) for one in c.dies],
    }  # fmt: skip


def whatif_csv(c: Change) -> str:
    """One row for each op."""
    every = {"network": c.before.network, "hardware_name": c.before.hardware_name, "changes": "; ".join(c.changes)}
    absent = dict.fromkeys(("time_s", "bound", "limit", "energy_j"))
    rows = [_op_record(op) for op in c.ops]
    return records_csv([row | {side: row[side] or absent for side in ("before", "after")} for row in rows], every)


def _op_record(op: OpChange) -> dict[str, Any]:
    def of(one: OpEstimate | None) -> dict[str, Any] | None:
        if one is None:
            return None
        return {"time_s": one.time_s, "bound": one.bound, "limit": side(one.bound), "energy_j": one.energy_j}

    sides = {"before": of(op.before), "after": of(op.after)}
    return {"name": op.name, "kind": op.kind, "ratio": op.ratio, "moved": op.moved, **sides}
