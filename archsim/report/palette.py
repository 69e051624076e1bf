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


def ink_on(colour: str) -> str:
    """Black or white, whichever has the higher contrast on a colour: at least 4.5 (WCAG 2.2, relative luminance).

    >>> ink_on("#e69f00"), ink_on("#0072b2")
    ('#000000', '#ffffff')
    """
    return "#000000" if contrast(colour, "#000000") >= contrast(colour, "#ffffff") else "#ffffff"


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2, contrast ratio).

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [value / 255 for value in bytes.fromhex(colour.removeprefix("#"))]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
