"""Times of events in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.dims import short

US = 1e-6
LATEST_US = 1e18  # of a time


def times_of(event: Mapping[str, Any], path: str | Path, count: int) -> tuple[float, float]:
    """Start and duration of an event [us]. Raises InputError for what is no time."""
    found = []
    for key in ("ts", "dur"):
        value = event.get(key, 0 if key == "dur" else None)
        if type(value) not in (int, float) or not abs(value) <= LATEST_US or (key == "dur" and value < 0):
            raise InputError(str(path), f"event {count} ({short(event.get('name'))}) has {key} = {short(value)}, "
                                        "which is no time in microseconds")  # fmt: skip
        found.append(float(value))
    return found[0], found[1]
