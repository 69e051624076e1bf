"""What an observer of a simulation is told, and a recording of it. Components know observers only by this protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Observer(Protocol):
    """Whoever wants to know what happens; attached from outside, never asked anything."""

    def ran(self, track: str, name: str, start_s: float, end_s: float, words: Mapping[str, object]) -> None:
        """Something ran on a track from start to end. Slices of one track nest."""
        ...

    def level(self, counter: str, time_s: float, value: float) -> None:
        """A counter has this value from now on; its name ends with its unit in brackets."""
        ...

    def followed(self, before: tuple[str, float], after: tuple[str, float]) -> None:
        """What stands on a track at a time had to wait for what stands on another: (track, time [s]) of both."""
        ...


@dataclass(frozen=True, slots=True)
class TimelineSlice:
    """Something that ran on a track."""

    track: str
    name: str
    start_s: float
    end_s: float
    words: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Recording:
    """An observer that keeps all it is told, in the order in which it was told."""

    slices: list[TimelineSlice] = field(default_factory=list)
    levels: list[tuple[str, float, float]] = field(default_factory=list)
    flows: list[tuple[tuple[str, float], tuple[str, float]]] = field(default_factory=list)

    def ran(self, track: str, name: str, start_s: float, end_s: float, words: Mapping[str, object]) -> None:
        """Keep a slice."""
        self.slices.append(TimelineSlice(track, name, start_s, end_s, words))

    def level(self, counter: str, time_s: float, value: float) -> None:
        """Keep a value."""
        self.levels.append((counter, time_s, value))

    def followed(self, before: tuple[str, float], after: tuple[str, float]) -> None:
        """Keep a dependency."""
        self.flows.append((before, after))

    @property
    def tracks(self) -> Sequence[str]:
        """The names of all tracks, in alphabetical order, numbers in theirs."""
        return sorted({piece.track for piece in self.slices}, key=_parts)


def _parts(name: str) -> list[tuple[int, str]]:
    """The words of a name as keys that sort `gpu2` before `gpu10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
