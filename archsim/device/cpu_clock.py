"""The clocks of a CPU: of one core, of all of them by the width of their code, and in between by the cores that are awake."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.units import TEXT, parse
from archsim.device.part import hertz, spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from archsim.device.part import Number

LIKE = "3: 3.6 GHz, 8: 3.2 GHz"  # up to three cores awake, four to eight


def turbo_table(written: str) -> tuple[tuple[int, float], ...]:
    """A turbo table as a spec states it: up to how many cores of a socket awake -> clock [Hz].

    Raises ValueError where it is none: core counts rise, clocks fall.

    >>> turbo_table("3: 3.6 GHz, 8: 3.2 GHz")
    ((3, 3600000000.0), (8, 3200000000.0))
    """
    rows: list[tuple[int, float]] = []
    for part in written.split(","):
        count, colon, clock = (text.strip() for text in part.partition(":"))
        if not colon or not count.isdecimal() or len(count) > 6 or int(count) < 1:
            raise ValueError(f'{part.strip()[:40]!r} is not "CORES: CLOCK", as in "{LIKE}"')
        row = int(count), parse(clock, "Hz")
        if rows and (row[0] <= rows[-1][0] or row[1] >= rows[-1][1]):
            raise ValueError(f"{part.strip()[:40]!r}: more cores must come with a lower clock, as in \"{LIKE}\"")
        rows.append(row)
    if len(rows) == 1:
        raise ValueError(f'a table of one clock says nothing of fewer cores; write it like "{LIKE}"')
    if not all(1e6 <= clock <= 1e11 for _, clock in rows):
        raise ValueError("a clock is outside the range 1 MHz to 100 GHz")
    return tuple(rows)


def _wrong(written: str) -> str | None:
    try:
        turbo_table(written)
    except ValueError as error:
        return str(error)
    return None


@lru_cache(maxsize=256)
def turbo_knots(written: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cores awake and their clocks [Hz], in rising numbers of cores, between which a mean of cores lies on a straight line.

    >>> [knots.tolist() for knots in turbo_knots("3: 3.6 GHz, 8: 3.2 GHz")]
    [[1.0, 3.0, 4.0, 8.0], [3600000000.0, 3600000000.0, 3200000000.0, 3200000000.0]]
    """
    cores: list[int] = []
    clocks: list[float] = []
    first = 1
    for last, clock in turbo_table(written):
        for count in sorted({first, last}):
            cores.append(count)
            clocks.append(clock)
        first = last + 1
    return np.array(cores, dtype=float), np.array(clocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuClock:
    """Core clocks. `simd` and `simd512` hold where every core runs dense code of that width."""

    base: Number = hertz("rated base clock", informational=True)
    boost: Number = hertz("one active core")
    all_core: Number = hertz("all cores active, scalar code; the uncore is taken to run no faster")
    simd: Number = hertz("all cores active, dense 256-bit (AVX2; 128-bit where that is the widest) code")
    simd512: Number | None = hertz("all cores active, dense 512-bit code", optional=True)
    turbo: str | None = spec(TEXT, f"clocks by cores of a socket awake, up to each number, such as {LIKE}", optional=True,
                             product=False, wrong=_wrong)  # fmt: skip
    silicon: Number | None = hertz("highest clock of any chip with this core and process, where higher", optional=True)
