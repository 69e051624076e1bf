"""One value of the file that `archsim detect` writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A key of a spec, its value as text with its unit or as a count, and where it comes from."""

    key: str
    value: str | float
    source: str
    kind: str
    note: str = ""


def sentence(*parts: str) -> str:
    """Notes, one after the other."""
    return "; ".join(filter(None, parts))
