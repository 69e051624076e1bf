"""How much each value of a device matters: a tornado of one output, elasticities of all, and what has no effect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from archsim.answers.asked import asked, asked_record
from archsim.answers.estimate import floor_line
from archsim.answers.front import saves
from archsim.base.record import by_key
from archsim.base.units import show
from archsim.device.spec import read_by
from archsim.device.variant import called
from archsim.estimation.die import moves_area
from archsim.estimation.estimate import estimate_of
from archsim.render.blocks import Block, Cell, Facts, Piece, Table, Verdict, columns, words
from archsim.render.text import csv_lines
from archsim.study.sensitivity import OUTPUTS, Elasticity, Sensitivity, by_swing

SCHEMA = "archsim-sensitivity/1"
TITLES = {"latency_s": "latency", "energy_j": "energy", "power_w": "power"}
FIRST, SAID = 9, 3  # values on the first screen; values in the verdict
LESS, MORE = "1", "0"  # tones of bars


def sections(s: Sensitivity, most: int = FIRST) -> list[Block]:
    """The blocks of a sensitivity: the output that was asked for first, with at `most` so many values on the first screen."""
    steps = f"{100 * s.step:g} % both ways for elasticities (whole numbers: of 1), {100 * s.span:g} % for the bars"
    floor = floor_line(estimate_of(s.request, references=False))  # which no value of the device moves
    return [_verdict(s), _table(s, most), Facts(title="How far to trust it", rows=[("steps", steps), ("host CPU", floor)]),
            Facts(title="Without effect", rows=[*_idle(s), *((e.key, e.why) for e in s.values if e.why)], level=1)]  # fmt: skip


def _verdict(s: Sensitivity) -> Verdict:
    of, share = TITLES[s.output], f"{100 * s.span:g} %"
    live = [e for e in by_swing(s.values, s.output) if _width(e, s.output) > 0]
    limits = estimate_of(s.request, references=False)
    limit = f"Limited by {saves({name: time / limits.latency_s for name, time in limits.saved_s.items()})}."
    if not live:
        said = [f"No value that was asked for moves the {of}."]
    else:
        first, *others = live[:SAID]
        less, more = map(_moved, first.swing[s.output])
        said = [f"{_key(first)} ({meaning(first)}) matters most: {share} less of it changes the {of} by {less}, {share} more by "
                f"{more}."]  # fmt: skip
        then = ", ".join(f"{_key(e)} ({' / '.join(map(_moved, e.swing[s.output]))})" for e in others)
        said += [f"Then {then}."] if others else []
    return Verdict(title=f"What the {of} depends on", asked=asked(s.request), sentences=[*said, limit])


def _moved(value: float | None) -> str:
    return "impossible" if value is None else f"{round(100 * math.expm1(value), 1) or 0.0:+.1f} %".replace("+0.0 ", "0 ")


def _width(e: Elasticity, output: str) -> float:
    return sum(abs(value) for value in e.swing[output] if value is not None)


def meaning(e: Elasticity) -> str:
    """What a value is: the first clause of its description, with the cache or rate that it is of.

    >>> from archsim.device.part import Unit
    >>> none = dict(value=1.0, low=1.0, high=1.0, local={}, sides={}, swing={})
    >>> meaning(Elasticity(key="l2.size", unit=Unit(unit="B", doc="capacity"), **none))
    'L2 capacity'
    """
    said = e.unit.doc
    for mark in ("; ", ": ", " (", ", "):
        said = said.partition(mark)[0]
    part = e.key.partition(".")[0]
    lead = f"{part.upper()} " if part in ("l1", "l2", "l3") else "rate of " if part == "rate" else ""
    return f"{lead}{said}"


def _key(e: Elasticity) -> str:
    """The key of a row; of several that act alike the first."""
    first, *others = e.key.split(", ")
    return f"{first} and {len(others)} alike" if others else first


def _table(s: Sensitivity, most: int) -> Table:
    """The values that matter, the widest swing on top."""
    live = by_swing(s.values, s.output)
    moved = [0.0, *(math.expm1(v) for e in live for v in e.swing[s.output] if v is not None)]
    rows = [[words(meaning(e)), words(_key(e), tip=e.key), words(show(e.value, e.unit.unit, 4)),
             _bar(e.swing[s.output], min(moved), max(moved)), *map(_change, e.swing[s.output]),
             *(Cell(text=f"{e.local[name]:+.3f}", value=e.local[name]) for name in OUTPUTS)]
            for e in live]  # fmt: skip
    share = f"{100 * s.span:g} %"
    heads = ("", "key", "value", "", f"-{share}", f"+{share}", *(f"{TITLES[name]}/%" for name in OUTPUTS))
    head = columns(*heads, numbers=(2, *range(4, 9)), bars=(3,), spare=(1, 2, 6, 7, 8))
    note = (f"{TITLES[s.output]} with {share} less and more of each value; then per cent of each output for each per cent of the "
            "value")  # fmt: skip
    title = f"{TITLES[s.output].capitalize()} by value"
    return Table(title=title, columns=head, rows=rows, notes=[note, *_jumps(live)], first=range(min(most, len(rows))),
                 key=[(LESS, "less of it"), (MORE, "more of it")])  # fmt: skip


def _jumps(live: Sequence[Elasticity]) -> list[str]:
    """Where an output has a step at the base."""
    return [f"{', '.join(names)} {jump}" for jump, names in by_key((e.jump, _key(e)) for e in live if e.jump).items()]


def _bar(swing: Sequence[float | None], low: float, high: float) -> Cell:
    """Two bars from no change, with a mark there, in a column that goes from the deepest fall to the highest rise."""
    whole = high - low or 1.0
    middle, pieces = -low / whole, []
    for value, tone in zip(swing, (LESS, MORE), strict=True):
        end = middle if value is None else (math.expm1(value) - low) / whole
        pieces.append(Piece(start=min(middle, end), end=max(middle, end), tone=tone, tip=_moved(value)))
    return Cell(bar=[*pieces, Piece(start=middle, end=middle, sign="|")])


def _change(value: float | None) -> Cell:
    return words("no", tone="quiet", tip="impossible") if value is None else Cell(text=_moved(value), value=math.expm1(value))


def _idle(s: Sensitivity) -> list[tuple[str, str]]:
    """Values without effect here, by who reads them."""
    groups = by_key(("moves the area of the die alone" if moves_area(s.request.spec, e.key) else
                     f"read by {read_by(e.unit) or 'no model'}", e.key)
                    for e in s.values if e.unit.informational or not (e.matters or e.why))  # fmt: skip
    return [(title, ", ".join(names)) for title, names in groups.items()]


def record(s: Sensitivity) -> dict[str, Any]:
    """Plain values for JSON."""
    e = estimate_of(s.request, references=False)
    return {
        "schema": SCHEMA, **asked_record(s.request), "step": s.step, "span": s.span, "limited_by": e.limited_by,
        "saved_s": dict(e.saved_s), "host_floor_s": e.host_floor_s,
        "values": [
            {"key": e.key, "unit": e.unit.unit, "value": e.value, "elasticity": dict(e.local) or None,
             "one_sided": {k: list(v) for k, v in e.sides.items()} or None,
             "span_low": e.low, "span_high": e.high, "log_ratio": {k: list(v) for k, v in e.swing.items()} or None,
             "informational": e.unit.informational, "moves": read_by(e.unit), "note": e.why or e.jump}
            for e in s.values
        ],
    }  # fmt: skip


def csv(s: Sensitivity) -> str:
    """One row for each value of the spec, empty where there is no elasticity."""
    rows = [[called(s.request.spec), *row] for row in rows_of(s.values)]
    return csv_lines([("hardware_name", *HEAD), *rows])


HEAD = ("key", "unit", "value", *(f"elasticity_{name}" for name in OUTPUTS), "note")


def rows_of(values: Sequence[Elasticity]) -> list[list[Any]]:
    """A row for each value of the spec, with the columns of `HEAD`."""
    return [[e.key, e.unit.unit, e.value, *(e.local.get(name) for name in OUTPUTS), e.why or e.jump] for e in values]
