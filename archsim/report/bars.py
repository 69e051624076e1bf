"""Time and energy of layers as a table whose bars are plain HTML: it needs no script, prints, and fits a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archsim.base.units import show
from archsim.report.layers import LayerRow
from archsim.report.markup import TableCell, table, text, valued
from archsim.report.palette import look


def bars(
    rows: Sequence[LayerRow], latency: float, energy: float, what: str = "layer", beside: Sequence[LayerRow] = ()
) -> str:  # fmt: skip
    """A row for each of `rows`, coloured by bound; shares are of `latency` [s] and `energy` [J].

    The longest fills the width, or a longer one of the rows that another table `beside` it has: both then have one scale.
    """
    longest = max((row.time for row in (*rows, *beside)), default=0.0) or 1.0
    hungriest = max((row.energy for row in (*rows, *beside)), default=0.0) or 1.0
    lines = [
        (TableCell(body=text(row.name)), _bar(row.time_s, longest, "s"), _amount(row.time, latency, "s"),
         _bar(row.energy_j, hungriest, "J"), _amount(row.energy, energy, "J"))
        for row in rows
    ]  # fmt: skip
    return table((what, "time", "", "energy", ""), lines, style="bars")


def _bar(parts: Mapping[str, float], most: float, unit: str) -> TableCell:
    pieces = "".join(
        f'<i style="width:{100 * value / most:.2f}%;background:{look(bound).colour}" '
        f'title="{text(bound)} {show(value, unit, 3)}"></i>'
        for bound, value in parts.items()
        if value > 0
    )
    return TableCell(body=f'<div class="bar">{pieces}</div>')


def _amount(value: float, whole: float, unit: str) -> TableCell:
    share = 100 * value / whole if whole else 0.0
    return valued(f"{show(value, unit, 3)} · {share:.1f} %", value)
