"""How many measured rows stand behind a stack: its own, and those of other software on the same libraries (`rows.csv`)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from archsim.stack.compose import folder
from archsim.stack.stack import Stack

FILE = "rows.csv"  # counted in the published corpus: `python -m tests.data.regenerate`


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRows:
    """Published measurements of a stack.

    own: of the stack itself; alike: of other frameworks and engines on its `libraries` in the same versions
    """

    own: int
    alike: int
    libraries: str

    @property
    def words(self) -> str:
        """`1,217 of its own and 4,308 of others on cudnn 5.1 + cublas 8`, `none`."""
        own = [f"{self.own:,} of its own"] if self.own else []
        return " and ".join([*own, *([f"{self.alike:,} of others on {self.libraries}"] if self.alike else [])]) or "none"


def rows_of(stack: Stack) -> MeasuredRows:
    """The measured rows behind a stack, by its id; those of other software also behind a file of one's own."""
    table = _table()
    own, libraries = table.get(stack.id, (0, stack.libraries))
    alike = sum(rows for rows, of in table.values() if of == libraries != "") - own
    return MeasuredRows(own=own, alike=alike, libraries=libraries)


@cache
def _table() -> Mapping[str, tuple[int, str]]:
    """Rows and libraries of each shipped stack."""
    with folder().joinpath(FILE).open("r", encoding="utf-8") as stream:
        return {line["stack"]: (int(line["rows"]), line["libraries"]) for line in csv.DictReader(stream)}
