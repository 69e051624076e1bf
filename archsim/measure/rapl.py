"""Energy counters of processors: RAPL, as Linux shows it under powercap, for Intel and AMD alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from archsim.base.errors import Unsupported
from archsim.detect.system import words_of

POWERCAP = Path("/sys/class/powercap")
MOST_W = 1000.0  # no package or its memory draws more: a counter cannot have wrapped twice in range / MOST_W
PACKAGE, MEMORY = "package", "dram"  # how the names of zones begin; others are parts of a package, or the whole platform


class RaplCounter:
    """The counter of one zone [J], which wraps around at its range and is followed across a wrap."""

    def __init__(self, zone: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._zone, self._now = zone, now
        self._range = _microjoules(zone / "max_energy_range_uj")
        self._last, self._read_at, self._wrapped = _microjoules(zone / "energy_uj"), now(), 0

    def read(self) -> float:
        """The energy so far [J]; only differences have a meaning. Unsupported where it may have wrapped more than once."""
        value, at = _microjoules(self._zone / "energy_uj"), self._now()
        if (at - self._read_at) * MOST_W >= self._range * 1e-6:
            raise Unsupported(f"no energy: {self._zone / 'energy_uj'} was not read for {at - self._read_at:.0f} s, in which it "
                              "may have wrapped more than once")  # fmt: skip
        if value < self._last:
            self._wrapped += self._range
        self._last, self._read_at = value, at
        return (value + self._wrapped) * 1e-6


def zones(folder: Path = POWERCAP) -> tuple[list[Path], list[Path]]:
    """The zones of all packages, and those of their memory modules; the second are none where one package has none.

    Raises Unsupported where there is no package.
    """
    listed = sorted(place for place in _listed(folder) if place.name.startswith("intel-rapl:"))
    packages = [place for place in listed if words_of(place / "name").startswith(PACKAGE)]
    if not packages:
        raise Unsupported(f"no energy: {folder} lists no package (a virtual machine or container rarely shows any)")
    memory = [place for place in listed if words_of(place / "name") == MEMORY]
    return packages, memory if len(memory) == len(packages) else []


def counted(places: list[Path], now: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """The sum of the counters of some zones [J], all of which can be read; Unsupported names the one that cannot."""
    counters = [RaplCounter(place, now) for place in places]
    return lambda: sum(counter.read() for counter in counters)


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _microjoules(place: Path) -> int:
    text = words_of(place)
    if not text.isdecimal():
        raise Unsupported(f"no energy: {place} cannot be read by this user (only root may, unless its mode is changed)")
    return int(text)
