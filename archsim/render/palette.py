"""Colours: one palette for what limits, one for where energy goes, one for series; and their words.

A tone is a name that a colour belongs to: a bound ("dram"), a component of the energy ("energy.dram"), a series ("0", "1", ...).
Okabe and Ito (2008) chose colours that people with any common colour blindness tell apart; the others keep their distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archsim.cost.bounds import BOUNDS

SERIES = ("#0072b2", "#d55e00", "#e69f00", "#8c510a", "#66a61e", "#cc79a7", "#009e73", "#56b4e9")
ENERGY = {  # greys for what is drawn at rest, blues for arithmetic, greens for data
    "idle_board": "#a3adb8", "leakage": "#7b8692", "clock_tree": "#c7b8d8", "active_units": "#9a86b8",
    "arithmetic": "#3f6fb0", "tensor": "#274b86",
    "instructions": "#8fb3dd", "cache": "#8cc08a", "dram": "#2f7d4f", "host": "#c9a36b", "memory": "#a37c3c", "other": "#7a6248",
    "fans": "#d9c8a8", "supply": "#5d4a35",
}  # fmt: skip
QUIET = "#a3adb8"


def colour(tone: str) -> str:
    """The colour of a tone; one that no palette has is that of no bound.

    >>> colour("dram"), colour("energy.base"), colour("1")
    ('#d55e00', '#a3adb8', '#d55e00')
    """
    if tone.isdecimal():
        return SERIES[int(tone) % len(SERIES)]
    if tone.startswith("energy."):
        return ENERGY.get(tone.removeprefix("energy."), QUIET)
    return QUIET if tone == "quiet" else BOUNDS.get(tone, BOUNDS["none"]).colour


def tones() -> Mapping[str, str]:
    """Every tone with its colour, for a style sheet."""
    names = [*BOUNDS, *(f"energy.{name}" for name in ENERGY), *map(str, range(len(SERIES))), "quiet"]
    return {name: colour(name) for name in names}


def order(bounds: Iterable[str]) -> list[str]:
    """Bounds in the order of their table, others after them by name.

    >>> order({"host", "dram", "mystery"})
    ['dram', 'host', 'mystery']
    """
    asked = set(bounds)
    return [name for name in BOUNDS if name in asked] + sorted(asked - set(BOUNDS))

