"""How bounds are drawn, in the order of their table."""

from __future__ import annotations

from archsim.cost.bounds import BOUNDS, Bound

# For lines and bars that are no bounds: Okabe and Ito (2008), which people with any common colour blindness tell apart, and more.
SERIES = ("#0072b2", "#d55e00", "#e69f00", "#8c510a", "#66a61e", "#cc79a7", "#009e73", "#56b4e9")


def look(bound: str) -> Bound:
    """The row of a bound; a name that the table does not have is drawn like no bound.

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
