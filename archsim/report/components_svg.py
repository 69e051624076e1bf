"""Energy of each layer by component, as static SVG: one stacked bar a layer; equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.cost.energy import COMPONENTS
from archsim.estimation.boundary import BESIDE
from archsim.report.layers import LayerRow
from archsim.report.lines_svg import FONT, INK, QUIET, words
from archsim.report.markup import label
from archsim.report.palette import SERIES

WIDTH, LEFT, RIGHT, ROW, TOP = 1120, 250, 200, 20, 10  # [px]
LONGEST = 34  # characters of a name
STANDING = "#a3adb8"  # colour of the component that is drawn whatever the chip does


def component_colour(name: str) -> str:
    """The colour of a component of the energy.

    >>> component_colour("base"), component_colour("leakage")
    ('#a3adb8', '#0072b2')
    """
    place = [*COMPONENTS, *BESIDE].index(name)
    return STANDING if place == 0 else SERIES[(place - 1) % len(SERIES)]


def components_svg(rows: Sequence[LayerRow], whole_j: float) -> str:
    """The bars of the `rows`, with the energy of each and its share of `whole_j` [J]; the longest bar fills the width."""
    most = max((sum(row.component_j.values()) for row in rows), default=0.0) or 1.0
    height = 2 * TOP + ROW * len(rows)
    scale = (WIDTH - LEFT - RIGHT) / most
    body = [part for place, row in enumerate(rows) for part in _bar(row, TOP + ROW * place, scale, whole_j)]
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="{FONT}" role="img">\n<title>Energy by component and layer</title>\n' + "\n".join(body) + "\n</svg>"
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _bar(row: LayerRow, y: float, scale: float, whole_j: float) -> list[str]:
    x, parts = float(LEFT), [words(LEFT - 8, y + 14, _short(row.name), ink=INK, anchor="end")]
    for name, energy in row.component_j.items():
        width = energy * scale
        if width >= 0.05:
            tip = f"{label(row.name, 80)}: {name} {show(energy, 'J', 3)}"
            parts.append(f'<rect x="{x:.1f}" y="{y + 2:.1f}" width="{width:.1f}" height="{ROW - 5}" '
                         f'fill="{component_colour(name)}"><title>{tip}</title></rect>')  # fmt: skip
        x += width
    total = sum(row.component_j.values())
    parts.append(words(x + 8, y + 14, f"{show(total, 'J', 3)} · {100 * total / whole_j:.1f} %", ink=QUIET))
    return parts
