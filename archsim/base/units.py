"""Numbers with units: text at the file boundary, plain SI floats inside.

`parse("336.5 GB/s", "B/s")` gives 3.365e11, `show(3.365e11, "B/s")` gives "336.5 GB/s". There is one table of
prefixes. Decimal prefixes are powers of ten (1 GB = 1e9 B), binary ones (KiB, MiB, GiB, TiB) powers of two and
only for bytes. A number without its unit is refused wherever a unit belongs to the quantity.
"""

from __future__ import annotations

import math
import re

PREFIXES = {
    "p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
}  # fmt: skip
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
BARE = {"": 1.0}
COUNTED = {name: size for name, size in PREFIXES.items() if size >= 1}  # a byte has no parts: "mB" is a slip for "MB"

# unit -> the prefixes that it may take; the unit itself is the SI base that the model uses
UNITS = {
    **dict.fromkeys(("s", "Hz", "W", "J", "Js", "V", "m"), PREFIXES),
    **dict.fromkeys(("B", "B/s"), COUNTED | BINARY),
    **dict.fromkeys(("FLOP", "FLOP/s", "OP/s", "bit/s", "/s", "/s/W"), COUNTED),
    **dict.fromkeys(("B/clk", "bit", "FMA/clk", "OP/clk", "clk", "mm2", "USD", "img/s", "seq/s", "samples/s"), BARE),
}
WHOLE = ("B", "FLOP")  # units of which there are no parts
# unit -> other ways to write it, where what is counted is said elsewhere
SYNONYMS = {"/s": ("img/s", "seq/s", "samples/s", "req/s", "1/s"), "/s/W": ("img/s/W", "seq/s/W", "samples/s/W")}
COUNT = "1"  # a pure number: counts and fractions
TEXT = "text"

LONGEST = 500  # characters of a number with its unit
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)\Z", re.ASCII)


def parse(text: str, unit: str) -> float:
    """The value of `text` in the base `unit`.

    Raises ValueError when the text is no number with that unit, or not finite.

    >>> parse("8 GiB", "B")
    8589934592.0
    >>> parse("690MHz", "Hz")
    690000000.0
    >>> parse("1 TB/s", "B/s")
    1000000000000.0
    >>> parse("24", "1")
    24.0
    """
    text = text.strip()
    if len(text) > LONGEST:
        raise ValueError(f"'{text[:20]}...' of {len(text)} characters is not a number{_example(unit)}")
    match = _FORM.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number{_example(unit)}")
    number, suffix = float(match[1]), match[2]
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    if unit == COUNT:
        if suffix:
            raise ValueError(f"{text!r} has a unit where a plain number belongs")
        return number
    if not suffix:
        raise ValueError(f"{text!r} lacks its unit{_example(unit)}")
    value = number * _scale(text, suffix, unit)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not finite")
    return value


def _scale(text: str, suffix: str, unit: str) -> float:
    if suffix in SYNONYMS.get(unit, ()):
        return 1.0
    if suffix.endswith(unit) and (prefix := suffix[: -len(unit)]) in UNITS[unit]:
        return UNITS[unit][prefix]
    raise ValueError(f"{text!r} is not in {unit}{_example(unit)}")


def _example(unit: str) -> str:
    samples = {
        "B/s": "336.5 GB/s", "B": "8 GiB", "Hz": "1075 MHz", "s": "5 us", "W": "250 W", "FMA/clk": "128 FMA/clk",
        "OP/clk": "32 OP/clk", "B/clk": "64 B/clk", "clk": "6 clk", "bit": "256 bit", "bit/s": "7 Gbit/s",
        "FLOP/s": "6.6 TFLOP/s", "m": "16 nm", "USD": "599 USD", "mm2": "314 mm2", "J": "5 J", "Js": "2 mJs", "V": "1.05 V",
        "/s": "200/s", "/s/W": "8/s/W",
    }  # fmt: skip
    return f" (write it like {samples[unit]!r})" if unit in samples else ""


def parse_share(text: str) -> float:
    """A share as a fraction or in per cent; ValueError for anything else, and for what is not finite.

    >>> parse_share("20%"), parse_share("0.2")
    (0.2, 0.2)
    """
    bare = text.rstrip()
    return parse(bare.removesuffix("%"), COUNT) * (0.01 if bare.endswith("%") else 1.0)


def grouped(value: float, digits: int = 4) -> str:
    """A number of so many digits without a prefix, thousands apart, as people write it.

    >>> grouped(30144.6), grouped(1958.3, 3), grouped(46.758)
    ('30,140', '1,960', '46.76')
    """
    return f"{float(f'{value:.{digits}g}'):,.15g}"


def show(value: float, unit: str, digits: int = 4) -> str:
    """`value` (in base `unit`) for people, with the decimal prefix that leaves 1 to 999 before the point.

    What comes in whole numbers is rounded to one, and nothing that is counted has a prefix below 1. A unit that has no row in
    `UNITS` follows the plain number.

    >>> show(3.365e11, "B/s"), show(0.00213, "s"), show(2**31, "B"), show(24, "1"), show(9999.9, "1")
    ('336.5 GB/s', '2.13 ms', '2.147 GB', '24', '10,000')
    >>> show(0.0709, "B"), show(284.6, "B"), show(0.02, "/s"), show(0.19, "img/s/USD")
    ('0 B', '285 B', '0.02 /s', '0.19 img/s/USD')
    """
    if unit not in UNITS:
        rounded = f"{value:.{digits}g}"
        number = rounded if abs(float(rounded)) < 10**digits else f"{value:,.0f}"
        return number if unit in (COUNT, TEXT, "") else f"{number} {unit}"
    if unit in WHOLE and math.isfinite(value):
        value = round(value)
    if UNITS[unit] is BARE or value == 0:
        return f"{grouped(value, digits)} {unit}"
    ladder = [(name, size) for name, size in PREFIXES.items() if name in UNITS[unit] and name != "µ"]
    rounded = f"{abs(value):.{digits}g}"
    name, size = next(((n, s) for n, s in reversed(ladder) if float(rounded) >= s), ladder[0])
    return f"{value / size:.{digits}g} {name}{unit}"


def show_capacity(size: float, digits: int = 4) -> str:
    """The size of a memory [B] in binary units.

    >>> show_capacity(4 * 2**30), show_capacity(24 * 1024)
    ('4 GiB', '24 KiB')
    """
    name, unit = max(((n, s) for n, s in BINARY.items() if size >= s), key=lambda pair: pair[1], default=("", 1.0))
    return f"{size / unit:.{digits}g} {name}B"
