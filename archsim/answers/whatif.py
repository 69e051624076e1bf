"""What a change does: how many times as fast, with the interval of the ratio, which layers gain, and what limits them then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.answers.estimate import asked, rate_unit
from archsim.answers.estimate import record as estimate_record
from archsim.answers.layers import bounds_bar
from archsim.base.units import grouped, show
from archsim.cost.bounds import bound_word
from archsim.device.silicon import silicon
from archsim.device.spec import follow_notes, read_by, unit_of
from archsim.device.variant import changes
from archsim.estimation.result import Estimate, OpEstimate
from archsim.explain.summary import SAMPLES, LayerGroup, group_of, relieved
from archsim.render.blocks import Block, Cell, Facts, Note, Table, Verdict, columns, number, percent, stacked, words
from archsim.render.palette import order
from archsim.render.text import records_csv
from archsim.study.certainty import Saving
from archsim.study.whatif import FOLLOWING, TOTALS, Change, DieEstimate, OpChange, changed_limits, gained, side

SCHEMA = "archsim-whatif/1"
FEW = 0.005  # relative; less is no change that a reader cares for
LONG = 20  # layers above which their table scrolls
DIE = "area and cost are estimates of the die alone, without package and memory chips: `archsim show silicon` has their errors"


def sections(c: Change) -> list[Block]:
    """The blocks of a change."""
    found: list[Block] = [verdict(c)]
    found += [Note(text=line, tone="warning") for line in dict.fromkeys((*c.before.warnings, *c.after.warnings))]
    found += [groups_table(c), *_dies(c), Facts(title="How far to trust it", rows=_trust(c)), totals_table(c), layers_table(c)]
    return found


def verdict(c: Change) -> Verdict:
    """How many times as fast and as frugal, and what of it."""
    b, a, one = c.before, c.after, SAMPLES[c.before.sample]
    speed, energy = c.saved["throughput_per_s"], c.saved["energy_per_sample_j"]
    per = f"per {one}" if a.batch == 1 else f"per batch of {a.batch}"
    times = (f"{show(a.latency_s, 's', 3)} {per}, not {show(b.latency_s, 's', 3)}" if a.batch == b.batch else
             f"{grouped(a.throughput_per_s, 3)} {rate_unit(a)}, not {grouped(b.throughput_per_s, 3)}")  # fmt: skip
    each = [show(1.0 / e.throughput_per_w, "J", 3) for e in (a, b)]
    lines = [(speed_words(speed.ratio), sure_words(speed, b.interval_level, times=True), times),
             (share_words(energy.ratio, f"energy per {one}"),
              sure_words(energy, b.interval_level, times=energy.ratio > 2), f"{each[0]}, not {each[1]}")]  # fmt: skip
    if c.dies is not None:
        lines.append((f"die of {c.dies[1].area:.0f} mm2", f"not {c.dies[0].area:.0f} mm2",
                      f"{show(c.dies[1].cost, 'USD', 3)} a die, not {show(c.dies[0].cost, 'USD', 3)}"))  # fmt: skip
    lines += [("DOES NOT FIT", "", f"it needs {show(a.memory_bytes, 'B', 3)}")] if not a.fits else []
    return Verdict(title=f"{b.network} on {b.hardware_name}: what if {', '.join(c.changes)}", asked=asked(b),
                   lines=[] if c.idle else lines, sentences=_sentences(c))  # fmt: skip


def speed_words(ratio: float) -> str:
    """A ratio of rates in words.

    >>> speed_words(1.684), speed_words(0.8), speed_words(1.001)
    ('1.68 times as fast', '1.25 times as long', 'as fast as before')
    """
    if abs(ratio - 1.0) < FEW:
        return "as fast as before"
    return f"{max(ratio, 1 / ratio):.3g} times as {'fast' if ratio > 1 else 'long'}"


def share_words(ratio: float, of: str) -> str:
    """A ratio of something of which less is better.

    >>> share_words(0.88, "energy"), share_words(1.5, "energy"), share_words(3.2, "power")
    ('12 % less energy', '50 % more energy', '3.2 times the power')
    """
    if abs(ratio - 1.0) < FEW:
        return f"as much {of}"
    if ratio > 2:
        return f"{ratio:.3g} times the {of}"
    return f"{100 * abs(ratio - 1):.0f} % {'more' if ratio > 1 else 'less'} {of}"


def sure_words(one: Saving, level: float, times: bool = False) -> str:
    """The interval of a ratio: as a factor, that of `speed_words` where it is below 1, or in per cent."""
    low, high = (1 / one.interval[1], 1 / one.interval[0]) if times and one.ratio < 1 - FEW else one.interval
    ends = f"{low:.3g} to {high:.3g}" if times else f"{points_words(low)} to {points_words(high)} %"
    return f"{100 * level:.0f} %: {ends}"


def points_words(ratio: float) -> str:
    """A ratio as its difference from 1 in per cent.

    >>> points_words(0.88), points_words(1.0)
    ('-12', '0')
    """
    return f"{round(100 * (ratio - 1)) or 0:+d}".replace("+0", "0")


def _sentences(c: Change) -> list[str]:
    """Which layers gain, what changes its limit, what limits afterwards; or that nothing changes."""
    if c.idle:
        return [f"Nothing changes: by the {c.before.fidelity} model no output of this network on this device depends on it."]
    doubt = "Errors of the predictions could undo the change of speed." if c.saved["throughput_per_s"].uncertain else ""
    moved = "; ".join(changed_limits(c))
    then = relieved(c.after)
    return [line for line in (gained(c), f"{moved[0].upper()}{moved[1:]}.", f"Then {then}" if then else "", doubt) if line]


def followed_lines(c: Change) -> list[str]:
    """What the model does not read, the defaults that came with the change, and the values of the device that follow it."""
    said = []
    for name, pair in c.followed.items():
        was, now = ("none" if value is None else show(value, "Hz") if isinstance(value, float) else str(value) for value in pair)
        said.append(f"{'host CPU' if name == 'host_cpu' else FOLLOWING[name]} {now}, not {was}")
    old, spec = follow_notes(c.before.spec.entries), c.after.spec
    readers = {key: read_by(unit_of(spec.kind, key)) for key in changes(spec) if key in spec.entries}
    unread = [f"{key} is read by {who} alone" for key, who in readers.items() if who and c.before.fidelity not in who]
    return [*unread, *([f"{'; '.join(said)}: the defaults there, which --to sets"] if said else []),
            *(line for line in follow_notes(c.after.spec.entries) if line not in old)]  # fmt: skip


def groups_table(c: Change) -> Table:
    """Layers by kind, before and after."""
    return _table("Where the time goes", c.groups)


def layers_table(c: Change) -> Table:
    """Every layer before and after."""
    def group(one: OpEstimate | None) -> LayerGroup | None:
        return None if one is None else group_of(one.name, [one])

    return _table("Layers", [(group(op.before), group(op.after)) for op in c.ops], level=1)


def _table(title: str, pairs: Sequence[tuple[LayerGroup | None, LayerGroup | None]], level: int = 0) -> Table:
    """Times by what limits, before in the upper half of a bar, after in the lower one."""
    there = [group for pair in pairs for group in pair if group is not None]
    longest = max((group.time for group in there), default=0.0)
    rows = []
    for old, new in pairs:
        times = [None if group is None else group.time for group in (old, new)]
        upper, lower = ({} if group is None else group.time_s for group in (old, new))
        bar = [*bounds_bar(upper, longest, "upper").bar, *bounds_bar(lower, longest, "lower").bar]
        limits = ("-" if group is None else ", ".join(map(bound_word, group.limited_by)) for group in (old, new))
        rows.append([words((old or new or there[0]).name), Cell(bar=bar), *(number(time, "s") for time in times), _faster(*times),
                     *map(words, limits)])  # fmt: skip
    head = columns("", "", "before", "after", "speed", "limited by", "then by", numbers=(2, 3, 4), bars=(1,), spare=(5, 6))
    bounds = order({name for group in there for name in group.time_s})
    return Table(title=title, columns=head, rows=rows, long=len(rows) > LONG, level=level,
                 key=[*((name, bound_word(name)) for name in bounds), ("", "above before, below after")])  # fmt: skip


def _faster(before: float | None, after: float | None) -> Cell:
    """Before / after, which is more than 1 where it is faster."""
    if not before or not after:
        return words("-")
    ratio = before / after
    tone = "" if abs(ratio - 1) < FEW else "good" if ratio > 1 else "bad"
    return Cell(text=ratio_text(ratio), value=ratio, tone=tone)


def totals_table(c: Change) -> Table:
    """Every total before and after."""
    rows = [[words(title), words(quantity(getattr(c.before, name), unit, name, c.before)),
             words(quantity(getattr(c.after, name), unit, name, c.after)), words(ratio_text(c.ratios.get(name)))]
            for name, title, unit in TOTALS]  # fmt: skip
    rows.append([words("fits"), *(words("yes") if e.fits else words("NO", tone="bad") for e in (c.before, c.after)), words("")])
    return Table(title="Totals", columns=columns("", "before", "after", "after / before"), rows=rows, level=1)


def ratio_text(ratio: float | None) -> str:
    """After / before, as a factor."""
    return "-" if ratio is None else f"x {ratio:.3g}"


def quantity(value: float, unit: str, name: str, e: Estimate) -> str:
    """A total with its unit."""
    if unit:
        return show(value, unit, 4)
    return f"{value:.4g} {rate_unit(e)}" + ("/W" if name == "throughput_per_w" else "")


def _dies(c: Change) -> list[Block]:
    """The two dies, where they are wanted: as bars of their parts, and what each part takes."""
    if c.dies is None:
        return []
    tones = {name: str(i) for i, name in enumerate(c.dies[0].parts)}
    most = max(die.area for die in c.dies)

    def row(when: str, die: DieEstimate) -> list[Cell]:
        bar = stacked(die.parts, most, "mm2", tones)
        return [words(when), bar, Cell(text=f"{die.area:.0f} mm2", value=die.area, tone="" if die.feasible else "bad"),
                percent(die.good, ".0f"), number(die.cost, "USD", 3)]  # fmt: skip

    said = [f"{when}: no mask can make it as one die; one exposure covers {silicon().field:.0f} mm2"
             for when, die in zip(("before", "after"), c.dies, strict=True) if not die.feasible]  # fmt: skip
    published = c.dies[0].published
    said += [f"scaled from the published {published:g} mm2"] if published is not None else []
    return [Table(title="Die", columns=columns("", "", "area", "yield", "cost", numbers=(2, 3, 4), bars=(1,)),
                  rows=[row("before", c.dies[0]), row("after", c.dies[1])], notes=["; ".join([*said, DIE])],
                  key=[(tone, name) for name, tone in tones.items()])]  # fmt: skip


def _trust(c: Change) -> list[tuple[str, Any]]:
    """How the interval of the ratio is made, and what is to be known beside it."""
    inside = f"{100 * c.before.interval_level:.0f} % of measured ones are expected in such intervals: {c.basis}"
    return [("ratios", inside), ("with it", followed_lines(c))]


def record(c: Change) -> dict[str, Any]:
    """Both estimates in full, the ratios, and the ops whose limit changed."""
    moves = [{"before": before, "after": after, "ops": [op.name for op in ops]} for (before, after), ops in c.moves.items()]
    return {
        "schema": SCHEMA, "changes": list(c.changes), "followed": {name: list(pair) for name, pair in c.followed.items()},
        "changed": not c.idle, "ratios": dict(c.ratios), "moves": moves,
        "ops": [_op_record(op) for op in c.ops], "before": estimate_record(c.before), "after": estimate_record(c.after),
        "dies": None if c.dies is None else [asdict(one) for one in c.dies],
    }  # fmt: skip


def csv(c: Change) -> str:
    """One row for each op."""
    every = {"network": c.before.network, "hardware_name": c.before.hardware_name, "changes": "; ".join(c.changes)}
    absent = dict.fromkeys(("time_s", "bound", "limit", "energy_j"))
    rows = [_op_record(op) for op in c.ops]
    return records_csv([row | {when: row[when] or absent for when in ("before", "after")} for row in rows], every)


def _op_record(op: OpChange) -> dict[str, Any]:
    def of(one: OpEstimate | None) -> dict[str, Any] | None:
        if one is None:
            return None
        return {"time_s": one.time_s, "bound": one.bound, "limit": side(one.bound), "energy_j": one.energy_j}

    return {"name": op.name, "kind": op.kind, "ratio": op.ratio, "moved": op.moved, "before": of(op.before),
            "after": of(op.after)}  # fmt: skip
