"""What a simulated curve says: a table with a column for each line, and the lines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.base.units import COUNT, show, show_capacity
from archsim.render.blocks import Axis, Block, Cell, Chart, Series, Table, Verdict, columns, number, words
from archsim.simulate.curves import LAW, SCHEMA, SimulatedCurve


def record(c: SimulatedCurve) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **asdict(c), "at": [*c.at]}


def sections(c: SimulatedCurve) -> list[Block]:
    """The blocks of a curve."""
    heads = columns(c.x[0], *c.lines, numbers=range(len(c.lines) + 1))
    rows = [[words(show_capacity(at, 3)) if c.x[1] else number(at, digits=4), *(_cell(c, name, i) for name in c.lines)]
            for i, at in enumerate(c.at)]  # fmt: skip
    last = [i for i, row in enumerate(rows) if c.limits and (row is rows[-1] or row[1:] != rows[i + 1][1:])]  # of those alike
    notes = [f"{_letter(limit)}: {limit}" for limit in sorted({each for line in c.limits.values() for each in line})]
    return [Verdict(title=f"{c.curve} on {c.hardware}", asked=[show(c.clock_hz, "Hz", 3), c.y[0]], sentences=c.said),
            Table(columns=heads, rows=rows, notes=notes, first=last), _chart(c)]  # fmt: skip


def _cell(c: SimulatedCurve, name: str, i: int) -> Cell:
    """A point, with what limits it."""
    value = c.lines[name][i]
    if name in c.limits:
        limit = c.limits[name][i]
        return Cell(text=f"{value:g} {_letter(limit)}", value=value, tip=limit)
    return number(value, c.y[1] or COUNT, 3)


def _letter(key: str) -> str:
    return key.removeprefix("sm.")[0].upper()


def _chart(c: SimulatedCurve) -> Chart:
    lines = []
    for name, line in c.lines.items():
        points = [(at, value) for at, value in zip(c.at, line, strict=True) if value is not None]
        lines.append(Series(name=name, x=[at for at, _ in points], y=[value for _, value in points], dashed=name == LAW,
                            joined=not c.limits, mark="" if name == LAW else "o"))  # fmt: skip
    return Chart(title=c.y[0], series=lines, x=Axis(title=c.x[0], unit=c.x[1] or COUNT, marks=c.at[1::2] if c.x[1] else ()),
                 y=Axis(title=c.y[0], unit=c.y[1] or COUNT, log=False))  # fmt: skip
