"""Power of the devices of a training simulation over time: mean power of a step while they work, idle power while they wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from archsim.schedule.observer import Observer
from archsim.schedule.serving import POWER


class DevicesAtWork:
    """An observer that counts how many devices work at a time.

    tracks: those of the devices; on any of them something runs while the device works
    """

    def __init__(self, tracks: Collection[str]) -> None:
        self._tracks = frozenset(tracks)
        self._changes: dict[float, int] = {}

    def ran(self, track: str, name: str, start_s: float, end_s: float, words: Mapping[str, object]) -> None:
        """A device worked from start to end [s]."""
        if track in self._tracks:
            self._changes[start_s] = self._changes.get(start_s, 0) + 1
            self._changes[end_s] = self._changes.get(end_s, 0) - 1

    def level(self, counter: str, time_s: float, value: float) -> None:
        """Of no interest."""

    def followed(self, before: tuple[str, float], after: tuple[str, float]) -> None:
        """Of no interest."""

    def curve(self, work_w: float, idle_w: float) -> list[tuple[float, float]]:
        """Moments [s] with the power of all devices from each on [W]; the last is the end, with none.

        >>> seen = DevicesAtWork(["gpu0", "gpu1"])
        >>> seen.ran("gpu0", "forward", 1.0, 3.0, {})
        >>> seen.ran("gpu1", "forward", 2.0, 3.0, {})
        >>> seen.curve(100.0, 30.0)
        [(0.0, 60.0), (1.0, 130.0), (2.0, 200.0), (3.0, 0.0)]
        """
        moments = sorted(time for time, change in self._changes.items() if change)
        working, found = 0, [(0.0, len(self._tracks) * idle_w)] if moments and moments[0] > 0.0 else []
        for time in moments:
            working += self._changes[time]
            found.append((time, working * work_w + (len(self._tracks) - working) * idle_w))
        return [*found[:-1], (found[-1][0], 0.0)] if found else []

    def tell(self, observers: Sequence[Observer], work_w: float, idle_w: float) -> None:
        """Report the curve as a counter."""
        for time, power in self.curve(work_w, idle_w):
            for observer in observers:
                observer.level(POWER, time, power)
