"""What an answer assumes: counted on the first screen, listed behind `--all`."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.render.blocks import Facts

SPREAD = "times are estimates "  # how the note begins that says how far a simulated time may be off


def counted(chosen: Sequence[str], unpublished: Sequence[str] = (), of: str = "the chip") -> str:
    """How many choices were left open, and how many values nobody published; empty where nothing is assumed.

    >>> counted(["clock 1 GHz"], ["power.idle", "sm.l2"])
    '1 choice that was left open and 2 values of the chip that nobody published (--all)'
    """
    choices = _many(len(chosen), "choice", "that was left open", "that were left open")
    values = _many(len(unpublished), "value", f"of {of} that nobody published", f"of {of} that nobody published")
    said = " and ".join(filter(None, (choices, values)))
    return f"{said} (--all)" if said else ""


def _many(count: int, what: str, one: str, many: str) -> str:
    return "" if not count else f"1 {what} {one}" if count == 1 else f"{count} {what}s {many}"


def listed(chosen: Sequence[str], unpublished: Sequence[str] = ()) -> Facts:
    """Every one of them."""
    rows = [("chosen", list(chosen)), ("not published", ", ".join(unpublished))]
    return Facts(title="Assumptions", rows=rows, level=2)


def spread_of(notes: Sequence[str]) -> tuple[str, list[str]]:
    """How far a simulated time may be off, and the other notes."""
    found = next((note for note in notes if note.startswith(SPREAD)), "")
    kind, _, said = found.removeprefix(SPREAD).partition(": ")
    return f"{said} {kind}".strip(), [note for note in notes if note != found]
