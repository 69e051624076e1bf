"""The protocol by which a simulation reports to observers, and an observer that records everything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Observer(Protocol):
    """A listener attached to a simulation from outside; it receives reports and returns nothing."""

    def ran(self, track: str, name: str, start_s: float, end_s: float, words: Mapping[str, object]) -> None:
        """Something ran on a track from start to end [s]. Intervals on one track nest."""

    def level(self, counter: str, time_s: float, value: float) -> None:
        """A counter has this value from now on. Its name ends with its unit in brackets."""

    def followed(self, before: tuple[str, float], after: tuple[str, float]) -> None:
        """A dependency: the item at `after` had to wait for the item at `before`; both are (track, time [s])."""


@dataclass(frozen=True, slots=True)
class TimelineSlice:
    """An interval on a track."""

    track: str
    name: str
    start_s: float
    end_s: float
    words: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Recording:
    """An observer that keeps all reports in order of arrival."""

    slices: list[TimelineSlice] = field(default_factory=list)
    levels: list[tuple[str, float, float]] = field(default_factory=list)
    flows: list[tuple[tuple[str, float], tuple[str, float]]] = field(default_factory=list)

    def ran(self, track: str, name: str, start_s: float, end_s: float, words: Mapping[str, object]) -> None:
        """Keep an interval."""
        self.slices.append(TimelineSlice(track, name, start_s, end_s, words))

    def level(self, counter: str, time_s: float, value: float) -> None:
        """Keep a value."""
        self.levels.append((counter, time_s, value))

    def followed(self, before: tuple[str, float], after: tuple[str, float]) -> None:
        """Keep a dependency."""
        self.flows.append((before, after))

    @property
    def tracks(self) -> Sequence[str]:
        """The names of all tracks, in alphabetical order, numbers by value."""
        return sorted({piece.track for piece in self.slices}, key=_parts)


def _parts(name: str) -> list[tuple[int, str]]:
    """A sort key that puts `gpu2` before `gpu10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
