"""Time and energy of layers as a table whose bars are plain HTML: it needs no script, prints, and fits a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archsim.base.units import show
from archsim.report.layers import LayerRow
from archsim.report.markup import TableCell, table, text, valued
from archsim.report.palette import look


def bars(
    rows: Sequence[LayerRow], latency: float, energy: float, what: str = "layer", before: Sequence[LayerRow] = ()
) -> str:  # fmt: skip
    """A row for each of `rows`, coloured by bound; shares are of `latency` [s] and `energy` [J].

    The longest fills the width. A row whose name one of `before` has, the same before a change, shows that one's bar above its
    own, pale, and its value in place of the share.
    """
    was = {row.name: row for row in before}
    longest = max((row.time for row in (*rows, *before)), default=0.0) or 1.0
    hungriest = max((row.energy for row in (*rows, *before)), default=0.0) or 1.0
    lines = []
    for row in rows:
        old = was.get(row.name)
        lines.append((
            TableCell(body=text(row.name)), _bars(row.time_s, old.time_s if old else {}, longest, "s"),
            _amount(row.time, latency, "s", old.time if old else None),
            _bars(row.energy_j, old.energy_j if old else {}, hungriest, "J"),
            _amount(row.energy, energy, "J", old.energy if old else None),
        ))  # fmt: skip
    return table((what, "time", "", "energy", ""), lines, style="bars")


def _bars(parts: Mapping[str, float], before: Mapping[str, float], most: float, unit: str) -> TableCell:
    return TableCell(body=(_bar(before, most, unit, "bar was") if before else "") + _bar(parts, most, unit, "bar"))


def _bar(parts: Mapping[str, float], most: float, unit: str, style: str) -> str:
    pieces = "".join(
        f'<i style="width:{100 * value / most:.2f}%;background:{look(bound).colour}" '
        f'title="{text(bound)} {show(value, unit, 3)}"></i>'
        for bound, value in parts.items()
        if value > 0
    )
    return f'<div class="{style}">{pieces}</div>'


def _amount(value: float, whole: float, unit: str, before: float | None) -> TableCell:
    beside = f"{100 * value / whole if whole else 0.0:.1f} %" if before is None else f"was {show(before, unit, 3)}"
    return valued(f"{show(value, unit, 3)} · {beside}", value)
