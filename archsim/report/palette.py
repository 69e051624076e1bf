"""What each bound looks like and means: one table for every chart and legend.

The colours are those of Okabe and Ito (2008), which people with any common colour blindness tell apart; in the roofline
a symbol says the same once more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a bound is drawn: `colour` as #rrggbb, `symbol` by its plotly name; `meaning` is for the legend."""

    colour: str
    symbol: str
    meaning: str


BOUNDS = {
    "compute": Look(colour="#0072b2", symbol="circle", meaning="the arithmetic units are busy"),
    "dram": Look(colour="#d55e00", symbol="square", meaning="the memory's bandwidth is used up"),
    "l2": Look(colour="#e69f00", symbol="diamond", meaning="the cache's bandwidth is used up"),
    "l1": Look(colour="#8c510a", symbol="hexagon", meaning="the bandwidth between a core's own caches is used up"),
    "link": Look(colour="#f0e442", symbol="star", meaning="the link between sockets is used up"),
    "walk": Look(colour="#66a61e", symbol="pentagon", meaning="values are read twice, the second time after a wait"),
    "latency": Look(colour="#cc79a7", symbol="triangle-up", meaning="too few loads in flight to hide latency"),
    "launch": Look(colour="#009e73", symbol="cross", meaning="starting kernels or threads"),
    "host": Look(colour="#56b4e9", symbol="triangle-down", meaning="framework and driver, which the device waits for"),
    "none": Look(colour="#999999", symbol="x", meaning="takes no time"),
}  # fmt: skip


def look(bound: str) -> Look:
    """The look of a bound; a name that the table does not have is drawn like no bound.

    >>> look("dram").colour
    '#d55e00'
    """
    return BOUNDS.get(bound, BOUNDS["none"])


def order(bounds: set[str]) -> list[str]:
    """Those bounds in the order of the table, others after them by name.

    >>> order({"host", "dram", "mystery"})
    ['dram', 'host', 'mystery']
    """
    return [name for name in BOUNDS if name in bounds] + sorted(bounds - set(BOUNDS))
